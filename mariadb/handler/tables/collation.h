/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see mariadb/handler/LICENSE). */

/* Sort keys of strings: byte strings whose memcmp order is a collation's order.

   A collation compares strings by weights: units of one size (a byte for 8-bit character sets,
   two for most of Unicode), at one or more levels. For most collations a string also equals itself
   with spaces at its end (PAD SPACE). Other key parts follow a string in the engine's keys, so a
   sort key must mark its own end. It should be short, so the weights are not padded to the column's
   width. Instead, after every run of spaces one byte says what comes next:

     a unit less than a space, after n spaces       n                     (n up to 100)
                                                    101, n in 2 bytes     (n above 100)
     the end of the string                          128
     a unit greater than a space, after n spaces    154, 65535 - n in 2 bytes
                                                    255 - n

   One space's weight for the whole run precedes that byte. Every string ends with such a run, even
   of no spaces. Runs thus have the order of the infinite spaces of PAD SPACE.

   Collations without padding: the byte 1 follows a unit of zeros; a unit of zeros and a byte 0 end
   the string.

   The levels follow one another, each with its own end; levels above the first always pad. CHAR
   columns of collations without padding compare as if padded with spaces to the same number of
   characters. So their keys pad, and then 2 bytes give the number of weights less the number of
   characters: a padded string is longer by that many weights. For collations whose weights have
   neither form, the server's own function pads the weights to the column's width. */

#ifndef PEREGRINE_COLLATION_H
#define PEREGRINE_COLLATION_H

#include "server.h"

namespace peregrine {

/* Returns the engine's number of the collation of a column with so many characters. `padded`: the
   column is CHAR, whose values compare as if padded with spaces even in collations that do not
   pad. */
uint32_t engine_collation(CHARSET_INFO *charset, size_t characters, bool padded);

/* Returns the most bytes of a sort key of so many characters, except for rare characters that count
   as several. */
uint32_t longest_sort_key(uint32_t collation, size_t characters);

/* See peregrine_sort_key in peregrine.h. */
extern "C" size_t peregrine_plugin_sort_key(uint32_t collation, const uint8_t *value, size_t length,
                                            uint32_t prefix_characters, uint8_t *out,
                                            size_t capacity);

}  // namespace peregrine

#endif
