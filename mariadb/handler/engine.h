/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see mariadb/handler/LICENSE). */

/* Declarations that all parts of the plug-in share: the engine, the handlerton, the user's
   settings. */

#ifndef PEREGRINE_ENGINE_H
#define PEREGRINE_ENGINE_H

#include "server.h"
#include "peregrine.h"

namespace peregrine {

/* Null unless the plug-in is loaded. */
extern handlerton *hton;
extern peregrine_engine *engine;

/* The name by which the server knows the engine. */
constexpr const char *kEngineName = "PEREGRINE";

constexpr const char *kAuthor = "The Peregrine developers";
constexpr uint kVersion = 0x0001;
constexpr const char *kVersionText = "0.1";

/* Bytes of a page, for the server's cost model. */
constexpr uint kPageSize = 16384;

/* The prefix of the names of temporary tables in the engine. No schema has such a name, since the
   server always encodes '#' in file names. */
constexpr const char *kTemporaryPrefix = "#temporary/";

/* The most seconds that the statement may wait for a row lock. */
uint lock_wait_seconds(THD *thd);

/* Returns whether the engine may run the statement itself. */
bool pushes_down(THD *thd);

/* Returns whether error 1205 rolls back the whole transaction instead of the statement alone. */
bool rollback_on_timeout();
/* When the values that a statement takes from an AUTO_INCREMENT counter are consecutive. */
enum class AutoIncrementMode : ulong {
  kTraditional = 0, /* always */
  kConsecutive = 1, /* as above; statements of known length hold the lock only while they reserve */
  kInterleaved = 2  /* only when the statement's length is known */
};
AutoIncrementMode auto_increment_mode();

/* table_options.cc */
extern ha_create_table_option table_options[];

/* Reads the option LOCKING. For an invalid value reports an error and returns false. */
bool read_locking(const ha_table_option_struct *options, uint32_t *locking);

/* create.cc: drops a table, even when the thread's transaction has used it, as with a temporary
   table, or one that could not be filled. */
int drop_table(THD *thd, const char *path);

/* plugin.cc */
extern st_mysql_sys_var *system_variables[];

/* status.cc */
extern st_mysql_show_var status_variables[];
bool show_engine_status(handlerton *hton, THD *thd, stat_print_fn *print, ha_stat_type type);

}  // namespace peregrine

#endif
