/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see mariadb/handler/LICENSE). */

/* Translation of the engine's errors into the server's. */

#ifndef PEREGRINE_ERRORS_H
#define PEREGRINE_ERRORS_H

#include "engine.h"

namespace peregrine {

/* The first number for errors that the server has no number for; handler::get_error_message gives
   their text. */
constexpr int kFirstOwnError = 3900;

/* Returns the server's error number for a code of the engine. Marks the transaction for rollback
   when the code requires it, and writes errors that concern an administrator to the error log.
   `end` is the number for PEREGRINE_END. */
int server_error(int code, THD *thd, int end = HA_ERR_END_OF_FILE);

/* The same for calls outside of a handler: also reports the error to the client, unless the server
   does that itself. */
int report_error(int code, THD *thd, const char *table);

/* The same for errors that concern no table, with the server's number for the client. When the
   transaction can only be rolled back, the client always gets error 1213. */
int report_session_error(int code, THD *thd, uint number);

/* The text of this thread's last error in the engine. */
String last_error_text();

}  // namespace peregrine

#endif
