/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see mariadb/handler/LICENSE). */

/* Connections and their transactions. */

#ifndef PEREGRINE_TRANSACTIONS_H
#define PEREGRINE_TRANSACTIONS_H

#include "peregrine_prepared.h"
#include "engine.h"

namespace peregrine {

/* The state of a connection in the engine. */
struct Connection {
  peregrine_session *session = nullptr;
  /* Number of tables that the present statement, or LOCK TABLES, has locked. */
  uint tables = 0;
  /* Whether the engine has begun the present statement. */
  bool in_statement = false;
  /* Whether only the server ends the statement: it began under LOCK TABLES, and a temporary table
     that it uses is not counted in `tables`. */
  bool server_ends = false;
  /* Whether the first half of the commit is done: others see it, but it is not finished. */
  bool committed_in_order = false;
  /* Whether the server syncs its decision about the transaction to disk; then the engine syncs the
     preparation as well. */
  bool decision_synced = false;
  /* The server's number of the key with the last duplicate. Kept here because the server may ask
     the handler of another partition for it. */
  uint duplicate_key = MAX_KEY;
  /* Whether XA PREPARE has prepared a transaction here that waits for its end, and its name. The
     session has given the transaction up, because the server detaches it from a connection that is
     reset without telling the engine. */
  bool undecided = false;
  peregrine_xid name{};
};

/* Returns the connection of a thread, and creates it at its first use; null when there is no
   memory. */
Connection *connection_of(THD *thd);

/* Returns null when the thread has not used the engine yet. */
Connection *existing_connection(THD *thd);

/* Returns whether a statement that begins is part of a transaction that continues after it. */
bool in_long_transaction(THD *thd);

/* Returns whether the engine's work in the statement is part of such a transaction. */
bool outlives_statement(THD *thd);

/* Returns whether the statement is a SELECT that changes nothing, not even in a function that it
   calls. */
bool only_reads(THD *thd);

/* Returns whether the thread applies events of a binary log. Their changes are decided already. So
   the thread waits for rows in every table, and tries again when it can't get them. */
bool applies_events(THD *thd);

/* Begins the statement if it has not begun, and registers the engine in the server's
   transaction. */
int begin_statement(THD *thd, Connection *connection);

/* Releases a table that the statement has used. With the last table, ends the statement if the
   server has not ended it; the server has then reported an error to the client. */
int release_table(THD *thd, Connection *connection);

/* Sets the functions that the server calls about transactions. */
void set_transaction_calls(handlerton *hton);

}  // namespace peregrine

#endif
