/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see mariadb/handler/LICENSE). */

/* The text of a table's CREATE TABLE, in utf8mb4: the engine keeps it for `peregrine dump`, and
   does not interpret it. */

#ifndef PEREGRINE_CREATE_TEXT_H
#define PEREGRINE_CREATE_TEXT_H

#include "server.h"

#include <string>

namespace peregrine {

/* The type of a column that no statement sees, such as the hash of a long unique value. */
extern const char *const kHiddenType;

/* Returns a column's type; empty for values that can't be read from the files without a server. */
std::string sql_type(const Field *field);

/* Returns the text after a column's type and NULL, with a space in front. */
std::string column_rest(const TABLE *table, Field *field);

/* Returns the rest of the definition, in the form of peregrine_definition. */
std::string table_rest(const TABLE *table);

/* Returns whether a column has no values in the engine's rows. */
bool is_absent(const Field *field);

}  // namespace peregrine

#endif
