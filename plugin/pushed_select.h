/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see LICENSE-GPL). */

/* A SELECT that the engine runs itself, without the server's optimizer and executor. */

#ifndef PEREGRINE_PUSHED_SELECT_H
#define PEREGRINE_PUSHED_SELECT_H

#include "aggregates.h"
#include "key_range.h"
#include "row_batch.h"
#include "row_handler.h"

#include "item_sum.h"
#include "select_handler.h"
#include "sql_select.h"

namespace peregrine {

/* Reads the rows of a range, and gives the server the select list as it stands: its expressions
   read the row from the table's record, and its aggregates are the server's own. */
class PushedSelect final : public select_handler {
 public:
  /* `aggregates`: the select list is aggregate functions of columns, and the column that groups, if
     one does; `inside`, where not empty: they are worked out without a row given. */
  PushedSelect(THD *thd, SELECT_LEX *select, TABLE *table, const KeyRange &range, bool aggregates,
               const Aggregates &inside);
  ~PushedSelect() override { restore(); }

  bool prepare() override;

 protected:
  int init_scan() override;
  int next_row() override;
  int end_scan() override;
  void print_error(int error, myf flags) override;

 private:
  bool narrow();
  void restore();
  int read(ha_rows more);
  int skip(ha_rows rows);
  int aggregate();
  int next_group();

  RowHandler *handler_;
  const KeyRange range_;
  const bool aggregates_;
  const Aggregates inside_;
  bool begun_ = false;
  RowBatch batch_;
  /* The columns that are read, and those that the server would have read; null: as the server. */
  MY_BITMAP columns_;
  MY_BITMAP *server_columns_ = nullptr;
  ha_rows offset_;
  ha_rows rows_left_;
  ha_rows rows_read_ = 0;
  /* As FOUND_ROWS() tells. */
  ha_rows rows_found_ = 0;
};

/* What the server asks for each SELECT: one that runs it, or null, and the server does. */
select_handler *push_select(THD *thd, SELECT_LEX *select);

}  // namespace peregrine

#endif
