/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see mariadb/handler/LICENSE). */

/* Inserting, changing and deleting rows; automatic values. */

#include "row_handler.h"
#include "errors.h"

namespace peregrine {

/* Records the key and the position of a duplicate row, and returns the error. */
int RowHandler::finish_change(int code) {
  if (likely(code == PEREGRINE_OK)) return 0;
  if (code == PEREGRINE_DUPLICATE) {
    connection_->duplicate_key = peregrine_error_key();
    /* When the duplicate row is not known, a statement that wants to change it must get an
       error. */
    memset(dup_ref, kNoPosition, ref_length);
    int position = peregrine_duplicate_position(handle_, connection_->session, dup_ref);
    if (unlikely(position != PEREGRINE_OK && position != PEREGRINE_END)) code = position;
  }
  return server_error(code, ha_thd(), HA_ERR_KEY_NOT_FOUND);
}

/* How the engine locks a duplicate row. A statement that changes or replaces it reads it first, and
   the row must then still exist and still be the duplicate. */
peregrine_lock RowHandler::duplicate_lock() const {
  /* The server does not announce REPLACE when the table has triggers for DELETE. */
  const bool changes =
      changes_duplicates_ || (table->triggers && ha_thd()->lex->duplicates == DUP_REPLACE);
  return changes ? PEREGRINE_LOCK_EXCLUSIVE : PEREGRINE_LOCK_NONE;
}

int RowHandler::write_row(const uchar *record) {
  peregrine_session *session;
  if (int error = this->session(&session)) return error;
  const bool may_count = table->next_number_field && record == table->record[0];
  if (may_count) {
    auto_increment_error_ = 0;
    if (int error = update_auto_increment())
      return auto_increment_error_ ? auto_increment_error_ : error;
  }
  int code = peregrine_insert(handle_, session, record, duplicate_lock());
  if (int error = finish_change(code)) return error;
  /* The value was not reserved: it is the user's, or that of SET INSERT_ID. */
  if (may_count && (!insert_id_for_cur_row || insert_id_for_cur_row >= reserved_end_))
    raise_auto_increment();
  /* An UPDATE that moves a row to this partition brings the automatic value with it. */
  if (!table->next_number_field && table->found_next_number_field && record == table->record[0])
    raise_auto_increment();
  return 0;
}

int RowHandler::update_row(const uchar *old_record, const uchar *new_record) {
  peregrine_session *session;
  if (int error = this->session(&session)) return error;
  int code = peregrine_update(handle_, session, old_record, new_record, words(table->write_set));
  if (code == PEREGRINE_END) return HA_ERR_RECORD_IS_THE_SAME;
  if (int error = finish_change(code)) return error;
  if (table->found_next_number_field && new_record == table->record[0] &&
      bitmap_is_set(table->write_set, table->found_next_number_field->field_index))
    raise_auto_increment();
  return 0;
}

int RowHandler::delete_row(const uchar *) {
  peregrine_session *session;
  if (int error = this->session(&session)) return error;
  return finish_change(peregrine_delete(handle_, session));
}

/* `rows`: about how many rows will be inserted; 0 when unknown. */
void RowHandler::start_bulk_insert(ha_rows rows, uint) {
  /* The server searches for each row before it writes the next, so the engine could defer
     nothing. */
  if (has_server_checks()) return;
  peregrine_session *session;
  if ((rows && rows < peregrine_bulk_insert_rows()) || this->session(&session)) return;
  bulk_insert_ = peregrine_begin_bulk_insert(handle_, session) == PEREGRINE_OK;
}

int RowHandler::end_bulk_insert() {
  if (!bulk_insert_) return 0;
  bulk_insert_ = false;
  /* The server calls this after an error, too. The rollback of the statement then drops the
     deferred entries; inserting them could take long and wait for other transactions. When the rows
     stay, as on a replica that skips the error, the entries go in before any operation that needs
     them. */
  if (ha_thd()->is_error()) return 0;
  peregrine_session *session;
  int error = this->session(&session);
  if (!error) error = finish(peregrine_end_bulk_insert(handle_, session), 0);
  /* Some callers report my_errno instead of the returned error. */
  if (error) my_errno = error;
  return error;
}

/* Raises the counter above the value that the user gave to the automatic column of the row just
   written. */
void RowHandler::raise_auto_increment() {
  Field *field = table->found_next_number_field;
  if (field->is_null()) return;
  /* The column need not be in the read set. */
  MY_BITMAP *old_map = dbug_tmp_use_all_columns(table, &table->read_set);
  /* Fractions, and numbers beyond those that the column holds exactly, do not raise the counter. */
  const ulonglong max = field->get_max_int_value();
  ulonglong next = 0;
  if (field->result_type() == REAL_RESULT) {
    const double value = field->val_real();
    if (value > 0 && value <= static_cast<double>(max)) next = static_cast<ulonglong>(value);
  } else {
    const longlong value = field->val_int();
    if (value > 0 || field->flags & UNSIGNED_FLAG) next = static_cast<ulonglong>(value);
  }
  dbug_tmp_restore_column_map(&table->read_set, old_map);
  if (next == 0) return;
  if (next != ULONGLONG_MAX) next++;
  int code = peregrine_table_raise_auto_increment(share_->table, next);
  if (unlikely(code != PEREGRINE_OK)) report_error(code, ha_thd(), table_share->path.str);
}

/* Returns whether the number of rows is known from the statement's text, or rows come one at a
   time. */
static bool is_simple_insert(THD *thd) {
  switch (thd_sql_command(thd)) {
    case SQLCOM_INSERT:
    case SQLCOM_REPLACE:
    case SQLCOM_END: /* a replica's row event */
      return true;
    default:
      return false;
  }
}

/* Takes the lock of the counter, when the mode requires it; false: that failed. */
bool RowHandler::lock_auto_increment(bool *for_a_moment) {
  *for_a_moment = false;
  const AutoIncrementMode mode = auto_increment_mode();
  if (likely(mode == AutoIncrementMode::kInterleaved) || locked_auto_increment_) return true;
  peregrine_session *session;
  auto_increment_error_ = this->session(&session);
  if (!auto_increment_error_)
    auto_increment_error_ =
        server_error(peregrine_auto_increment_lock(session, share_->table), ha_thd());
  if (auto_increment_error_) return false;
  locked_auto_increment_ = true;
  *for_a_moment = mode == AutoIncrementMode::kConsecutive && is_simple_insert(ha_thd());
  return true;
}

void RowHandler::unlock_auto_increment() {
  if (locked_auto_increment_ && connection_) {
    int code = peregrine_auto_increment_unlock(connection_->session, share_->table);
    if (unlikely(code != PEREGRINE_OK)) report_error(code, ha_thd(), table_share->path.str);
  }
  locked_auto_increment_ = false;
}

void RowHandler::get_auto_increment(ulonglong offset, ulonglong increment, ulonglong wanted,
                                    ulonglong *first, ulonglong *reserved) {
  const ulonglong max = table->next_number_field->get_max_int_value();
  uint64_t value = 0;
  if (offset > increment) offset = 1; /* as the server does it */
  bool for_a_moment;
  if (!lock_auto_increment(&for_a_moment)) {
    *first = ULONGLONG_MAX;
    *reserved = 0;
    return;
  }
  int code = peregrine_table_reserve_auto_increment(share_->table, MY_MAX(wanted, 1ULL), increment,
                                                    offset, max, &value);
  if (code == PEREGRINE_TOO_LARGE) {
    /* Fewer values may be left than wanted. */
    wanted = 1;
    code = peregrine_table_reserve_auto_increment(share_->table, 1, increment, offset, max, &value);
  }
  if (for_a_moment) unlock_auto_increment();
  if (code == PEREGRINE_OK) {
    *first = value;
    *reserved = MY_MAX(wanted, 1ULL);
    reserved_end_ = value + *reserved * increment;
  } else {
    /* Beyond the column's greatest value: the server reports the error. */
    *first = max == ULONGLONG_MAX || code != PEREGRINE_TOO_LARGE ? ULONGLONG_MAX : max + 1;
    *reserved = 0;
  }
}

/* The statement has ended: its reserved values that were not used are free again. */
void RowHandler::release_auto_increment() {
  if (reserved_end_ && next_insert_id && next_insert_id < reserved_end_) {
    int code = peregrine_table_return_auto_increment(share_->table, next_insert_id, reserved_end_);
    /* When other statements have reserved values since, there is nothing to return. */
    if (unlikely(code != PEREGRINE_OK && code != PEREGRINE_END))
      report_error(code, ha_thd(), table_share->path.str);
  }
  reserved_end_ = 0;
  unlock_auto_increment();
}

int RowHandler::reset_auto_increment(ulonglong value) {
  return finish(peregrine_table_set_auto_increment(share_->table, value), 0);
}

}  // namespace peregrine
