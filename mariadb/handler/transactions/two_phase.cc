/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see mariadb/handler/LICENSE). */

#include "transactions/two_phase.h"
#include "errors.h"
#include "transactions/stopped.h"

namespace peregrine {

/* X/Open's result codes for the end of a transaction. */
constexpr int kXaOk = 0;
constexpr int kXaResourceManagerError = -3;
constexpr int kXaUnknownName = -4;

static peregrine_xid engine_name(const XID *xid) {
  peregrine_xid name{};
  name.format = xid->formatID;
  name.global_length = static_cast<uint32_t>(xid->gtrid_length);
  name.branch_length = static_cast<uint32_t>(xid->bqual_length);
  size_t length = MY_MIN(sizeof name.bytes, size_t{name.global_length} + name.branch_length);
  memcpy(name.bytes, xid->data, length);
  return name;
}

static XID server_name(const peregrine_xid &name) {
  XID xid;
  const char *bytes = reinterpret_cast<const char *>(name.bytes);
  xid.set(static_cast<long>(name.format), bytes, name.global_length, bytes + name.global_length,
          name.branch_length);
  return xid;
}

/* Returns whether the decision about the thread's transaction is synced to disk. Without
   sync_binlog=1 the server does not sync the binary log: then the engine syncs its own commit
   record, and need not sync the preparation. The server's logs do not decide the user's own XA
   transactions. */
static bool decision_is_synced(THD *thd) {
  return !opt_bin_log || sync_binlog_period == 1 || thd->transaction->xid_state.is_explicit_XA();
}

static int prepare(handlerton *, THD *thd, bool all) {
  Connection *connection = existing_connection(thd);
  if (!connection) return 0;
  /* A statement within a transaction is not prepared. */
  if (!all && outlives_statement(thd)) return 0;
  connection->in_statement = false;
  connection->decision_synced = decision_is_synced(thd);
  peregrine_xid name = engine_name(thd->get_xid());
  int code = peregrine_session_prepare(connection->session, &name, connection->decision_synced);
  if (code == PEREGRINE_OK && thd->lex->sql_command == SQLCOM_XA_PREPARE) {
    code = peregrine_session_detach(connection->session);
    connection->undecided = true;
    connection->name = name;
  }
  return report_session_error(code, thd, ER_ERROR_DURING_COMMIT);
}

static int end_undecided(int code, THD *thd, Connection *connection, uint number) {
  connection->undecided = false;
  if (code == PEREGRINE_END) my_error(ER_XAER_NOTA, MYF(0));
  return report_session_error(code, thd, number);
}

int commit_undecided(THD *thd, Connection *connection) {
  return end_undecided(peregrine_engine_commit_prepared(engine, &connection->name), thd, connection,
                       ER_ERROR_DURING_COMMIT);
}

int rollback_undecided(THD *thd, Connection *connection) {
  return end_undecided(peregrine_engine_rollback_prepared(engine, &connection->name), thd,
                       connection, ER_ERROR_DURING_ROLLBACK);
}

/* Runs in the order of the binary log, one transaction at a time, and perhaps in another
   connection's thread. */
static void commit_ordered(handlerton *, THD *thd, bool all) {
  Connection *connection = existing_connection(thd);
  if (!connection || (!all && outlives_statement(thd))) return;
  if (peregrine_session_commit_ordered(connection->session) == PEREGRINE_OK)
    connection->committed_in_order = true;
}

bool coordinator_remembers(THD *thd) {
  Connection *connection = existing_connection(thd);
  if (!connection || !connection->committed_in_order) return false;
  connection->committed_in_order = false;
  /* The server's logs do not decide the user's own XA transactions. */
  if (thd->transaction->xid_state.is_explicit_XA()) return false;
  return connection->decision_synced;
}

/* The server is about to forget its decisions. It keeps them unless it is notified that the commits
   are durable. */
static void checkpoint_request(void *cookie) {
  if (peregrine_engine_sync_log(engine) == PEREGRINE_OK) {
    commit_checkpoint_notify_ha(cookie);
    return;
  }
  sql_print_error("Peregrine: commits can't be made durable: %s", last_error_text().c_ptr_safe());
  end_reset_that_waits();
}

static int recover(handlerton *, XID *list, uint length) {
  /* The server calls this until it returns fewer names than `length`. */
  static peregrine_xid last;
  static bool going_on = false;
  uint found = 0;
  while (found < length) {
    peregrine_xid name;
    size_t count = 0;
    const int code =
        peregrine_engine_prepared(engine, going_on ? &last : nullptr, &name, 1, &count);
    /* The error can't be returned. The server goes on with the names that it has. */
    if (code != PEREGRINE_OK)
      sql_print_error("Peregrine: prepared transactions that can't be listed stay undecided: %s",
                      last_error_text().c_ptr_safe());
    if (code != PEREGRINE_OK || count == 0) {
      going_on = false;
      return static_cast<int>(found);
    }
    list[found++] = server_name(name);
    last = name;
    going_on = true;
  }
  return static_cast<int>(found);
}

/* Returns the server's code for the end of a transaction by its name. The server looks for an error
   in the statement, and ignores the returned code. */
static int ended(int code, const char *what) {
  switch (code) {
    case PEREGRINE_OK:
      return kXaOk;
    case PEREGRINE_END: /* a transaction of another engine */
      return kXaUnknownName;
    default:
      sql_print_error("Peregrine: %s of a prepared transaction: %s", what,
                      last_error_text().c_ptr_safe());
      if (current_thd) my_error(ER_XAER_RMERR, MYF(0));
      return kXaResourceManagerError;
  }
}

static int commit_by_xid(handlerton *, XID *xid) {
  peregrine_xid name = engine_name(xid);
  return ended(peregrine_engine_commit_prepared(engine, &name), "commit");
}

static int rollback_by_xid(handlerton *, XID *xid) {
  peregrine_xid name = engine_name(xid);
  return ended(peregrine_engine_rollback_prepared(engine, &name), "rollback");
}

void tell_running_server() {
  if (!mysqld_server_started) return;
  XID names[16];
  uint undecided = 0;
  for (int found = 16; found == 16;) {
    found = recover(hton, names, 16);
    for (int i = 0; i < found; i++) {
      if (names[i].get_my_xid())
        undecided++;
      else
        xid_cache_insert(&names[i]);
    }
  }
  if (undecided)
    sql_print_warning(
        "Peregrine: %u transactions were being committed when the server ended. Restart it with "
        "the "
        "plug-in loaded from the beginning (plugin_load_add): it then commits them or rolls them "
        "back. Until then the rows that they changed are locked",
        undecided);
}

void set_two_phase_calls(handlerton *h) {
  h->prepare = prepare;
  h->commit_ordered = commit_ordered;
  h->commit_checkpoint_request = checkpoint_request;
  h->recover = recover;
  h->commit_by_xid = commit_by_xid;
  h->rollback_by_xid = rollback_by_xid;
}

}  // namespace peregrine
