/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see mariadb/handler/LICENSE). */

/* How two tables are joined, where that is beyond doubt: the rows of the one are read, by a range
   of a key or all, and for each of them the row of the other that its clustered key leads to. */

#ifndef PEREGRINE_JOIN_PLAN_H
#define PEREGRINE_JOIN_PLAN_H

#include "pushdown/plan/key_range.h"

#include "sql_select.h"

namespace peregrine {

struct JoinPlan {
  /* The table whose rows are read. */
  TABLE *outer = nullptr;
  KeyRange range;
  /* The table whose rows are looked up. */
  TABLE *inner = nullptr;
  /* The columns of the outer table that have the values of its key's parts. */
  Field *key_values[MAX_REF_PARTS] = {};
  /* What must hold besides: of a row of the outer table, and of a row of both. In the order in
     which the server evaluates them. */
  List<Item> outer_conditions;
  List<Item> conditions;
  /* Whether it comes to the same when they are evaluated once more, or not at all: no error, no
     warning, nothing else that anybody sees. */
  bool outer_is_quiet = true;
  bool is_quiet = true;
};

/* Finds how two tables, whose rows must fulfil all the conditions, are joined. False where that
   can't be told for sure, or where there is a choice: that is for the server's optimizer. */
bool find_join(THD *thd, List<Item> &conditions, TABLE *const tables[2], bool limited,
               JoinPlan *plan);

}  // namespace peregrine

#endif
