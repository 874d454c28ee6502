/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see mariadb/handler/LICENSE). */

#include "pushdown/row_batch.h"

#include "peregrine.h"

#include <algorithm>

namespace peregrine {

bool RowBatch::has_room_for(const TABLE *table) {
  if (2 * table->s->reclength > peregrine_row_batch_bytes()) return false;
  for (Field **field = table->field; *field; field++)
    if (bitmap_is_set(table->read_set, (*field)->field_index) && (*field)->flags & BLOB_FLAG)
      return false;
  return true;
}

void RowBatch::prepare(THD *thd, TABLE *table, ha_rows rows) {
  table_ = table;
  length_ = table->s->reclength;
  const ha_rows room = peregrine_row_batch_bytes() / length_;
  const uint most = static_cast<uint>(std::min(rows, room));
  if (most < 2 || !has_room_for(table)) return;
  const uint columns = bitmap_bits_set(table->read_set);
  fields_ = static_cast<Field **>(thd->alloc((columns + 1) * sizeof(Field *)));
  records_ = static_cast<uchar *>(thd->alloc(most * length_));
  if (!fields_ || !records_) return; /* then the rows are read one by one */
  Field **to = fields_;
  for (Field **field = table->field; *field; field++)
    if (bitmap_is_set(table->read_set, (*field)->field_index)) *to++ = *field;
  *to = nullptr;
  most_ = most;
}

void RowBatch::fill(uint rows, bool last) {
  count_ = rows;
  last_ = last;
  go_to(0);
}

void RowBatch::go_to(uint row) {
  at_ = row;
  const my_ptrdiff_t first = records_ - table_->record[0];
  to_next_ = first + static_cast<my_ptrdiff_t>(row) * length_ - moved_;
}

void RowBatch::restore() {
  if (moved_) move(-moved_);
  count_ = at_ = 0;
}

}  // namespace peregrine
