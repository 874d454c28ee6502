/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see mariadb/handler/LICENSE). */

/* Aggregate functions of a select list that the engine computes, without giving the server a
   row. */

#ifndef PEREGRINE_AGGREGATES_H
#define PEREGRINE_AGGREGATES_H

#include "row_handler.h"

#include "item_sum.h"

namespace peregrine {

class Aggregates {
 public:
  /* Returns whether the engine can compute each item of the list, and the key has the columns
     needed. The list has aggregate functions of columns or constants, and the column that groups.
     `counts`: also count the rows of the range, if there is space for it. */
  bool find(List<Item> &list, RowHandler *handler, const KeyRange &range, bool counts);
  /* Computes the aggregates over the range. */
  int run(RowHandler *handler, const KeyRange &range) const;
  /* Gives the results, or those of the current group, to the items of the same list. */
  int give(List<Item> &list, RowHandler *handler) const;
  bool empty() const { return count_ == 0; }
  /* Returns the number of rows in the range; 0 when they were not counted. */
  int rows(RowHandler *handler, ha_rows *out) const;

 private:
  int give(Item_sum *sum, RowHandler *handler, uint n) const;

  /* The most aggregates; the server runs a statement with more. */
  static constexpr uint kMost = 16;
  peregrine_aggregate wanted_[kMost];
  uint count_ = 0;
  /* The aggregate that counts the rows besides; kMost: none. */
  uint rows_at_ = kMost;
};

}  // namespace peregrine

#endif
