/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see mariadb/handler/LICENSE). */

/* The engine's errors as the server's. */

#ifndef PEREGRINE_ERRORS_H
#define PEREGRINE_ERRORS_H

#include "engine.h"

namespace peregrine {

/* Numbers for errors that the server has no number for; their text comes from
   handler::get_error_message. */
constexpr int kFirstOwnError = 3900;

/* The server's number for a code of the engine's. Marks the transaction for rolling back where
   the code asks for it, and writes what an administrator must know to the error log. `end` is the
   number for PEREGRINE_END. */
int server_error(int code, THD *thd, int end = HA_ERR_END_OF_FILE);

/* The same for calls outside of a handler: the error is also reported to the client, unless the
   server will do so by itself. */
int report_error(int code, THD *thd, const char *table);

/* The same for what concerns no table, with the server's number for the client; that a transaction
   can only be rolled back is always error 1213. */
int report_session_error(int code, THD *thd, uint number);

/* This thread's last error of the engine. */
String last_error_text();

}  // namespace peregrine

#endif
