/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see mariadb/handler/LICENSE). */

/* Aggregate functions of a select list that the engine works out, without giving the server a row.
 */

#ifndef PEREGRINE_AGGREGATES_H
#define PEREGRINE_AGGREGATES_H

#include "row_handler.h"

#include "item_sum.h"

namespace peregrine {

class Aggregates {
 public:
  /* Whether the engine knows each item of the list, and what it needs in the key. The list is
     aggregate functions of columns or constants, and the column that groups. `counts`: the rows of
     the range are counted besides, where there is room. */
  bool find(List<Item> &list, RowHandler *handler, const KeyRange &range, bool counts);
  /* Works them out over the range. */
  int run(RowHandler *handler, const KeyRange &range) const;
  /* Gives the results, or those of the group at hand, to the items of the same list. */
  int give(List<Item> &list, RowHandler *handler) const;
  bool empty() const { return count_ == 0; }
  /* How many rows the range had; 0 where they were not counted. */
  int rows(RowHandler *handler, ha_rows *out) const;

 private:
  int give(Item_sum *sum, RowHandler *handler, uint n) const;

  /* More of them are the server's. */
  static constexpr uint kMost = 16;
  peregrine_aggregate wanted_[kMost];
  uint count_ = 0;
  /* Which of them counts the rows besides; kMost: none. */
  uint rows_at_ = kMost;
};

}  // namespace peregrine

#endif
