/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see mariadb/handler/LICENSE). */

/* The server's shutdown when the engine can't take part in it: it did not open, or it has stopped
   after a failed write or sync.

   Prepared transactions may then exist whose commit only the server's log records. That log must
   stay as it is until the engine has asked for the decisions. At an orderly shutdown the server
   marks the binary log as not needed for recovery, and at the next start it refuses to run when it
   finds prepared transactions. */

#include "transactions/stopped.h"
#include "errors.h"
#include "transactions/two_phase.h"

#include "mysqld.h"
#include "sql_base.h"
#include "sql_plugin.h"

#include <signal.h>
#include <unistd.h>

namespace peregrine {

/* The sync fails once the engine has stopped, even when nothing has to be made durable. */
static bool has_stopped() {
  return engine && peregrine_engine_sync_log(engine) != PEREGRINE_OK;
}

/* RESET MASTER holds locks of the binary log and waits until the engine has made all commits
   durable, which never happens once the engine has stopped. No call can end that wait. So the
   server ends as at a crash, and its supervisor starts it again. (InnoDB does the same at the first
   failed sync.) SET GLOBAL gtid_binlog_state resets the binary log, too. */
void end_reset_that_waits() {
  const THD *thd = current_thd;
  if (!thd || !thd->lex) return;
  const enum_sql_command command = thd->lex->sql_command;
  if (command != SQLCOM_RESET && command != SQLCOM_SET_OPTION) return;
  sql_print_error(
      "Peregrine: the binary log can't be reset: the next start needs it, since the engine has "
      "stopped. The server ends now, as at a crash, and recovers when it is started again");
  kill(getpid(), SIGKILL);
}

/* Runs after all connections have ended. Writes what other engines hold in memory, as far as they
   offer that; InnoDB recovers from its log. */
static void before_shutdown() {
  if (!has_stopped()) return;
  sql_print_error(
      "Peregrine: the engine has stopped (%s). So the server does not close its logs, but ends as "
      "at "
      "a crash: the next start recovers. Nothing that was acknowledged is lost",
      last_error_text().c_ptr_safe());
  purge_tables();
  ha_flush_logs();
  /* Without this, mysqld_safe takes the exit for a crash, and starts the server again. */
  unlink(pidfile_name);
  _exit(1);
}

void refuse_start_without_engine() {
  if (mysqld_server_started || opt_help) return;
  if (!opt_bin_log && !has_decisions()) return;
  LEX_CSTRING name{kEngineName, strlen(kEngineName)};
  plugin_ref plugin = plugin_lock_by_name(nullptr, &name, MYSQL_STORAGE_ENGINE_PLUGIN);
  if (!plugin) return;
  /* The same as peregrine=FORCE: the server shuts down in order, before it opens the log of its
     decisions. */
  plugin_ref_to_int(plugin)->load_option = PLUGIN_FORCE;
  plugin_unlock(nullptr, plugin);
  sql_print_error(
      "Peregrine: the server does not start without the engine, since its %s may decide about the "
      "engine's prepared transactions. To start without: peregrine=OFF, but then they are not "
      "decided",
      opt_bin_log ? "binary log" : "tc.log");
}

void set_shutdown_calls(handlerton *h) {
  h->pre_shutdown = before_shutdown;
}

}  // namespace peregrine
