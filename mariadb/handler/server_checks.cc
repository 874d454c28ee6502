/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see mariadb/handler/LICENSE). */

/* Rules about rows that the server checks itself, by looking for rows in the way before it writes
   one: UNIQUE over values too long for a key, which it keeps by a hash with a plain key, and
   WITHOUT OVERLAPS. Two sessions that look at the same time must not both find nothing, and an old
   snapshot does not count: so such a look guards what it is for, and reads the newest rows. */

#include "row_handler.h"
#include "errors.h"

namespace peregrine {

bool RowHandler::has_server_checks() const {
  return table_share->long_unique_table || table_share->period.unique_keys;
}

/* Whether a search in the present key, into this record, is such a look. Nobody else searches by
   a hash; a search for periods is known by where its row shall go. */
bool RowHandler::is_server_check(const uchar *record) const {
  const KEY &key = table->key_info[active_index];
  if (key.algorithm == HA_KEY_ALG_LONG_HASH) return true;
  if (!key.without_overlaps) return false;
  /* For a partition this is the whole table's handler. */
  const uchar *buffer = table->file->lookup_buffer;
  return buffer && record == buffer + table_share->max_unique_length + table_share->null_fields;
}

/* The number of first parts of the key whose values the rule compares as equal. */
static uint compared_parts(const KEY &key) {
  return key.without_overlaps ? key.user_defined_key_parts - 2 : key.user_defined_key_parts;
}

static bool has_null(const KEY &key, const uchar *image, uint parts) {
  for (uint n = 0; n < parts; n++) {
    if (key.key_part[n].null_bit && *image) return true;
    image += key.key_part[n].store_length;
  }
  return false;
}

/* As search: the columns of the row are all read, since what the statement reads need not be what
   the rule compares. */
int RowHandler::search_for_check(uchar *record, const uchar *image, key_part_map parts,
                                 peregrine_seek seek, int end) {
  const KEY &key = table->key_info[active_index];
  const uint compared = compared_parts(key);
  const key_part_map map = make_prev_keypart_map(compared);
  /* A value that is not there is like no other. */
  if (has_null(key, image, compared)) return end;
  peregrine_session *session;
  if (int error = this->session(&session)) return error;
  used_key_ = kNoKey;
  has_range_end_ = false;
  checks_ = true;
  int code = peregrine_use_key(handle_, active_index, PEREGRINE_LOCK_EXCLUSIVE | PEREGRINE_NEWEST);
  if (code == PEREGRINE_OK) code = peregrine_guard(handle_, session, image, map);
  /* Other values are not waited for. */
  if (code == PEREGRINE_OK) code = peregrine_set_end(handle_, image, map, 1);
  if (code == PEREGRINE_OK)
    code = peregrine_search(handle_, session, image, parts, seek, target(record));
  return finish_read(code, end);
}

}  // namespace peregrine
