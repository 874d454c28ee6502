/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see mariadb/handler/LICENSE). */

#include "pushdown/pushed_range.h"

namespace peregrine {

PushedRange::PushedRange(THD *thd, SELECT_LEX *select, TABLE *table, const KeyRange &range,
                         bool aggregates, const Aggregates &inside)
    : PushedSelect(thd, select, static_cast<RowHandler *>(table->file)),
      range_(range),
      aggregates_(aggregates),
      inside_(inside) {}

void PushedRange::restore() {
  batch_.restore();
  columns_.restore();
}

int PushedRange::init_scan() {
  begun_ = false;
  count_plan(range_);
  /* Only the columns of the select list are read. All other columns are in the condition, which the
     range decides, and in the order, which the key has. */
  if (columns_.begin(thd, handler_->get_table())) return HA_ERR_OUT_OF_MEM;
  columns_.add(select->item_list);
  if (!aggregates_) return 0;
  List_iterator_fast<Item> each(select->item_list);
  while (Item *item = each++) {
    if (item->type() != Item::SUM_FUNC_ITEM) continue;
    auto *sum = static_cast<Item_sum *>(item);
    if (sum->set_aggregator(thd, Aggregator::SIMPLE_AGGREGATOR) || sum->aggregator_setup(thd))
      return HA_ERR_OUT_OF_MEM;
    sum->aggregator_clear();
  }
  return 0;
}

/* The server has counted the first row. */
inline void PushedRange::count_row() {
  if (rows_read_++) thd->get_stmt_da()->inc_current_row_for_warning();
}

/* Goes to the next row of the range; `more`: the number of rows wanted after it. */
int PushedRange::read(ha_rows more) {
  if (!batch_.next()) {
    if (!begun_) {
      if (int error = handler_->first_of_range(range_)) return error;
      begun_ = true;
      if (!range_.unique) batch_.prepare(thd, handler_->get_table(), more);
    } else if (batch_.has_room()) {
      batch_.restore();
      if (batch_.is_last()) return HA_ERR_END_OF_FILE;
      if (int error = handler_->next_rows_of_range(range_, &batch_, more + 1)) return error;
      batch_.next();
    } else if (int error = handler_->next_of_range(range_)) {
      return error;
    }
  }
  count_row();
  return 0;
}

int PushedRange::skip(ha_rows rows) {
  for (; rows; rows--) {
    if (int error = read(rows - 1 + rows_left_)) return error;
    rows_found_++;
    if (unlikely(thd->check_killed())) return HA_ERR_ABORTED_BY_USER;
  }
  return 0;
}

/* Computes the one row of the aggregates. Its warnings name the row after the last one, as in the
   server. */
int PushedRange::aggregate() {
  Diagnostics_area *area = thd->get_stmt_da();
  if (!inside_.empty()) {
    if (int error = inside_.run(handler_, range_)) return error;
    ha_rows rows;
    if (int error = inside_.rows(handler_, &rows)) return error;
    area->reset_current_row_for_warning(static_cast<int>(rows + 1));
    return inside_.give(select->item_list, handler_);
  }
  int error;
  while (!(error = read(HA_POS_ERROR - 1))) {
    List_iterator_fast<Item> each(select->item_list);
    while (Item *item = each++)
      if (static_cast<Item_sum *>(item)->aggregator_add()) return HA_ERR_GENERIC;
    if (unlikely(thd->check_killed())) return HA_ERR_ABORTED_BY_USER;
  }
  if (error != HA_ERR_END_OF_FILE) return error;
  if (rows_read_ && !range_.unique) area->inc_current_row_for_warning();
  return 0;
}

int PushedRange::next_group() {
  if (!begun_) {
    if (int error = inside_.run(handler_, range_)) return error;
    begun_ = true;
    for (; offset_; offset_--) {
      if (int error = handler_->next_group()) return error;
      rows_found_++;
    }
  }
  if (int error = handler_->next_group()) return error;
  rows_left_--;
  rows_found_++;
  return inside_.give(select->item_list, handler_);
}

int PushedRange::next_row() {
  if (unlikely(!rows_left_)) return HA_ERR_END_OF_FILE;
  /* The path of most rows: with no offset, aggregate or group. */
  if (likely(batch_.next())) {
    count_row();
    rows_left_--;
    rows_found_++;
    return 0;
  }
  if (range_.group) return next_group();
  if (!begun_ && !aggregates_ && offset_)
    if (int error = skip(offset_)) return error;
  if (aggregates_) {
    rows_left_ = 0;
    if (int error = aggregate()) return error;
    /* The result has one row, which an offset skips. */
    rows_found_ = 1;
    if (offset_) return HA_ERR_END_OF_FILE;
  } else {
    rows_left_--;
    if (int error = read(rows_left_)) return error;
    rows_found_++;
  }
  return 0;
}

}  // namespace peregrine
