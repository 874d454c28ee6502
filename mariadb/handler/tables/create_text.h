/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see mariadb/handler/LICENSE). */

/* What a CREATE TABLE says of a table, in utf8mb4: the engine keeps it for `peregrine dump`, and
 * reads none of it. */

#ifndef PEREGRINE_CREATE_TEXT_H
#define PEREGRINE_CREATE_TEXT_H

#include "server.h"

#include <string>

namespace peregrine {

/* The type of a column that no statement sees, such as the hash of a long unique value. */
extern const char *const kHiddenType;

/* A column's type; empty where who reads the files without a server could not read its values. */
std::string sql_type(const Field *field);

/* What stands behind a column's type and its NULL, with a space in front. */
std::string column_rest(const TABLE *table, Field *field);

/* What else there is, as peregrine_definition has it. */
std::string table_rest(const TABLE *table);

/* Whether a column has no values in the engine's rows. */
bool is_absent(const Field *field);

}  // namespace peregrine

#endif
