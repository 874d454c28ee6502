/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see mariadb/handler/LICENSE). */

/* Table options of Peregrine: CREATE TABLE … LOCKING=OPTIMISTIC. */

#include "engine.h"

/* The server requires this name of the struct. */
struct ha_table_option_struct {
  /* A text, not an enumeration of the server: the error of an enumeration would not name the
     allowed values. */
  char *locking;
};

namespace peregrine {

ha_create_table_option table_options[] = {HA_TOPTION_STRING("LOCKING", locking), HA_TOPTION_END};

bool read_locking(const ha_table_option_struct *options, uint32_t *locking) {
  *locking = PEREGRINE_PESSIMISTIC;
  if (!options || !options->locking) return true;
  const char *value = options->locking;
  if (!my_strcasecmp(system_charset_info, value, "PESSIMISTIC")) return true;
  if (!my_strcasecmp(system_charset_info, value, "OPTIMISTIC")) {
    *locking = PEREGRINE_OPTIMISTIC;
    return true;
  }
  my_printf_error(ER_BAD_OPTION_VALUE,
                  "Incorrect value '%-.64s' for option 'LOCKING': it is PESSIMISTIC or OPTIMISTIC",
                  MYF(0), value);
  return false;
}

}  // namespace peregrine
