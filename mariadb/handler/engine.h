/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see mariadb/handler/LICENSE). */

/* What all parts of the plug-in share: the engine, the handlerton, the user's choices. */

#ifndef PEREGRINE_ENGINE_H
#define PEREGRINE_ENGINE_H

#include "server.h"
#include "peregrine.h"

namespace peregrine {

/* Set while the plug-in is loaded. */
extern handlerton *hton;
extern peregrine_engine *engine;

/* The name by which the server knows the engine. */
constexpr const char *kEngineName = "PEREGRINE";

constexpr const char *kAuthor = "The Peregrine developers";
constexpr uint kVersion = 0x0001;
constexpr const char *kVersionText = "0.1";

/* Bytes of a page, for the server's cost model. */
constexpr uint kPageSize = 16384;

/* The names of temporary tables begin with this in the engine. No schema has a name like it, as
   '#' is always encoded in file names. */
constexpr const char *kTemporaryPrefix = "#temporary/";

/* How long the statement may wait for a row lock, in seconds. */
uint lock_wait_seconds(THD *thd);

/* Whether the statement may be run by the engine itself. */
bool pushes_down(THD *thd);

/* Whether error 1205 rolls back the transaction, and not the statement alone. */
bool rollback_on_timeout();
/* Whether the values that a statement takes from an AUTO_INCREMENT counter follow one another. */
enum class AutoIncrementMode : ulong {
  kTraditional = 0, /* always */
  kConsecutive = 1, /* as above; a statement of known length keeps others out for a moment only */
  kInterleaved = 2  /* where the statement's length is known */
};
AutoIncrementMode auto_increment_mode();

/* table_options.cc */
extern ha_create_table_option table_options[];

/* What LOCKING says; an error is reported, and false returned, for a value that it does not take.
 */
bool read_locking(const ha_table_option_struct *options, uint32_t *locking);

/* create.cc: drops a table, also where the transaction of the thread has used it: a temporary one,
   or one that could not be filled. */
int drop_table(THD *thd, const char *path);

/* plugin.cc */
extern st_mysql_sys_var *system_variables[];

/* status.cc */
extern st_mysql_show_var status_variables[];
bool show_engine_status(handlerton *hton, THD *thd, stat_print_fn *print, ha_stat_type type);

}  // namespace peregrine

#endif
