/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see mariadb/handler/LICENSE). */

#include "monitoring/told.h"
#include "engine.h"
#include "peregrine_told.h"

namespace peregrine {

/* Threads of the engine, of which the server knows nothing, call this, too. */
static void write_to_error_log(uint32_t level, const char *text, size_t length) {
  const int shown = static_cast<int>(length);
  switch (level) {
    case PEREGRINE_MESSAGE_ERROR:
      sql_print_error("Peregrine: %.*s", shown, text);
      break;
    case PEREGRINE_MESSAGE_WARNING:
      sql_print_warning("Peregrine: %.*s", shown, text);
      break;
    default:
      sql_print_information("Peregrine: %.*s", shown, text);
  }
}

void listen_to_engine() {
  peregrine_tell_to(write_to_error_log);
}

void end_listening() {
  peregrine_tell_to(nullptr);
}

}  // namespace peregrine
