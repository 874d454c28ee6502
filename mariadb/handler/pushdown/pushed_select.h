/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see mariadb/handler/LICENSE). */

/* A SELECT that the engine runs itself, without the server's optimizer and executor. */

#ifndef PEREGRINE_PUSHED_SELECT_H
#define PEREGRINE_PUSHED_SELECT_H

#include "row_handler.h"

#include "select_handler.h"
#include "sql_select.h"

namespace peregrine {

/* Gives the server the select list as it stands: its expressions read the rows from the tables'
   records. */
class PushedSelect : public select_handler {
 public:
  /* `handler`: of a table of the statement's, which tells of errors. */
  PushedSelect(THD *thd, SELECT_LEX *select, RowHandler *handler);

  bool prepare() override;

 protected:
  int end_scan() override;
  /* Leaves the tables as the server had them. */
  virtual void restore() = 0;
  void print_error(int error, myf flags) override;
  /* Counts the statement by how it reads its first table, as the server does. */
  void count_plan(const KeyRange &range) const;

  RowHandler *const handler_;
  /* Rows that are passed over, and rows that are still to be sent. */
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
