/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see mariadb/handler/LICENSE). */

/* Messages of the engine about events for which no statement gets an error. */

#ifndef PEREGRINE_PLUGIN_TOLD_H
#define PEREGRINE_PLUGIN_TOLD_H

namespace peregrine {

/* Sends the engine's messages to the server's error log from now on. */
void listen_to_engine();

/* Stops that. */
void end_listening();

}  // namespace peregrine

#endif
