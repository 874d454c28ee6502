/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see mariadb/handler/LICENSE). */

/* A SELECT from one table that the engine runs itself. */

#ifndef PEREGRINE_PUSHED_RANGE_H
#define PEREGRINE_PUSHED_RANGE_H

#include "pushdown/aggregates.h"
#include "pushdown/plan/key_range.h"
#include "pushdown/pushed_select.h"
#include "pushdown/plan/read_columns.h"
#include "pushdown/row_batch.h"

#include "item_sum.h"

namespace peregrine {

/* Reads the rows of a range, or aggregates them: with the server's own functions, or inside the
   engine. */
class PushedRange final : public PushedSelect {
 public:
  /* `aggregates`: the select list has aggregate functions of columns, and perhaps the column that
     groups. `inside`: when not empty, the engine computes them and returns no rows. */
  PushedRange(THD *thd, SELECT_LEX *select, TABLE *table, const KeyRange &range, bool aggregates,
              const Aggregates &inside);
  ~PushedRange() override { restore(); }

 protected:
  int init_scan() override;
  int next_row() override;
  void restore() override;

 private:
  void count_row();
  int read(ha_rows more);
  int skip(ha_rows rows);
  int aggregate();
  int next_group();

  const KeyRange range_;
  const bool aggregates_;
  const Aggregates inside_;
  bool begun_ = false;
  RowBatch batch_;
  ReadColumns columns_;
};

}  // namespace peregrine

#endif
