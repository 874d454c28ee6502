/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see mariadb/handler/LICENSE). */

#include "transactions/transactions.h"
#include "errors.h"
#include "transactions/known_sessions.h"
#include "transactions/two_phase.h"

#include <new>

namespace peregrine {

bool in_long_transaction(THD *thd) {
  return thd_test_options(thd, OPTION_NOT_AUTOCOMMIT | OPTION_BEGIN);
}

/* The server may have begun a transaction since the statement began: SET autocommit = (SELECT …).
   The engine is not part of that transaction. */
bool outlives_statement(THD *thd) {
  return thd->ha_data[hton->slot].ha_info[1].is_started();
}

Connection *existing_connection(THD *thd) {
  return static_cast<Connection *>(thd_get_ha_data(thd, hton));
}

Connection *connection_of(THD *thd) {
  Connection *connection = existing_connection(thd);
  if (likely(connection != nullptr)) return connection;
  connection = new (std::nothrow) Connection;
  if (!connection) return nullptr;
  if (peregrine_session_new(engine, thd_get_thread_id(thd), &connection->session) != PEREGRINE_OK) {
    delete connection;
    return nullptr;
  }
  if (!know_session(thd)) {
    peregrine_session_free(connection->session);
    delete connection;
    return nullptr;
  }
  thd_set_ha_data(thd, hton, connection);
  return connection;
}

bool only_reads(THD *thd) {
  const enum_sql_command command = thd->lex->sql_command;
  return (command == SQLCOM_SELECT && !thd->lex->requires_prelocking()) ||
         command == SQLCOM_HA_READ;
}

bool applies_events(THD *thd) {
  return thd->rgi_slave || thd->rgi_fake;
}

static uint isolation_of(THD *thd) {
  switch (thd_tx_isolation(thd)) {
    case ISO_READ_UNCOMMITTED:
    case ISO_READ_COMMITTED:
      return PEREGRINE_READ_COMMITTED;
    case ISO_SERIALIZABLE:
      /* A transaction of a single read is serializable without locks. */
      return in_long_transaction(thd) || !only_reads(thd) ? PEREGRINE_SERIALIZABLE
                                                          : PEREGRINE_REPEATABLE_READ;
    default:
      return PEREGRINE_REPEATABLE_READ;
  }
}

/* Returns when the statement began, in microseconds since 1970. The server has read a clock
   already, though one with another origin. (Its other clock is the user's: SET timestamp.) */
static uint64_t statement_began(THD *thd) {
  static const uint64_t offset = my_hrtime().val - microsecond_interval_timer();
  return thd->start_utime + offset;
}

int begin_statement(THD *thd, Connection *connection) {
  if (connection->in_statement) return 0;
  /* The server writes XA PREPARE to the binary log before it asks the engine to prepare, so the
     engine must not fail then. */
  bool keeps_log = thd->transaction->xid_state.is_explicit_XA();
  int code = peregrine_statement_start(connection->session, isolation_of(thd),
                                       lock_wait_seconds(thd), statement_began(thd), keeps_log);
  if (unlikely(code != PEREGRINE_OK)) return report_session_error(code, thd, ER_GET_ERRMSG);
  connection->in_statement = true;
  connection->server_ends = false;
  connection->undecided = false;
  /* The statement was killed before it began: interrupt its session now. */
  if (unlikely(thd_kill_level(thd) != THD_IS_NOT_KILLED))
    peregrine_session_kill(connection->session);
  trans_register_ha(thd, false, hton, 0);
  if (in_long_transaction(thd)) trans_register_ha(thd, true, hton, 0);
  return 0;
}

int release_table(THD *thd, Connection *connection) {
  if (connection->tables && --connection->tables) return 0;
  /* The server has ended the statement by now, unless it never began a transaction for it. */
  if (!connection->in_statement || connection->server_ends) return 0;
  connection->in_statement = false;
  int code = outlives_statement(thd) ? peregrine_statement_end(connection->session)
                                     : peregrine_session_commit(connection->session, 1);
  /* Not every caller that unlocks a table reports the error to the client. */
  return report_session_error(code, thd, ER_ERROR_DURING_COMMIT);
}

static int commit(handlerton *, THD *thd, bool all) {
  Connection *connection = existing_connection(thd);
  if (!connection) return 0;
  connection->in_statement = false;
  if (all && connection->undecided) return commit_undecided(thd, connection);
  int code = all || !outlives_statement(thd)
                 ? peregrine_session_commit(connection->session, !coordinator_remembers(thd))
                 : peregrine_statement_end(connection->session);
  return report_session_error(code, thd, ER_ERROR_DURING_COMMIT);
}

static int rollback(handlerton *, THD *thd, bool all) {
  Connection *connection = existing_connection(thd);
  if (!connection) return 0;
  connection->in_statement = false;
  if (all && connection->undecided) return rollback_undecided(thd, connection);
  const bool whole = all || !outlives_statement(thd);
  if (whole) connection->committed_in_order = false;
  int code = whole ? peregrine_session_rollback(connection->session)
                   : peregrine_statement_rollback(connection->session);
  /* The transaction will never be committed. The engine itself undoes the rest, and has written
     that to the error log. */
  if (whole && code == PEREGRINE_NO_SPACE) return 0;
  return report_session_error(code, thd, ER_ERROR_DURING_ROLLBACK);
}

static int close_connection(handlerton *, THD *thd) {
  Connection *connection = existing_connection(thd);
  thd_set_ha_data(thd, hton, nullptr);
  if (connection) {
    peregrine_session_free(connection->session);
    forget_session(thd);
    delete connection;
  }
  return 0;
}

/* The engine's savepoint in the server's memory. */
struct Savepoint {
  ulonglong number;
};

static int savepoint_set(handlerton *, THD *thd, void *place) {
  Connection *connection = existing_connection(thd);
  if (!connection) return HA_ERR_WRONG_COMMAND;
  uint64_t number = 0;
  int code = peregrine_savepoint_set(connection->session, &number);
  static_cast<Savepoint *>(place)->number = number;
  return report_session_error(code, thd, ER_GET_ERRMSG);
}

static int savepoint_rollback(handlerton *, THD *thd, void *place) {
  Connection *connection = existing_connection(thd);
  if (!connection) return HA_ERR_WRONG_COMMAND;
  ulonglong number = static_cast<Savepoint *>(place)->number;
  int code = peregrine_savepoint_rollback(connection->session, number);
  return report_session_error(code, thd, ER_ERROR_DURING_ROLLBACK);
}

static int savepoint_release(handlerton *, THD *thd, void *place) {
  Connection *connection = existing_connection(thd);
  if (!connection) return HA_ERR_WRONG_COMMAND;
  ulonglong number = static_cast<Savepoint *>(place)->number;
  /* SAVEPOINT releases only an earlier savepoint of the same name. Every other statement also ends
     the later ones. */
  const bool later = thd->lex->sql_command != SQLCOM_SAVEPOINT;
  int code = peregrine_savepoint_release(connection->session, number, later);
  return report_session_error(code, thd, ER_GET_ERRMSG);
}

static bool can_release_metadata_locks(handlerton *, THD *) {
  return false;
}

static int start_consistent_snapshot(handlerton *, THD *thd) {
  Connection *connection = connection_of(thd);
  if (!connection) return HA_ERR_OUT_OF_MEM;
  connection->undecided = false;
  int code = peregrine_session_snapshot(connection->session, isolation_of(thd),
                                        lock_wait_seconds(thd), statement_began(thd));
  if (code == PEREGRINE_OK) trans_register_ha(thd, true, hton, 0);
  return report_session_error(code, thd, ER_GET_ERRMSG);
}

static void kill_query(handlerton *, THD *thd, thd_kill_levels) {
  Connection *connection = existing_connection(thd);
  if (connection) peregrine_session_kill(connection->session);
}

void set_transaction_calls(handlerton *h) {
  h->commit = commit;
  h->rollback = rollback;
  h->close_connection = close_connection;
  h->savepoint_offset = sizeof(Savepoint);
  h->savepoint_set = savepoint_set;
  h->savepoint_rollback = savepoint_rollback;
  h->savepoint_release = savepoint_release;
  h->savepoint_rollback_can_release_mdl = can_release_metadata_locks;
  h->start_consistent_snapshot = start_consistent_snapshot;
  h->kill_query = kill_query;
}

}  // namespace peregrine
