/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see mariadb/handler/LICENSE). */

/* What the engine asks about sessions, and tells of their waits.

   Parallel replication commits transactions in the order of their source. A later one may have a
   row that an earlier one waits for, and wait for the earlier one's commit: only the server can see
   this circle, and it kills the later one, which tries again. So it is told who waits for whom. */

#ifndef PEREGRINE_KNOWN_SESSIONS_H
#define PEREGRINE_KNOWN_SESSIONS_H

#include "engine.h"

namespace peregrine {

/* For peregrine_options. */
extern const peregrine_sessions known_sessions;

/* The connection of a thread can be told of, by its number, until it is forgotten; false when there
   is no memory. */
bool know_session(THD *thd);
void forget_session(THD *thd);

}  // namespace peregrine

#endif
