/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see mariadb/handler/LICENSE). */

/* The rows that a condition leaves, as a range of one key and tests of what is in it. */

#ifndef PEREGRINE_KEY_RANGE_H
#define PEREGRINE_KEY_RANGE_H

#include "peregrine_aggregate.h"
#include "engine.h"

namespace peregrine {

/* A range of a key of a table. Its images are in the memory of the statement. */
struct KeyRange {
  /* The server's number of the key; MAX_KEY: the whole table. */
  uint key = MAX_KEY;
  /* No more than one row. */
  bool unique = false;
  /* All entries start with `low`, and there is no `high`. */
  bool equal = false;
  /* Columns in front of the key that have one value each in it. */
  uint equal_parts = 0;
  /* The bounds; null where there is none. */
  const uchar *low = nullptr;
  const uchar *high = nullptr;
  key_part_map low_parts = 0;
  key_part_map high_parts = 0;
  bool low_inclusive = true;
  bool high_inclusive = true;
  /* What must hold of the rows in it besides. */
  const peregrine_test *tests = nullptr;
  uint test_count = 0;
  /* The column by whose values its rows are grouped; null: by none. */
  Field *group = nullptr;

  bool is_whole() const { return !low && !high; }
};

/* Finds the range that the conditions, all of which must hold, leave of the one key that they are
   about. False where that can't be told for sure from comparisons of columns with constants, or
   where there is a choice: that is for the server's optimizer. The range decides all conditions, or
   with `tests` together with its tests. */
bool find_key_range(THD *thd, TABLE *table, List<Item> &conditions, bool tests, KeyRange *range);

/* Whether a constant is a day, written as everybody does ('2009-02-14'): other strings may mean a
   day, but something else to whatever they are compared with besides. */
bool is_day(Item *constant);

/* Whether what is read of the range's rows is not in its key: each must be fetched, and if there
   are many, a scan of the table may be the better plan. */
bool needs_rows(const TABLE *table, const KeyRange &range);

/* About how many rows a range of a key has, and the table at present. */
ha_rows rows_in(TABLE *table, const KeyRange &range);
ha_rows rows_of(TABLE *table);

}  // namespace peregrine

#endif
