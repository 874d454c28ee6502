/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see mariadb/handler/LICENSE). */

/* Rows that are read together, for a statement that the engine runs itself. */

#ifndef PEREGRINE_ROW_BATCH_H
#define PEREGRINE_ROW_BATCH_H

#include "server.h"

namespace peregrine {

/* A few records in the format of the table's own. To give the items each row without a copy, the
   batch moves the table's fields from one record to the next. */
class RowBatch {
 public:
  /* Returns whether two of the table's rows can fit. */
  static bool has_room_for(const TABLE *table);
  /* Allocates records for at most `rows` rows from the memory of the statement. Allocates none if
     not even two fit: for a long row, or for one with blobs, whose bytes stay valid only until the
     next row is read. */
  void prepare(THD *thd, TABLE *table, ha_rows rows);
  bool has_room() const { return most_ != 0; }
  uint most() const { return most_; }
  uchar *records() const { return records_; }
  uint length() const { return length_; }

  uint count() const { return count_; }
  /* The number of the row that next() goes to, from 0 on. */
  uint next_row() const { return at_; }

  /* Tells that the records hold `rows` rows; `last`: no rows come after them. next() moves the
     fields. */
  void fill(uint rows, bool last);
  bool is_last() const { return last_; }
  /* Moves the fields to the next row; false when there is none. */
  bool next() {
    if (at_ == count_) return false;
    at_++;
    move(to_next_);
    to_next_ = length_;
    return true;
  }
  /* Makes `row` the row that next() goes to, from 0 on. */
  void go_to(uint row);
  /* Moves the fields back to the table's own record. */
  void restore();

 private:
  void move(my_ptrdiff_t by) {
    for (Field **field = fields_; *field; field++) (*field)->move_field_offset(by);
    moved_ += by;
  }

  TABLE *table_ = nullptr;
  uchar *records_ = nullptr;
  /* The fields that are read, and a null behind them. */
  Field **fields_ = nullptr;
  /* Length of a record in bytes. */
  uint length_ = 0;
  uint most_ = 0;
  uint count_ = 0;
  uint at_ = 0;
  bool last_ = false;
  /* The distance of the fields from the table's own record, and to the next row. */
  my_ptrdiff_t moved_ = 0;
  my_ptrdiff_t to_next_ = 0;
};

}  // namespace peregrine

#endif
