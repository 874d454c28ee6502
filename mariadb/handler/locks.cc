/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see mariadb/handler/LICENSE). */

/* How a statement's reads lock rows. The server's metadata locks protect definitions and implement
   LOCK TABLES; the engine has row locks only. */

#include "row_handler.h"
#include "errors.h"

#include <sql_parse.h>

namespace peregrine {

static bool skips_locked(thr_lock_type type) {
  return type == TL_READ_SKIP_LOCKED || type == TL_WRITE_SKIP_LOCKED;
}

/* Returns whether rows are read for a statement that changes tables and that the binary log may
   record as a statement. The server marks such reads by TL_READ_NO_INSERT, unless the statement
   itself asks for locks. */
static bool reads_for_logged_statement(THD *thd, thr_lock_type type) {
  switch (type) {
    case TL_READ_NO_INSERT: /* also of LOCK TABLES, ANALYZE and others */
      return sqlcom_can_generate_row_events(thd);
    case TL_READ_WITH_SHARED_LOCKS:
    case TL_READ_SKIP_LOCKED:
      return is_update_query(thd->lex->sql_command);
    default:
      return false;
  }
}

/* The snapshot may be older than commits that precede the statement in the binary log. A replica
   that repeats the statement could read other rows. So the server logs rows instead, or warns the
   user with binlog_format=STATEMENT. Changes in this engine are always logged as rows; this is for
   statements that change tables of other engines. */
static void keep_from_statement_log(THD *thd, thr_lock_type type) {
  if (reads_for_logged_statement(thd, type))
    thd->lex->set_stmt_unsafe(LEX::BINLOG_STMT_UNSAFE_MULTIPLE_ENGINES_AND_SELF_LOGGING_ENGINE);
}

THR_LOCK_DATA **RowHandler::store_lock(THD *thd, THR_LOCK_DATA **to, thr_lock_type type) {
  if (type != TL_IGNORE) skip_locked_ = skips_locked(type);
  keep_from_statement_log(thd, type);
  switch (type) {
    case TL_IGNORE:
      break;
    case TL_READ_WITH_SHARED_LOCKS:
    case TL_READ_SKIP_LOCKED:
      stored_lock_ = PEREGRINE_LOCK_SHARED;
      break;
    default:
      /* Reads of a statement that changes other tables are snapshot reads, too: see above for the
         binary log. external_lock sets an exclusive lock for tables that are changed. */
      stored_lock_ = PEREGRINE_LOCK_NONE;
  }
  return to;
}

/* Returns whether the statement replaces tables, or partitions of them. */
static bool alters_tables(THD *thd) {
  switch (thd->lex->sql_command) {
    case SQLCOM_ALTER_TABLE:
    case SQLCOM_CREATE_INDEX:
    case SQLCOM_DROP_INDEX:
    case SQLCOM_OPTIMIZE:
      return true;
    default:
      return false;
  }
}

/* Refuses to copy a table that a prepared transaction has used: the server's own locks of the
   transaction end with its connection, and the copy would lack its changes. The check comes when
   tables are locked, because the server may ignore a later error. */
int RowHandler::check_decided(THD *thd) {
  if (likely(!alters_tables(thd)) || !share_) return 0;
  int code = peregrine_table_undecided(share_->table);
  return code == PEREGRINE_OK ? 0 : server_error(code, thd);
}

int RowHandler::external_lock(THD *thd, int type) {
  if (type == F_UNLCK) {
    Connection *connection = connection_;
    connection_ = nullptr;
    logs_nothing_ = false;
    return connection ? release_table(thd, connection) : 0;
  }
  if (int error = check_decided(thd)) return error;
  Connection *connection = connection_of(thd);
  if (!connection) return HA_ERR_OUT_OF_MEM;
  if (int error = begin_statement(thd, connection)) return error;
  if (type == F_WRLCK) stored_lock_ = PEREGRINE_LOCK_EXCLUSIVE;
  use_lock(stored_lock_);
  /* SELECT … FOR UPDATE. The server asks for the flags after this has returned. */
  logs_nothing_ = type == F_WRLCK && only_reads(thd);
  connection->tables++;
  connection_ = connection;
  return 0;
}

/* In a merge of scans of several keys each scan has a handler of its own, and the server does not
   give it a lock. The copy takes the same lock as this handler, so that no row of the merge is gone
   when it is read. */
handler *RowHandler::clone(const char *name, MEM_ROOT *root) {
  auto copy = static_cast<RowHandler *>(handler::clone(name, root));
  if (!copy) return nullptr;
  const uint32_t skips = PEREGRINE_SKIP_LOCKED;
  copy->stored_lock_ = static_cast<peregrine_lock>(lock_ & ~skips);
  copy->skip_locked_ = skip_locked_;
  return copy;
}

/* Begins a statement under LOCK TABLES, where external_lock was called once for all statements. */
int RowHandler::start_stmt(THD *thd, thr_lock_type type) {
  if (int error = check_decided(thd)) return error;
  Connection *connection = connection_of(thd);
  if (!connection) return HA_ERR_OUT_OF_MEM;
  const bool begins = !connection->in_statement;
  if (int error = begin_statement(thd, connection)) return error;
  if (begins) connection->server_ends = true;
  connection_ = connection;
  keep_from_statement_log(thd, type);
  skip_locked_ = skips_locked(type);
  if (type >= TL_FIRST_WRITE)
    use_lock(PEREGRINE_LOCK_EXCLUSIVE);
  else if (type == TL_READ_WITH_SHARED_LOCKS || type == TL_READ_SKIP_LOCKED)
    use_lock(PEREGRINE_LOCK_SHARED);
  else
    use_lock(PEREGRINE_LOCK_NONE);
  return 0;
}

/* Releases the lock of the row last read, which does not match. */
void RowHandler::unlock_row() {
  if (lock_ == PEREGRINE_LOCK_NONE || unlikely(!connection_)) return;
  int code = peregrine_unlock_row(handle_, connection_->session);
  if (unlikely(code != PEREGRINE_OK)) report_error(code, ha_thd(), table_share->path.str);
}

/* An UPDATE reads the committed version of a row that another transaction has locked. It waits only
   if that version matches, and then reads the same row again. */
void RowHandler::try_semi_consistent_read(bool tries) {
  if (tries == semi_consistent_) return;
  semi_consistent_ = tries;
  peregrine_try_semi_consistent(handle_, tries);
}

bool RowHandler::was_semi_consistent_read() {
  return semi_consistent_ && peregrine_was_semi_consistent(handle_);
}

void RowHandler::use_lock(peregrine_lock lock) {
  lock_ = lock;
  if (skip_locked_ && lock != PEREGRINE_LOCK_NONE) lock_ |= PEREGRINE_SKIP_LOCKED;
}

}  // namespace peregrine
