/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see mariadb/handler/LICENSE). */

#include "errors.h"
#include "transactions/transactions.h"

namespace peregrine {

String last_error_text() {
  char buffer[1024];
  size_t length = peregrine_error_message(buffer, sizeof buffer);
  String text;
  text.copy(buffer, MY_MIN(length, sizeof buffer - 1), &my_charset_utf8mb4_general_ci);
  return text;
}

static void log_error(const char *what) {
  sql_print_error("Peregrine: %s: %s", what, last_error_text().c_ptr_safe());
}

/* Asks the server to undo the statement, or the whole transaction. The server keeps only the last
   request, so an error that follows in the same statement must not reduce a request for the whole
   transaction. */
static void ask_for_rollback(THD *thd, bool all) {
  if (thd) thd->mark_transaction_to_rollback(all || thd->transaction_rollback_request);
}

/* The error for a conflict in a table with LOCKING=OPTIMISTIC: the row was changed since the
   snapshot, or another transaction has it and the wait of a thread that applies events has ended. A
   replica with slave_exec_mode=IDEMPOTENT takes a changed record for an event that was applied
   before, and drops the event. After a lock wait timeout it tries again. */
static int changed_error(THD *thd) {
  return thd && applies_events(thd) ? HA_ERR_LOCK_WAIT_TIMEOUT : HA_ERR_RECORD_CHANGED;
}

int server_error(int code, THD *thd, int end) {
  switch (code) {
    case PEREGRINE_OK:
      return 0;
    case PEREGRINE_END:
      return end;
    case PEREGRINE_DUPLICATE:
      return HA_ERR_FOUND_DUPP_KEY;
    case PEREGRINE_DEADLOCK:
    case PEREGRINE_CONFLICT:
      /* Both mean: begin the transaction again. Applications do that at error 1213, SQLSTATE
         40001. */
      ask_for_rollback(thd, true);
      return HA_ERR_LOCK_DEADLOCK;
    case PEREGRINE_LOG_LIMIT:
      /* Not the number of a deadlock: a retry would reach the same limit. */
      ask_for_rollback(thd, true);
      break;
    case PEREGRINE_LOCK_TIMEOUT:
    case PEREGRINE_LOCK_NOT_AVAILABLE:
      ask_for_rollback(thd, rollback_on_timeout());
      return HA_ERR_LOCK_WAIT_TIMEOUT;
    case PEREGRINE_ROW_CHANGED:
      ask_for_rollback(thd, false);
      return changed_error(thd);
    case PEREGRINE_INTERRUPTED:
      return HA_ERR_ABORTED_BY_USER;
    case PEREGRINE_NO_SUCH_TABLE:
      return HA_ERR_NO_SUCH_TABLE;
    case PEREGRINE_TABLE_EXISTS:
      return HA_ERR_TABLE_EXIST;
    case PEREGRINE_BUSY:
      return HA_ERR_LOCK_WAIT_TIMEOUT;
    case PEREGRINE_DEFINITION:
      log_error("table definition");
      return HA_ERR_TABLE_DEF_CHANGED;
    case PEREGRINE_TABLE_NEWER:
      return HA_ERR_TABLE_DEF_CHANGED;
    case PEREGRINE_NO_SPACE:
      log_error("disk full");
      /* The server's own text names the table; this one names the file. */
      if (thd)
        push_warning(thd, Sql_condition::WARN_LEVEL_WARN, ER_DISK_FULL,
                     last_error_text().c_ptr_safe());
      return ENOSPC;
    case PEREGRINE_OUT_OF_MEMORY:
      log_error("out of memory");
      /* The server's own text does not say what needed the memory. */
      if (thd)
        push_warning(thd, Sql_condition::WARN_LEVEL_WARN, ER_OUT_OF_RESOURCES,
                     last_error_text().c_ptr_safe());
      return HA_ERR_OUT_OF_MEM;
    case PEREGRINE_CORRUPT:
      /* Not HA_ERR_CRASHED: its text names no page, and advises a repair that does not exist. */
      log_error("corruption");
      break;
    case PEREGRINE_IO:
    case PEREGRINE_FORMAT:
    case PEREGRINE_STOPPED:
    case PEREGRINE_INTERNAL:
      log_error("error");
      break;
    default:
      break;
  }
  return kFirstOwnError + code;
}

int report_error(int code, THD *thd, const char *table) {
  int error = server_error(code, thd);
  if (!thd || thd->is_error()) return error;
  if (is_prefix(table, "./")) table += 2;
  if (error == ENOSPC)
    my_printf_error(ER_DISK_FULL, "Table %s: %s", MYF(0), table, last_error_text().c_ptr_safe());
  else if (error == HA_ERR_OUT_OF_MEM)
    my_printf_error(ER_OUT_OF_RESOURCES, "Table %s: %s", MYF(0), table,
                    last_error_text().c_ptr_safe());
  else if (error > kFirstOwnError)
    my_printf_error(ER_GET_ERRMSG, "Table %s: %s", MYF(0), table, last_error_text().c_ptr_safe());
  return error;
}

int report_session_error(int code, THD *thd, uint number) {
  int error = server_error(code, thd);
  const bool has_text = error == ENOSPC || error == HA_ERR_OUT_OF_MEM || error > kFirstOwnError;
  if (has_text && thd && !thd->is_error())
    my_printf_error(number, "Peregrine: %s", MYF(0), last_error_text().c_ptr_safe());
  /* Applications know by this number that they must begin again, even if the server drops the
     errors of row calls. */
  if (error == HA_ERR_LOCK_DEADLOCK && thd && !thd->is_error()) my_error(ER_LOCK_DEADLOCK, MYF(0));
  return error;
}

}  // namespace peregrine
