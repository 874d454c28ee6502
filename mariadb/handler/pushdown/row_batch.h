/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see mariadb/handler/LICENSE). */

/* Rows that are read together, for a statement that the engine runs itself. */

#ifndef PEREGRINE_ROW_BATCH_H
#define PEREGRINE_ROW_BATCH_H

#include "server.h"

namespace peregrine {

/* A few records like the table's own. The columns of the table that are read are moved from one
   record to the next, so that items find each row without a copy of it. */
class RowBatch {
 public:
  /* Whether there can be room for two of the table's rows. */
  static bool has_room_for(const TABLE *table);
  /* Makes room for as many of `rows` as are read together, in the memory of the statement. Without
     room for two there is none: a row with blobs, whose bytes are good until the next one is read,
     or a long one. */
  void prepare(THD *thd, TABLE *table, ha_rows rows);
  bool has_room() const { return most_ != 0; }
  uint most() const { return most_; }
  uchar *records() const { return records_; }
  uint length() const { return length_; }

  uint count() const { return count_; }
  /* Which row next() goes to, from 0 on. */
  uint next_row() const { return at_; }

  /* The records have been filled: so many rows; `last`: none come behind them. The columns are
     moved by next(). */
  void fill(uint rows, bool last);
  bool is_last() const { return last_; }
  /* Moves the columns to the next row; false where there is none. */
  bool next() {
    if (at_ == count_) return false;
    at_++;
    move(to_next_);
    to_next_ = length_;
    return true;
  }
  /* The next row is that one, from 0 on. */
  void go_to(uint row);
  /* Moves the columns back to the table's own record. */
  void restore();

 private:
  void move(my_ptrdiff_t by) {
    for (Field **field = fields_; *field; field++) (*field)->move_field_offset(by);
    moved_ += by;
  }

  TABLE *table_ = nullptr;
  uchar *records_ = nullptr;
  /* The columns that are read, and a null behind them. */
  Field **fields_ = nullptr;
  /* Of a record, in bytes. */
  uint length_ = 0;
  uint most_ = 0;
  uint count_ = 0;
  uint at_ = 0;
  bool last_ = false;
  /* How far the columns are from the table's own record, and from the next row. */
  my_ptrdiff_t moved_ = 0;
  my_ptrdiff_t to_next_ = 0;
};

}  // namespace peregrine

#endif
