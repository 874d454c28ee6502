/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see mariadb/handler/LICENSE). */

/* Reading and aggregating the rows of a key range for a statement that the engine runs itself. The
   calls are counted like the server's own. */

#include "row_handler.h"
#include "errors.h"

#include <algorithm>
#include <numeric>

namespace peregrine {

/* Returns the number of marks with value 1; the others are 0. */
static ha_rows count_of(const uchar *marks, uint rows) {
  return std::accumulate(marks, marks + rows, ha_rows{0});
}

/* Counts rows read by a key; MAX_KEY: without a key. */
void RowHandler::count_rows(uint key, ha_rows rows) {
  rows_read += rows;
  index_rows_read[key] += rows;
}

int RowHandler::first_of_range(const KeyRange &range) {
  peregrine_session *session;
  if (int error = this->session(&session)) return error;
  if (int error = use_key(range.key)) return error;
  int code = peregrine_set_end(handle_, range.high, range.high_parts, range.high_inclusive);
  if (unlikely(code != PEREGRINE_OK)) return server_error(code, ha_thd());
  peregrine_seek seek = PEREGRINE_FIRST;
  if (range.equal)
    seek = PEREGRINE_EXACT;
  else if (range.low)
    seek = range.low_inclusive ? PEREGRINE_AT_OR_AFTER : PEREGRINE_AFTER;
  table->in_use->status_var.ha_read_key_count++;
  code = peregrine_search(handle_, session, range.low, range.low_parts, seek,
                          target(table->record[0]));
  if (likely(code == PEREGRINE_OK)) count_rows(range.key, 1);
  return finish(code, HA_ERR_END_OF_FILE);
}

int RowHandler::next_of_range(const KeyRange &range) {
  if (range.unique) return HA_ERR_END_OF_FILE;
  peregrine_session *session;
  if (int error = this->session(&session)) return error;
  table->in_use->status_var.ha_read_next_count++;
  const peregrine_target into = target(table->record[0]);
  const int code = range.equal ? peregrine_next_same(handle_, session, into)
                               : peregrine_next(handle_, session, into);
  if (likely(code == PEREGRINE_OK)) count_rows(range.key, 1);
  return finish(code, HA_ERR_END_OF_FILE);
}

int RowHandler::next_rows_of_range(const KeyRange &range, RowBatch *batch, ha_rows wanted) {
  peregrine_session *session;
  if (int error = this->session(&session)) return error;
  const size_t most = std::min<ha_rows>(wanted, batch->most());
  size_t rows = 0;
  const int code = peregrine_next_rows(handle_, session, target(batch->records()), batch->length(),
                                       most, range.equal, &rows);
  table->in_use->status_var.ha_read_next_count += rows + (rows < most);
  count_rows(range.key, rows);
  batch->fill(static_cast<uint>(rows), rows < most);
  return finish(code, HA_ERR_END_OF_FILE);
}

/* Reads the rows of clustered key values, each into the record at its place. `wanted` selects the
   rows, and afterwards tells which exist. */
int RowHandler::rows_of_keys(const uchar *keys, uint key_length, RowBatch *batch, uint rows,
                             uchar *wanted) {
  peregrine_session *session;
  if (int error = this->session(&session)) return error;
  if (int error = use_key(table->s->primary_key)) return error;
  table->in_use->status_var.ha_read_key_count += count_of(wanted, rows);
  const int code = peregrine_multi_get(handle_, session, keys, key_length, rows,
                                       target(batch->records()), batch->length(), wanted);
  if (likely(code == PEREGRINE_OK)) count_rows(table->s->primary_key, count_of(wanted, rows));
  batch->fill(rows, false);
  return finish(code, HA_ERR_END_OF_FILE);
}

/* Sets the tests and the group of the next aggregates; the engine forgets them after these. */
int RowHandler::prepare_rows(const KeyRange &range) {
  int code = PEREGRINE_OK;
  if (range.test_count) code = peregrine_set_tests(handle_, range.tests, range.test_count);
  if (code == PEREGRINE_OK && range.group)
    code = peregrine_set_group(handle_, range.group->field_index);
  return code;
}

bool RowHandler::can_aggregate(const KeyRange &range, const peregrine_aggregate *wanted,
                               uint count) {
  return !use_key(range.key) && peregrine_can_aggregate(handle_, wanted, count) == PEREGRINE_OK &&
         prepare_rows(range) == PEREGRINE_OK;
}

int RowHandler::aggregate_range(const KeyRange &range, const peregrine_aggregate *wanted,
                                uint count) {
  peregrine_session *session;
  if (int error = this->session(&session)) return error;
  if (int error = use_key(range.key)) return error;
  int code = range.equal
                 ? peregrine_set_end(handle_, range.low, range.low_parts, true)
                 : peregrine_set_end(handle_, range.high, range.high_parts, range.high_inclusive);
  if (likely(code == PEREGRINE_OK)) code = prepare_rows(range);
  if (unlikely(code != PEREGRINE_OK)) return server_error(code, ha_thd());
  /* The aggregates may take long, and a KILL may have reached only another session of the
     thread. */
  if (unlikely(table->in_use->killed != NOT_KILLED)) peregrine_session_kill(session);
  table->in_use->status_var.ha_read_key_count++;
  return finish(peregrine_aggregate_range(handle_, session, range.low, range.low_parts,
                                          range.low_inclusive, wanted, count),
                HA_ERR_END_OF_FILE);
}

int RowHandler::aggregate_number(uint n, AggregateNumber *out) {
  return finish(peregrine_aggregate_number(handle_, n, &out->high, &out->low, &out->values), 0);
}

/* Goes to the next group, and writes its value into its column of the table's record. */
int RowHandler::next_group() {
  return finish(peregrine_next_group(handle_, table->record[0]), HA_ERR_END_OF_FILE);
}

/* Writes MIN or MAX into its column of the table's record. */
int RowHandler::aggregate_value(uint n) {
  return finish(peregrine_aggregate_value(handle_, n, table->record[0]), HA_ERR_END_OF_FILE);
}

}  // namespace peregrine
