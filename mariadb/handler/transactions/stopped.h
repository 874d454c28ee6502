/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see mariadb/handler/LICENSE). */

/* The server's end where the engine did not open, or has stopped. */

#ifndef PEREGRINE_STOPPED_H
#define PEREGRINE_STOPPED_H

#include "engine.h"

namespace peregrine {

/* The engine did not open: the server does not start, where it might forget what it has decided
   about the engine's prepared transactions. */
void refuse_start_without_engine();

/* Commits can't be made durable any more: a statement that would wait for that for ever ends the
   server. */
void end_reset_that_waits();

/* Fills in what the server calls before it ends. */
void set_shutdown_calls(handlerton *hton);

}  // namespace peregrine

#endif
