/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see mariadb/handler/LICENSE). */

/* The columns that are read of a table, for a statement that the engine runs itself. */

#ifndef PEREGRINE_READ_COLUMNS_H
#define PEREGRINE_READ_COLUMNS_H

#include "server.h"

namespace peregrine {

/* Replaces the server's set of columns to read, until it is restored. */
class ReadColumns {
 public:
  /* Starts with an empty set; true: no memory. */
  bool begin(THD *thd, TABLE *table);
  /* Adds the columns that an expression, or each of a list, names. */
  void add(Item *item);
  void add(List<Item> &list);
  void add(const Field *field) { bitmap_set_bit(&columns_, field->field_index); }
  /* Restores the server's set. */
  void restore();

 private:
  TABLE *table_ = nullptr;
  MY_BITMAP columns_;
  MY_BITMAP *server_columns_ = nullptr;
};

}  // namespace peregrine

#endif
