/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see mariadb/handler/LICENSE). */

/* A SELECT from two tables that the engine runs itself. It looks up many rows of one table together
   in the clustered key of the other, so that the waits for their pages overlap (batched key
   access). */

#ifndef PEREGRINE_PUSHED_JOIN_H
#define PEREGRINE_PUSHED_JOIN_H

#include "pushdown/plan/join_plan.h"
#include "pushdown/pushed_select.h"
#include "pushdown/plan/read_columns.h"
#include "pushdown/row_batch.h"

namespace peregrine {

class PushedJoin final : public PushedSelect {
 public:
  PushedJoin(THD *thd, SELECT_LEX *select, const JoinPlan &plan);
  ~PushedJoin() override { restore(); }

 protected:
  int init_scan() override;
  int next_row() override;
  void restore() override;

 private:
  bool start_skipping();
  void stop_skipping();
  void add_key_values(ReadColumns *columns) const;
  int next_pair(ha_rows wanted);
  int read_outer(ha_rows wanted);
  bool is_wanted(uint at);
  int look_up();
  bool put_key(uchar *image) const;
  /* The key in which rows of the inner table are looked up. */
  const KEY &key() const { return plan_.inner->key_info[plan_.inner->s->primary_key]; }

  JoinPlan plan_;
  RowHandler *const inner_;
  /* Whether the join may read and evaluate rows that the statement may not reach: at SERIALIZABLE
     they would be locked. */
  const bool reads_ahead_;
  bool begun_ = false;
  /* Rows of the outer table, and at the same places those of the inner table. */
  RowBatch outer_rows_;
  RowBatch inner_rows_;
  ReadColumns outer_columns_;
  ReadColumns inner_columns_;
  /* The columns of rows that OFFSET skips. */
  ReadColumns outer_skipped_;
  ReadColumns inner_skipped_;
  /* For each row of the batch: its key, whether it is looked up, and whether its row was found. */
  uchar *keys_ = nullptr;
  uchar *wanted_ = nullptr;
  uchar *found_ = nullptr;
  uint most_ = 0;
  /* Number of rows in the present batch. */
  uint size_ = 1;
  /* Number of rows in the present batch that were evaluated and looked up. */
  uint judged_ = 0;
  /* Whether the last pair is not counted yet: warnings of its select list name it. */
  bool uncounted_ = false;
};

}  // namespace peregrine

#endif
