/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see mariadb/handler/LICENSE). */

/* The server's shutdown when the engine did not open, or has stopped. */

#ifndef PEREGRINE_STOPPED_H
#define PEREGRINE_STOPPED_H

#include "engine.h"

namespace peregrine {

/* Prevents the server's start after the engine did not open, if the server might otherwise forget
   its decisions about the engine's prepared transactions. */
void refuse_start_without_engine();

/* Commits can't be made durable any more: ends the server if the statement would wait for that
   forever. */
void end_reset_that_waits();

/* Sets the functions that the server calls before its shutdown. */
void set_shutdown_calls(handlerton *hton);

}  // namespace peregrine

#endif
