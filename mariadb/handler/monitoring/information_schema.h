/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see mariadb/handler/LICENSE). */

/* The engine's tables in INFORMATION_SCHEMA. */

#ifndef PEREGRINE_INFORMATION_SCHEMA_H
#define PEREGRINE_INFORMATION_SCHEMA_H

#include "peregrine_inspect.h"
#include "engine.h"

#include <string>

namespace peregrine {

/* Plug-ins of the same library: for maria_declare_plugin. */
extern const st_maria_plugin transactions_table;
extern const st_maria_plugin locks_table;
extern const st_maria_plugin lock_waits_table;
extern const st_maria_plugin metrics_table;

/* Returns the name of a table in the form of statements: `schema`.`table`, and its partition after
   it. */
std::string shown_table(const peregrine_row_name &row);

/* Gets the text of the statement that a connection is executing; false when it is not known.
   peregrine_options uses it as well, so it must not wait for anything that a connection holds while
   it is in the engine. */
bool statement_of(uint64_t session, String *text);
size_t peregrine_plugin_statement(uint64_t session, char *buffer, size_t capacity);

}  // namespace peregrine

#endif
