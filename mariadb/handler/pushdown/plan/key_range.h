/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see mariadb/handler/LICENSE). */

/* The rows that a condition selects, as a range of one key and tests of the rows in it. */

#ifndef PEREGRINE_KEY_RANGE_H
#define PEREGRINE_KEY_RANGE_H

#include "peregrine_aggregate.h"
#include "engine.h"

namespace peregrine {

/* A range of a key of a table. Its images are in the memory of the statement. */
struct KeyRange {
  /* The server's number of the key; MAX_KEY: the whole table. */
  uint key = MAX_KEY;
  /* Whether the range has at most one row. */
  bool unique = false;
  /* Whether all entries start with `low`; then there is no `high`. */
  bool equal = false;
  /* Number of first columns of the key that have only one value each in the range. */
  uint equal_parts = 0;
  /* The bounds; null: none. */
  const uchar *low = nullptr;
  const uchar *high = nullptr;
  key_part_map low_parts = 0;
  key_part_map high_parts = 0;
  bool low_inclusive = true;
  bool high_inclusive = true;
  /* Tests that the rows in the range must also pass. */
  const peregrine_test *tests = nullptr;
  uint test_count = 0;
  /* The column by which the rows are grouped; null: not grouped. */
  Field *group = nullptr;

  bool is_whole() const { return !low && !high; }
};

/* Finds the range of the one key that the conditions, all of which must hold, are about. Returns
   false when the conditions are not plain comparisons of columns with constants, or when there is a
   choice: the server's optimizer then decides. The range decides all conditions; with `tests`, the
   range and its tests do. */
bool find_key_range(THD *thd, TABLE *table, List<Item> &conditions, bool tests, KeyRange *range);

/* Returns whether a constant is a day in the common form ('2009-02-14'). Other strings may mean a
   day, but also something else to the other operands that they are compared with. */
bool is_day(Item *constant);

/* Returns whether the range's key lacks columns that are read. Then each row must be fetched, and
   for many rows a scan of the table may be the better plan. */
bool needs_rows(const TABLE *table, const KeyRange &range);

/* About how many rows a range of a key has, and the table at present. */
ha_rows rows_in(TABLE *table, const KeyRange &range);
ha_rows rows_of(TABLE *table);

}  // namespace peregrine

#endif
