/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see mariadb/handler/LICENSE). */

#include "pushdown/pushed_select.h"

namespace peregrine {

PushedSelect::PushedSelect(THD *thd, SELECT_LEX *select, RowHandler *handler)
    : select_handler(thd, hton), handler_(handler) {
  this->select = select;
  const Select_limit_counters &limit = select->master_unit()->lim;
  offset_ = limit.get_offset_limit();
  rows_left_ = limit.get_select_limit() - offset_;
}

/* There is no temporary table: the select list itself is sent. */
bool PushedSelect::prepare() {
  List_iterator_fast<Item> each(select->item_list);
  while (Item *item = each++)
    if (result_columns.push_back(item, thd->mem_root)) return true;
  return false;
}

int PushedSelect::end_scan() {
  restore();
  thd->inc_examined_row_count(rows_read_);
  rows_read_ = 0;
  thd->limit_found_rows = rows_found_;
  return 0;
}

void PushedSelect::count_plan(const KeyRange &range) const {
  if (range.unique || range.equal) return;
  if (range.is_whole()) {
    thd->set_status_no_index_used();
    thd->inc_status_select_scan();
    thd->query_plan_flags |= QPLAN_FULL_SCAN;
  } else {
    thd->inc_status_select_range();
  }
}

void PushedSelect::print_error(int error, myf flags) {
  /* The statement was killed, which has been reported already. */
  if (thd->is_error()) return;
  handler_->print_error(error, flags);
}

}  // namespace peregrine
