/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see mariadb/handler/LICENSE). */

/* The join of two tables, when the plan is beyond doubt: the outer table's rows are read, by a
   range of a key or all, and for each of them the inner table's row with the clustered key that it
   gives. */

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
  /* The fields of the outer table that hold the values of the inner key's parts. */
  Field *key_values[MAX_REF_PARTS] = {};
  /* The other conditions: on a row of the outer table, and on a row of both tables. In the order in
     which the server evaluates them. */
  List<Item> outer_conditions;
  List<Item> conditions;
  /* Whether the number of evaluations has no visible effect: no error, no warning, nothing else. */
  bool outer_is_quiet = true;
  bool is_quiet = true;
};

/* Finds the join of two tables under the conditions, all of which must hold. Returns false when
   there is doubt or a choice: the server's optimizer then decides. */
bool find_join(THD *thd, List<Item> &conditions, TABLE *const tables[2], bool limited,
               JoinPlan *plan);

}  // namespace peregrine

#endif
