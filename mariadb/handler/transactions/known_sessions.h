/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see mariadb/handler/LICENSE). */

/* The engine's questions about sessions, and its reports of their waits.

   Parallel replication commits transactions in the order of their source. A later transaction may
   hold a row that an earlier one waits for, while it waits for the earlier one's commit. Only the
   server can see this cycle; it kills the later transaction, which then tries again. So the engine
   tells the server which session waits for which. */

#ifndef PEREGRINE_KNOWN_SESSIONS_H
#define PEREGRINE_KNOWN_SESSIONS_H

#include "engine.h"

namespace peregrine {

/* The functions for peregrine_options. */
extern const peregrine_sessions known_sessions;

/* Registers the connection of a thread by its number, until forget_session; false when there is no
   memory. */
bool know_session(THD *thd);
void forget_session(THD *thd);

}  // namespace peregrine

#endif
