/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see mariadb/handler/LICENSE). */

/* Connections and their transactions. */

#ifndef PEREGRINE_TRANSACTIONS_H
#define PEREGRINE_TRANSACTIONS_H

#include "peregrine_prepared.h"
#include "engine.h"

namespace peregrine {

/* What the engine knows about a connection. */
struct Connection {
  peregrine_session *session = nullptr;
  /* Tables that the present statement, or LOCK TABLES, has locked. */
  uint tables = 0;
  /* Whether the engine has been told of the present statement. */
  bool in_statement = false;
  /* Whether only the server ends it: it began under LOCK TABLES, and a temporary table that it uses
     is not counted. */
  bool server_ends = false;
  /* Whether others see the transaction's commit already, which is not over. */
  bool committed_in_order = false;
  /* Whether the server's decision about it will be synced to disk: its preparation is then. */
  bool decision_synced = false;
  /* The key with the last duplicate, by the server's number. The server may ask the handler of
     another partition for it. */
  uint duplicate_key = MAX_KEY;
  /* Whether XA PREPARE has prepared a transaction here that waits for its end, and its name. The
     session has given it up: the server takes it from a connection that is reset without a word. */
  bool undecided = false;
  peregrine_xid name{};
};

/* The connection of a thread, made at its first use; null when there is no memory. */
Connection *connection_of(THD *thd);

/* Null where the engine was not used yet. */
Connection *existing_connection(THD *thd);

/* Whether a statement that begins is part of a transaction that goes on behind it. */
bool in_long_transaction(THD *thd);

/* Whether what the engine has done in the statement is part of such a transaction. */
bool outlives_statement(THD *thd);

/* Whether the statement is a SELECT that changes nothing, be it in a function that it calls. */
bool only_reads(THD *thd);

/* Whether the thread applies events of a binary log. What they change is decided already, so they
   wait for rows in every table, and are tried again where they can't have them. */
bool applies_events(THD *thd);

/* Begins the statement where it has not begun, and takes part in the server's transaction. */
int begin_statement(THD *thd, Connection *connection);

/* A table is no longer used by the statement. The last one ends it where the server has not: the
   client has been told of an error then. */
int release_table(THD *thd, Connection *connection);

/* Fills in what the server calls about transactions. */
void set_transaction_calls(handlerton *hton);

}  // namespace peregrine

#endif
