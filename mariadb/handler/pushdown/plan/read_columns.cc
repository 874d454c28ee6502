/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see mariadb/handler/LICENSE). */

#include "pushdown/plan/read_columns.h"

namespace peregrine {

bool ReadColumns::begin(THD *thd, TABLE *table) {
  auto *words = static_cast<my_bitmap_map *>(thd->calloc(table->s->column_bitmap_size));
  if (!words) return true;
  my_bitmap_init(&columns_, words, table->s->fields);
  table_ = table;
  server_columns_ = table->read_set;
  table->read_set = &columns_;
  return false;
}

void ReadColumns::add(Item *item) {
  item->walk(&Item::register_field_in_read_map, true, table_);
}

void ReadColumns::add(List<Item> &list) {
  List_iterator_fast<Item> each(list);
  while (Item *item = each++) add(item);
}

void ReadColumns::restore() {
  if (server_columns_) table_->read_set = server_columns_;
  server_columns_ = nullptr;
}

}  // namespace peregrine
