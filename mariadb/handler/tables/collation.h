/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see mariadb/handler/LICENSE). */

/* Sort keys of strings: byte strings whose memcmp order is a collation's order.

   A collation compares strings by weights: units of one size (a byte for 8-bit character sets,
   two for most of Unicode), at one or more levels. Most collations also find a string equal to
   itself with spaces at its end (PAD SPACE). Engine keys must end themselves, because other key
   parts follow, and should be short, so the weights are not filled up to the column's width.
   Instead, after every run of spaces one byte says what comes next:

     a unit less than a space, after n spaces       n                     (n up to 100)
                                                    101, n in 2 bytes     (n above 100)
     the end of the string                          128
     a unit greater than a space, after n spaces    154, 65535 - n in 2 bytes
                                                    255 - n

   before which stands one space's weight for the run; every string ends with such a run, be it of
   no spaces. Runs thus order as the infinite spaces of PAD SPACE do.

   Collations without padding: a unit of zeros is followed by the byte 1, and a unit of zeros and a
   byte 0 end the string.

   Several levels follow one another, each ended by itself; those above the first always pad. CHAR
   columns of collations without padding are compared as if filled up with spaces to the same number
   of characters. So their keys pad, and then say how many weights there are more, or fewer, than
   characters (2 bytes): that many the string filled up is longer. Collations whose weights are of
   neither kind are filled up to the width of the column by the server's own function. */

#ifndef PEREGRINE_COLLATION_H
#define PEREGRINE_COLLATION_H

#include "server.h"

namespace peregrine {

/* The number by which the engine knows the collation of a column of so many characters. `padded`:
   the column is CHAR, whose values are compared as if filled up with spaces even in collations
   that do not pad. */
uint32_t engine_collation(CHARSET_INFO *charset, size_t characters, bool padded);

/* The most bytes that a sort key of so many characters may have, but for rare characters that
   count as several. */
uint32_t longest_sort_key(uint32_t collation, size_t characters);

/* See peregrine_sort_key in peregrine.h. */
extern "C" size_t peregrine_plugin_sort_key(uint32_t collation, const uint8_t *value, size_t length,
                                            uint32_t prefix_characters, uint8_t *out,
                                            size_t capacity);

}  // namespace peregrine

#endif
