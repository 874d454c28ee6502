/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see mariadb/handler/LICENSE). */

/* Reads of many ranges of a key at once: the server's own disk sweep (DS-MRR), as in InnoDB. A
   second handler of the table reads only the entries of the key. This handler then reads their rows
   in the order of the clustered key. Batched key access of joins uses it, too. */

#include "row_handler.h"

namespace peregrine {

/* Locking reads go row by row, in the order of the key: the lock of a row that does not match is
   released before the next row is read. */
static uint mode_for(bool reads_snapshots, uint mode) {
  return reads_snapshots ? mode : mode | HA_MRR_USE_DEFAULT_IMPL;
}

int RowHandler::multi_range_read_init(RANGE_SEQ_IF *ranges, void *context, uint count, uint mode,
                                      HANDLER_BUFFER *buffer) {
  return multi_range_.dsmrr_init(this, ranges, context, count, mode_for(reads_snapshots(), mode),
                                 buffer);
}

int RowHandler::multi_range_read_next(range_id_t *range) {
  return multi_range_.dsmrr_next(range);
}

ha_rows RowHandler::multi_range_read_info_const(uint key, RANGE_SEQ_IF *ranges, void *context,
                                                uint count, uint *buffer_size, uint *mode,
                                                Cost_estimate *cost) {
  multi_range_.init(this, table);
  *mode = mode_for(reads_snapshots(), *mode);
  return multi_range_.dsmrr_info_const(key, ranges, context, count, buffer_size, mode, cost);
}

ha_rows RowHandler::multi_range_read_info(uint key, uint count, uint rows, uint parts,
                                          uint *buffer_size, uint *mode, Cost_estimate *cost) {
  multi_range_.init(this, table);
  *mode = mode_for(reads_snapshots(), *mode);
  return multi_range_.dsmrr_info(key, count, rows, parts, buffer_size, mode, cost);
}

int RowHandler::multi_range_read_explain_info(uint mode, char *text, size_t size) {
  return multi_range_.dsmrr_explain_info(mode, text, size);
}

}  // namespace peregrine
