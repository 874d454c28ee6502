/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see mariadb/handler/LICENSE). */

/* The columns that are read of a table, for a statement that the engine runs itself. */

#ifndef PEREGRINE_READ_COLUMNS_H
#define PEREGRINE_READ_COLUMNS_H

#include "server.h"

namespace peregrine {

/* Stands in for the columns that the server would have read, until it is restored. */
class ReadColumns {
 public:
  /* From here on no columns are read; true: no memory. */
  bool begin(THD *thd, TABLE *table);
  /* Those, too, that an expression, or each of a list, names. */
  void add(Item *item);
  void add(List<Item> &list);
  void add(const Field *field) { bitmap_set_bit(&columns_, field->field_index); }
  /* Leaves the table as the server had it. */
  void restore();

 private:
  TABLE *table_ = nullptr;
  MY_BITMAP columns_;
  MY_BITMAP *server_columns_ = nullptr;
};

}  // namespace peregrine

#endif
