/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see mariadb/handler/LICENSE). */

/* Reading rows: by key, by position, in order. */

#include "row_handler.h"
#include "errors.h"

namespace peregrine {

/* Tells the engine the key to search in, when it uses another one. */
int RowHandler::use_key(uint key) {
  if (likely(used_key_ == key)) return 0;
  int code = peregrine_use_key(handle_, key == MAX_KEY ? UINT32_MAX : key, lock_);
  if (unlikely(code != PEREGRINE_OK)) return server_error(code, ha_thd());
  used_key_ = key;
  return 0;
}

/* The engine's callback for an index entry; the record holds the entry's columns. */
int RowHandler::check_condition(void *context) {
  switch (handler_index_cond_check(context)) {
    case CHECK_POS:
      return 0;
    case CHECK_NEG:
      return 1;
    case CHECK_OUT_OF_RANGE:
      return 2;
    default:
      return 3;
  }
}

/* The engine takes the whole condition, and with it the check for the end of the range. */
Item *RowHandler::idx_cond_push(uint key, Item *condition) {
  /* Entries of the clustered key are the rows. */
  if (key == table->s->primary_key) return condition;
  /* The condition and the end of the range need the columns' values, so the entry must give them
     back. */
  if (!peregrine_key_gives_back(handle_, key)) return condition;
  pushed_idx_cond = condition;
  pushed_idx_cond_keyno = key;
  in_range_check_pushed_down = true;
  return nullptr;
}

/* Gives the engine the condition for the key in use, or removes it. */
int RowHandler::use_condition() {
  const bool wanted = pushed_idx_cond && pushed_idx_cond_keyno == active_index;
  if (likely(wanted == has_condition_)) return 0;
  has_condition_ = wanted;
  int code = peregrine_set_condition(handle_, wanted ? check_condition : nullptr,
                                     static_cast<handler *>(this),
                                     {table->record[0], words(columns_asked())});
  return finish(code, 0);
}

/* Reduces the columns that the scan reads: to those that the statement asked for, when the server
   asks for all columns of the key; or to those of the key, when another handler reads the rows. */
void RowHandler::narrow() {
  narrowed_ = false;
  if (!has_asked_ || table->read_set != &table->def_read_set || reads_whole_rows()) return;
  my_bitmap_map words[(MAX_FIELDS + 63) / 64];
  MY_BITMAP key_columns;
  my_bitmap_init(&key_columns, words, table->s->fields);
  for (uint key : {active_index, table->s->primary_key}) {
    if (key == MAX_KEY) continue;
    const KEY &parts = table->key_info[key];
    for (uint i = 0; i < parts.user_defined_key_parts; i++)
      bitmap_set_bit(&key_columns, parts.key_part[i].fieldnr - 1);
  }
  /* This handler serves another one: that of a partitioned table, which compares whole keys; or one
     that reads the rows, while this one reads their entries. */
  if (table->file != this) {
    bitmap_copy(&asked_, table->read_set);
    bitmap_intersect(&asked_, &key_columns);
    narrowed_ = true;
    return;
  }
  if (bitmap_cmp(&asked_, table->read_set) || !bitmap_cmp(&key_columns, table->read_set)) return;
  bitmap_intersect(&asked_, &key_columns);
  /* No code looks at the other columns, but sorts and join buffers copy them, so they need defined
     bytes. */
  for (Field **field = table->field; *field; field++) {
    const uint number = (*field)->field_index;
    if (!bitmap_is_set(&key_columns, number) || bitmap_is_set(&asked_, number)) continue;
    const my_ptrdiff_t at = (*field)->ptr - table->record[0];
    memcpy((*field)->ptr, table->s->default_values + at, (*field)->pack_length());
  }
  narrowed_ = true;
}

int RowHandler::search(uchar *record, const uchar *image, key_part_map parts, peregrine_seek seek,
                       int end) {
  if (unlikely(has_server_checks()) && image && is_server_check(record))
    return search_for_check(record, image, parts, seek, end);
  peregrine_session *session;
  if (int error = this->session(&session)) return error;
  if (int error = use_key(active_index)) return error;
  if (int error = use_condition()) return error;
  if (!has_range_end_) {
    int code = peregrine_set_end(handle_, nullptr, 0, 0);
    if (unlikely(code != PEREGRINE_OK)) return finish(code, end);
  }
  has_range_end_ = false;
  return finish_read(peregrine_search(handle_, session, image, parts, seek, target(record)), end);
}

int RowHandler::rnd_init(bool scan) {
  checks_ = false;
  scan_begins_ = scan;
  narrowed_ = false;
  used_key_ = kNoKey;
  return 0;
}

int RowHandler::rnd_end() {
  return 0;
}

int RowHandler::rnd_next(uchar *record) {
  peregrine_session *session;
  if (int error = this->session(&session)) return error;
  if (scan_begins_) {
    if (int error = use_key(MAX_KEY)) return error;
    scan_begins_ = false;
    return finish_read(
        peregrine_search(handle_, session, nullptr, 0, PEREGRINE_FIRST, target(record)),
        HA_ERR_END_OF_FILE);
  }
  return finish_read(peregrine_next(handle_, session, target(record)), HA_ERR_END_OF_FILE);
}

void RowHandler::position(const uchar *) {
  int code = peregrine_position(handle_, ref);
  if (likely(code == PEREGRINE_OK)) return;
  /* The server asks for positions only of rows just read, and takes no error here. The statement
     gets the error, and a position that leads to no row. */
  report_error(code, ha_thd(), table_share->path.str);
  memset(ref, kNoPosition, ref_length);
}

int RowHandler::rnd_pos(uchar *record, uchar *position) {
  peregrine_session *session;
  if (int error = this->session(&session)) return error;
  return finish_read(peregrine_read_position(handle_, session, position, lock_, target(record)),
                     HA_ERR_KEY_NOT_FOUND);
}

int RowHandler::index_init(uint key, bool) {
  active_index = key;
  checks_ = false;
  /* The lock and the condition may differ from those of the last scan. */
  if (has_condition_) {
    int code = peregrine_set_condition(handle_, nullptr, nullptr, target(nullptr));
    if (unlikely(code != PEREGRINE_OK)) return finish(code, 0);
  }
  has_condition_ = false;
  used_key_ = kNoKey;
  has_range_end_ = false;
  narrow();
  return 0;
}

int RowHandler::index_end() {
  multi_range_.dsmrr_close();
  active_index = MAX_KEY;
  checks_ = false;
  narrowed_ = false;
  has_range_end_ = false;
  return 0;
}

int RowHandler::index_read_map(uchar *record, const uchar *key, key_part_map parts,
                               ha_rkey_function function) {
  peregrine_seek seek;
  switch (function) {
    case HA_READ_KEY_EXACT:
    case HA_READ_PREFIX:
      seek = PEREGRINE_EXACT;
      break;
    case HA_READ_KEY_OR_NEXT:
      seek = PEREGRINE_AT_OR_AFTER;
      break;
    case HA_READ_AFTER_KEY:
      seek = PEREGRINE_AFTER;
      break;
    case HA_READ_KEY_OR_PREV:
    case HA_READ_PREFIX_LAST_OR_PREV:
      seek = PEREGRINE_AT_OR_BEFORE;
      break;
    case HA_READ_BEFORE_KEY:
      seek = PEREGRINE_BEFORE;
      break;
    case HA_READ_PREFIX_LAST:
      seek = PEREGRINE_EXACT_LAST;
      break;
    default:
      return HA_ERR_WRONG_COMMAND; /* searches in spatial keys */
  }
  return search(record, key, parts, seek, HA_ERR_KEY_NOT_FOUND);
}

int RowHandler::index_read_last_map(uchar *record, const uchar *key, key_part_map parts) {
  return search(record, key, parts, PEREGRINE_EXACT_LAST, HA_ERR_KEY_NOT_FOUND);
}

int RowHandler::index_first(uchar *record) {
  return search(record, nullptr, 0, PEREGRINE_FIRST, HA_ERR_END_OF_FILE);
}

int RowHandler::index_last(uchar *record) {
  return search(record, nullptr, 0, PEREGRINE_LAST, HA_ERR_END_OF_FILE);
}

int RowHandler::index_next(uchar *record) {
  peregrine_session *session;
  if (int error = this->session(&session)) return error;
  return finish_read(peregrine_next(handle_, session, target(record)), HA_ERR_END_OF_FILE);
}

int RowHandler::index_prev(uchar *record) {
  peregrine_session *session;
  if (int error = this->session(&session)) return error;
  return finish_read(peregrine_previous(handle_, session, target(record)), HA_ERR_END_OF_FILE);
}

int RowHandler::index_next_same(uchar *record, const uchar *, uint) {
  peregrine_session *session;
  if (int error = this->session(&session)) return error;
  return finish_read(peregrine_next_same(handle_, session, target(record)), HA_ERR_END_OF_FILE);
}

int RowHandler::read_range_first(const key_range *start, const key_range *end, bool equal,
                                 bool sorted) {
  /* With the end set, the engine reads no rows ahead beyond the range. */
  if (end && !equal) {
    if (int error = use_key(active_index)) return error;
    int code =
        peregrine_set_end(handle_, end->key, end->keypart_map, end->flag != HA_READ_BEFORE_KEY);
    if (unlikely(code != PEREGRINE_OK)) return server_error(code, ha_thd());
    has_range_end_ = true;
  }
  return handler::read_range_first(start, end, equal, sorted);
}

}  // namespace peregrine
