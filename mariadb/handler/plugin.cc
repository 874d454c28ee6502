/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see mariadb/handler/LICENSE). */

/* The plug-in as the server loads it: variables, start, end. */

#include "engine.h"
#include "tables/collation.h"
#include "errors.h"
#include "monitoring/information_schema.h"
#include "transactions/known_sessions.h"
#include "tables/layout.h"
#include "pushdown/pushed_select.h"
#include "row_handler.h"
#include "transactions/stopped.h"
#include "monitoring/told.h"
#include "transactions/transactions.h"
#include "transactions/two_phase.h"

#include <signal.h>

namespace peregrine {

handlerton *hton = nullptr;
peregrine_engine *engine = nullptr;

static ulonglong buffer_pool_size;
static ulonglong log_size;
static uint checkpoint_interval;
static uint recovery_target_seconds;
static ulonglong max_log_keep_size;
static ulong flush_log_at_trx_commit;

/* Reports when the engine refuses a variable's new value. The server has no way to take it back. */
static void look_at(int code) {
  if (code != PEREGRINE_OK)
    my_printf_error(ER_GET_ERRMSG, "Peregrine: %s", MYF(0), last_error_text().c_ptr_safe());
}

static void update_flush(MYSQL_THD, st_mysql_sys_var *, void *place, const void *value) {
  *static_cast<ulong *>(place) = *static_cast<const ulong *>(value);
  if (engine)
    look_at(peregrine_engine_set_flush(engine, static_cast<uint32_t>(flush_log_at_trx_commit)));
}

static void update_log_keep(MYSQL_THD, st_mysql_sys_var *, void *place, const void *value) {
  *static_cast<ulonglong *>(place) = *static_cast<const ulonglong *>(value);
  if (engine) look_at(peregrine_engine_set_longest_kept_log(engine, max_log_keep_size));
}

static MYSQL_SYSVAR_ULONGLONG(buffer_pool_size, buffer_pool_size,
                              PLUGIN_VAR_RQCMDARG | PLUGIN_VAR_READONLY,
                              "Bytes of memory for pages of tables and indexes: the engine's one "
                              "memory budget",
                              nullptr, nullptr, 128ULL << 20, 4ULL << 20, ULONGLONG_MAX, 1 << 20);

static my_bool direct_io;

static MYSQL_SYSVAR_BOOL(direct_io, direct_io, PLUGIN_VAR_OPCMDARG | PLUGIN_VAR_READONLY,
                         "ON: pages are read past the system's page cache, so that none is in "
                         "memory twice, where the file system allows it. OFF: through it",
                         nullptr, nullptr, 0);

static my_bool unreadable_is_damage;

static MYSQL_SYSVAR_BOOL(unreadable_is_damage, unreadable_is_damage,
                         PLUGIN_VAR_OPCMDARG | PLUGIN_VAR_READONLY,
                         "ON: a page whose read fails twice counts as damaged, so that recovery "
                         "quarantines its table, for good, and the server starts. OFF: recovery "
                         "fails where it can't read a page, and another start tries again",
                         nullptr, nullptr, 0);

static MYSQL_SYSVAR_ULONGLONG(log_size, log_size, PLUGIN_VAR_RQCMDARG | PLUGIN_VAR_READONLY,
                              "Bytes of redo log after which a checkpoint starts; more makes "
                              "checkpoints rarer and recovery after a crash longer",
                              nullptr, nullptr, 512ULL << 20, 1ULL << 20, ULONGLONG_MAX, 1 << 20);

static MYSQL_SYSVAR_UINT(checkpoint_interval, checkpoint_interval,
                         PLUGIN_VAR_RQCMDARG | PLUGIN_VAR_READONLY,
                         "Seconds after which a checkpoint starts while there are changes", nullptr,
                         nullptr, 300, 1, 86400, 0);

static MYSQL_SYSVAR_UINT(recovery_target_seconds, recovery_target_seconds,
                         PLUGIN_VAR_RQCMDARG | PLUGIN_VAR_READONLY,
                         "Seconds that recovery after a crash may take: checkpoints start as early "
                         "as that needs, going by how long earlier recoveries took. 0: however "
                         "long peregrine_log_size takes",
                         nullptr, nullptr, 60, 0, 3600, 0);

static MYSQL_SYSVAR_ULONGLONG(max_log_keep_size, max_log_keep_size, PLUGIN_VAR_RQCMDARG,
                              "Bytes of redo log that are kept for a running transaction, from "
                              "its first change on. At the next checkpoint a transaction that "
                              "needs more loses them: its next change, or its COMMIT, fails with "
                              "error 1296 or 1180, and it is rolled back",
                              nullptr, update_log_keep, 64ULL << 30, 1ULL << 20, ULONGLONG_MAX,
                              1 << 20);

static MYSQL_SYSVAR_ULONG(
    flush_log_at_trx_commit, flush_log_at_trx_commit, PLUGIN_VAR_RQCMDARG,
    "What a commit waits for. 1: the log is written and synced to disk (no "
    "committed change is ever lost). 2: the log is written; it is synced each "
    "second (a power failure can take the last second). 0: the log is written "
    "and synced each second (a crash can take the last second)",
    nullptr, update_flush, 1, 0, 2, 0);

static uint scan_threads;

static void update_scan_threads(MYSQL_THD, st_mysql_sys_var *, void *place, const void *value) {
  *static_cast<uint *>(place) = *static_cast<const uint *>(value);
  if (engine) look_at(peregrine_engine_set_scan_threads(engine, scan_threads));
}

static MYSQL_SYSVAR_UINT(scan_threads, scan_threads, PLUGIN_VAR_RQCMDARG,
                         "Threads, 1 to 64, that work on one aggregate (MIN, MAX, SUM, COUNT) "
                         "where many pages must be read; all sessions together have no more than "
                         "one alone may have, and their own. 0: one for each processor",
                         nullptr, update_scan_threads, 0, 0, 64, 0);

static ulong autoinc_lock_mode;

static const char *autoinc_lock_mode_names[] = {"TRADITIONAL", "CONSECUTIVE", "INTERLEAVED",
                                                nullptr};
static TYPELIB autoinc_lock_mode_values = {3, "", autoinc_lock_mode_names, nullptr};

static MYSQL_SYSVAR_ENUM(
    autoinc_lock_mode, autoinc_lock_mode, PLUGIN_VAR_RQCMDARG,
    "Whether statements that insert into the same table at the same time wait for one another, so "
    "that the AUTO_INCREMENT values of each follow one another. INTERLEAVED: never; values follow "
    "one another where the number of rows is known beforehand, as in INSERT ... VALUES. "
    "CONSECUTIVE: statements of unknown length (INSERT ... SELECT, LOAD DATA) keep others out "
    "until "
    "they end. TRADITIONAL: all do",
    nullptr, nullptr, static_cast<ulong>(AutoIncrementMode::kInterleaved),
    &autoinc_lock_mode_values);

AutoIncrementMode auto_increment_mode() {
  return static_cast<AutoIncrementMode>(autoinc_lock_mode);
}

static my_bool checkpoint_now;

static void take_checkpoint(MYSQL_THD, st_mysql_sys_var *, void *, const void *value) {
  if (!*static_cast<const my_bool *>(value) || !engine) return;
  /* The server holds this lock for every SET GLOBAL; a checkpoint takes too long for that. */
  mysql_mutex_unlock(&LOCK_global_system_variables);
  if (peregrine_engine_checkpoint(engine) != PEREGRINE_OK)
    my_printf_error(ER_UNKNOWN_ERROR, "Peregrine: %s", MYF(0), last_error_text().c_ptr_safe());
  mysql_mutex_lock(&LOCK_global_system_variables);
}

static MYSQL_SYSVAR_BOOL(checkpoint_now, checkpoint_now, PLUGIN_VAR_RQCMDARG,
                         "Set to ON: a checkpoint is taken, and the statement ends when it is "
                         "complete. It always reads OFF",
                         nullptr, take_checkpoint, 0);

static MYSQL_THDVAR_UINT(lock_wait_timeout, PLUGIN_VAR_RQCMDARG,
                         "Seconds that a statement waits for a row lock before it fails with error "
                         "1205; 0 does not wait. lock_wait_timeout, where less, counts instead",
                         nullptr, nullptr, 50, 0, 1 << 30, 0);

static MYSQL_THDVAR_BOOL(pushdown, PLUGIN_VAR_OPCMDARG,
                         "ON: SELECTs of one table by one key are run by the engine itself, "
                         "without the server's optimizer; EXPLAIN calls them PUSHED SELECT. OFF: "
                         "the server runs every statement. The results are the same",
                         nullptr, nullptr, 1);

bool pushes_down(THD *thd) {
  return THDVAR(thd, pushdown);
}

static my_bool rollback_all_on_timeout;

static MYSQL_SYSVAR_BOOL(rollback_on_timeout, rollback_all_on_timeout, PLUGIN_VAR_OPCMDARG,
                         "ON: error 1205, a row lock not granted in time, rolls back the whole "
                         "transaction. OFF: the statement alone",
                         nullptr, nullptr, 0);

bool rollback_on_timeout() {
  return rollback_all_on_timeout;
}

st_mysql_sys_var *system_variables[] = {
    MYSQL_SYSVAR(buffer_pool_size),
    MYSQL_SYSVAR(direct_io),
    MYSQL_SYSVAR(unreadable_is_damage),
    MYSQL_SYSVAR(log_size),
    MYSQL_SYSVAR(checkpoint_interval),
    MYSQL_SYSVAR(recovery_target_seconds),
    MYSQL_SYSVAR(max_log_keep_size),
    MYSQL_SYSVAR(flush_log_at_trx_commit),
    MYSQL_SYSVAR(lock_wait_timeout),
    MYSQL_SYSVAR(rollback_on_timeout),
    MYSQL_SYSVAR(autoinc_lock_mode),
    MYSQL_SYSVAR(checkpoint_now),
    MYSQL_SYSVAR(pushdown),
    MYSQL_SYSVAR(scan_threads),
    nullptr,
};

uint lock_wait_seconds(THD *thd) {
  /* WAIT n and NOWAIT set lock_wait_timeout for their statement. */
  return static_cast<uint>(
      MY_MIN(static_cast<ulong>(THDVAR(thd, lock_wait_timeout)), thd->variables.lock_wait_timeout));
}

static handler *create_handler(handlerton *h, TABLE_SHARE *share, MEM_ROOT *memory) {
  return new (memory) RowHandler(h, share);
}

/* FLUSH ENGINE LOGS: makes the commits durable that have not waited for the disk. */
static bool flush_logs(handlerton *) {
  if (peregrine_engine_sync_log(engine) == PEREGRINE_OK) return false;
  sql_print_error("Peregrine: flushing the log: %s", last_error_text().c_ptr_safe());
  return true;
}

static void drop_database(handlerton *, char *path) {
  /* "./schema/": drops the tables that DROP DATABASE has left, because the server lost their
     files. */
  std::string prefix(path);
  if (prefix.compare(0, 2, "./") == 0) prefix.erase(0, 2);
  if (prefix.empty() || prefix.back() != '/') prefix += '/';
  int code = peregrine_tables_drop(engine, prefix.data(), prefix.size());
  if (code != PEREGRINE_OK)
    sql_print_warning("Peregrine: drop of %s: %s", path, last_error_text().c_ptr_safe());
}

static int drop_table(handlerton *, const char *path) {
  return drop_table(current_thd, path);
}

/* Makes a write beyond the file size limit an error, instead of a signal that ends the server. */
static void ignore_file_size_signal() {
  struct sigaction now;
  if (sigaction(SIGXFSZ, nullptr, &now) == 0 && now.sa_handler == SIG_DFL) signal(SIGXFSZ, SIG_IGN);
}

static int start(void *p) {
  if (comes_before_other_engines()) return HA_ERR_RETRY_INIT;
  ignore_file_size_signal();
  hton = static_cast<handlerton *>(p);
  peregrine_options options{};
  options.directory =
      "#peregrine"; /* in the data directory, where the server works; no schema is called so */
  options.pool_bytes = buffer_pool_size;
  options.direct_io = direct_io;
  options.unreadable_is_damage = unreadable_is_damage;
  options.log_bytes = log_size;
  options.checkpoint_seconds = checkpoint_interval;
  options.recovery_target_seconds = recovery_target_seconds;
  options.longest_kept_log = max_log_keep_size;
  options.flush_log_at_commit = static_cast<uint32_t>(flush_log_at_trx_commit);
  options.lock_wait_seconds = 50;
  options.sort_key = peregrine_plugin_sort_key;
  options.sessions = &known_sessions;
  options.temporary_prefix = kTemporaryPrefix; /* temporary tables end with the server */
  listen_to_engine();
  if (peregrine_engine_open(&options, &engine) != PEREGRINE_OK) {
    sql_print_error("Peregrine: %s", last_error_text().c_ptr_safe());
    engine = nullptr;
    end_listening();
    refuse_start_without_engine();
    return 1;
  }
  if (peregrine_engine_set_scan_threads(engine, scan_threads) != PEREGRINE_OK)
    sql_print_error("Peregrine: %s", last_error_text().c_ptr_safe());
  static const char *no_extensions[] = {nullptr};
  hton->create = create_handler;
  hton->drop_database = drop_database;
  hton->drop_table = drop_table;
  hton->flush_logs = flush_logs;
  hton->create_select = push_select;
  hton->show_status = show_engine_status;
  hton->table_options = table_options;
  hton->tablefile_extensions = no_extensions;
  hton->flags = HTON_SUPPORTS_EXTENDED_KEYS | HTON_TRUNCATE_REQUIRES_EXCLUSIVE_USE;
  set_transaction_calls(hton);
  set_two_phase_calls(hton);
  set_shutdown_calls(hton);
  commit_what_was_decided();
  tell_running_server();
  return 0;
}

static int end(void *) {
  if (engine && peregrine_engine_close(engine) != PEREGRINE_OK)
    sql_print_error("Peregrine: at the end: %s", last_error_text().c_ptr_safe());
  engine = nullptr;
  end_listening();
  return 0;
}

static st_mysql_storage_engine storage_engine = {MYSQL_HANDLERTON_INTERFACE_VERSION};

}  // namespace peregrine

maria_declare_plugin(peregrine){
    MYSQL_STORAGE_ENGINE_PLUGIN,
    &peregrine::storage_engine,
    peregrine::kEngineName,
    peregrine::kAuthor,
    "Transactions, row locks, snapshot reads, compact clustered tables",
    PLUGIN_LICENSE_GPL,
    peregrine::start,
    peregrine::end,
    peregrine::kVersion,
    peregrine::status_variables,
    peregrine::system_variables,
    peregrine::kVersionText,
    MariaDB_PLUGIN_MATURITY_EXPERIMENTAL,
},
    peregrine::transactions_table, peregrine::locks_table, peregrine::lock_waits_table,
    peregrine::metrics_table maria_declare_plugin_end;
