/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see mariadb/handler/LICENSE). */

/* The server's headers, in the order that they require. */

#ifndef PEREGRINE_SERVER_H
#define PEREGRINE_SERVER_H

#define MYSQL_SERVER 1
#include <my_global.h>
#include "sql_priv.h"
#include "unireg.h"
#include "sql_class.h"
#include "sql_lex.h"
#include "sql_table.h"
#include "sql_show.h"
#include "table.h"
#include "field.h"
#include "key.h"
#include "handler.h"
#include "log.h"
#include <mysql/plugin.h>

/* The server's headers define these as macros, which break the C++ library's headers. */
#undef min
#undef max

#endif
