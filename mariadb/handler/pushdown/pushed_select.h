/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see mariadb/handler/LICENSE). */

/* A SELECT that the engine runs itself, without the server's optimizer and executor. */

#ifndef PEREGRINE_PUSHED_SELECT_H
#define PEREGRINE_PUSHED_SELECT_H

#include "row_handler.h"

#include "select_handler.h"
#include "sql_select.h"

namespace peregrine {

/* Gives the select list to the server as it is: its expressions read the rows from the tables'
   records. */
class PushedSelect : public select_handler {
 public:
  /* `handler`: of a table of the statement; it reports errors. */
  PushedSelect(THD *thd, SELECT_LEX *select, RowHandler *handler);

  bool prepare() override;

 protected:
  int end_scan() override;
  /* Restores the state of the tables before the statement. */
  virtual void restore() = 0;
  void print_error(int error, myf flags) override;
  /* Counts the statement by the access path of its first table, as the server does. */
  void count_plan(const KeyRange &range) const;

  RowHandler *const handler_;
  /* Number of rows to skip, and of rows still to be sent. */
  ha_rows offset_;
  ha_rows rows_left_;
  ha_rows rows_read_ = 0;
  /* The value of FOUND_ROWS(). */
  ha_rows rows_found_ = 0;
};

/* The server calls this for each SELECT. Returns the handler that runs it; null: the server runs
   it. */
select_handler *push_select(THD *thd, SELECT_LEX *select);

}  // namespace peregrine

#endif
