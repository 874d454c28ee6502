/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see mariadb/handler/LICENSE). */

/* Rules that the server checks itself, by a search for conflicting rows before it writes a row:
   UNIQUE over values too long for a key, which the server keeps as a hash with a plain key, and
   WITHOUT OVERLAPS. Two sessions that search at the same time must not both find nothing, and an
   old snapshot must not hide rows. So the search guards its values first, and then reads the newest
   rows. */

#include "row_handler.h"
#include "errors.h"

namespace peregrine {

bool RowHandler::has_server_checks() const {
  return table_share->long_unique_table || table_share->period.unique_keys;
}

/* Returns whether a search in the present key, into this record, is such a check. Only checks
   search by a hash; a check of a period is known by its record buffer. */
bool RowHandler::is_server_check(const uchar *record) const {
  const KEY &key = table->key_info[active_index];
  if (key.algorithm == HA_KEY_ALG_LONG_HASH) return true;
  if (!key.without_overlaps) return false;
  /* For a partition, table->file is the handler of the whole table. */
  const uchar *buffer = table->file->lookup_buffer;
  return buffer && record == buffer + table_share->max_unique_length + table_share->null_fields;
}

/* The number of first parts of the key whose values the rule compares for equality. */
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

/* Like search, but reads all columns: the rule may compare columns that the statement does not
   read. */
int RowHandler::search_for_check(uchar *record, const uchar *image, key_part_map parts,
                                 peregrine_seek seek, int end) {
  const KEY &key = table->key_info[active_index];
  const uint compared = compared_parts(key);
  const key_part_map map = make_prev_keypart_map(compared);
  /* NULL equals no value. */
  if (has_null(key, image, compared)) return end;
  peregrine_session *session;
  if (int error = this->session(&session)) return error;
  used_key_ = kNoKey;
  has_range_end_ = false;
  checks_ = true;
  int code = peregrine_use_key(handle_, active_index, PEREGRINE_LOCK_EXCLUSIVE | PEREGRINE_NEWEST);
  if (code == PEREGRINE_OK) code = peregrine_guard(handle_, session, image, map);
  /* Rows with other values need not be waited for. */
  if (code == PEREGRINE_OK) code = peregrine_set_end(handle_, image, map, 1);
  if (code == PEREGRINE_OK)
    code = peregrine_search(handle_, session, image, parts, seek, target(record));
  return finish_read(code, end);
}

}  // namespace peregrine
