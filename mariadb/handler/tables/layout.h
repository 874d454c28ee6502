/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see mariadb/handler/LICENSE). */

/* The engine's description of a table of the server. */

#ifndef PEREGRINE_LAYOUT_H
#define PEREGRINE_LAYOUT_H

#include "engine.h"

#include <string>
#include <vector>

namespace peregrine {

/* A definition and the memory that it points to. */
class TableLayout {
 public:
  /* Reads a table's columns and keys. The table's names must outlive this object. */
  explicit TableLayout(const TABLE *table);

  const peregrine_definition *definition() const { return &definition_; }

  /* A column that can't be stored, as "column c of type t"; empty when all can. */
  const std::string &refused() const { return refused_; }

 private:
  void add_column(const TABLE *table, Field *field);
  void add_null(const TABLE *table, Field *field);
  void keep_one_column();
  void add_key(const TABLE *table, const KEY &key);

  peregrine_definition definition_{};
  std::vector<peregrine_column> columns_;
  std::vector<std::string> texts_;
  std::string rest_;
  std::vector<peregrine_key> keys_;
  std::vector<std::vector<peregrine_key_part>> parts_;
  std::vector<uchar> nulls_;
  std::string refused_;
};

/* Returns whether values of a type are whole numbers of 1 to 8 bytes. */
bool is_integer(enum_field_types type);

/* Returns the engine's name of a table, given the server's path. */
std::string table_name(const char *path);

}  // namespace peregrine

#endif
