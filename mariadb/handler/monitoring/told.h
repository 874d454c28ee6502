/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see mariadb/handler/LICENSE). */

/* What the engine tells of where no statement gets an error for an answer. */

#ifndef PEREGRINE_PLUGIN_TOLD_H
#define PEREGRINE_PLUGIN_TOLD_H

namespace peregrine {

/* From now on it goes to the server's error log. */
void listen_to_engine();

/* No more of it does. */
void end_listening();

}  // namespace peregrine

#endif
