/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see mariadb/handler/LICENSE). */

#include "pushdown/pushed_join.h"

#include <algorithm>

namespace peregrine {
namespace {

/* Returns whether all conditions hold for the rows that the fields point to. */
bool hold(List<Item> &conditions) {
  List_iterator_fast<Item> each(conditions);
  while (Item *condition = each++)
    if (!condition->val_bool()) return false;
  return true;
}

}  // namespace

PushedJoin::PushedJoin(THD *thd, SELECT_LEX *select, const JoinPlan &plan)
    : PushedSelect(thd, select, static_cast<RowHandler *>(plan.outer->file)),
      plan_(plan),
      inner_(static_cast<RowHandler *>(plan.inner->file)),
      reads_ahead_(plan.outer_is_quiet && thd_tx_isolation(thd) != ISO_SERIALIZABLE) {}

void PushedJoin::restore() {
  outer_rows_.restore();
  inner_rows_.restore();
  stop_skipping();
  outer_columns_.restore();
  inner_columns_.restore();
}

/* Reads only the columns that skipped rows need from here on. */
bool PushedJoin::start_skipping() {
  if (outer_skipped_.begin(thd, plan_.outer) || inner_skipped_.begin(thd, plan_.inner)) return true;
  outer_skipped_.add(plan_.outer_conditions);
  outer_skipped_.add(plan_.conditions);
  inner_skipped_.add(plan_.conditions);
  add_key_values(&outer_skipped_);
  return false;
}

void PushedJoin::stop_skipping() {
  inner_skipped_.restore();
  outer_skipped_.restore();
}

void PushedJoin::add_key_values(ReadColumns *columns) const {
  for (uint part = 0; part < key().user_defined_key_parts; part++)
    columns->add(plan_.key_values[part]);
}

int PushedJoin::init_scan() {
  begun_ = false;
  count_plan(plan_.range);
  if (outer_columns_.begin(thd, plan_.outer) || inner_columns_.begin(thd, plan_.inner))
    return HA_ERR_OUT_OF_MEM;
  for (ReadColumns *columns : {&outer_columns_, &inner_columns_}) {
    columns->add(select->item_list);
    columns->add(plan_.conditions);
  }
  outer_columns_.add(plan_.outer_conditions);
  add_key_values(&outer_columns_);

  const ha_rows rows = plan_.range.unique ? 2 : peregrine_join_batch_rows();
  outer_rows_.prepare(thd, plan_.outer, rows);
  inner_rows_.prepare(thd, plan_.inner, rows);
  most_ = std::min(outer_rows_.most(), inner_rows_.most());
  keys_ = static_cast<uchar *>(thd->alloc(most_ * key().key_length));
  wanted_ = static_cast<uchar *>(thd->alloc(most_));
  found_ = static_cast<uchar *>(thd->alloc(most_));
  judged_ = 0;
  uncounted_ = false;
  if (!most_ || !keys_ || !wanted_ || !found_) return HA_ERR_OUT_OF_MEM;
  if (offset_ && start_skipping()) return HA_ERR_OUT_OF_MEM;
  return 0;
}

/* Reads the next rows of the outer table; `wanted`: the most pairs that will be wanted, or that
   must be skipped. */
int PushedJoin::read_outer(ha_rows wanted) {
  if (!begun_) {
    if (int error = handler_->first_of_range(plan_.range)) return error;
    begun_ = true;
    memcpy(outer_rows_.records(), plan_.outer->record[0], outer_rows_.length());
    outer_rows_.fill(1, false);
  } else {
    if (plan_.range.unique || outer_rows_.is_last()) return HA_ERR_END_OF_FILE;
    /* Each pair needs at least one outer row, and perhaps many. The join may read rows behind a
       LIMIT, if that has no visible effect. */
    ha_rows rows = reads_ahead_ ? std::max<ha_rows>(2 * size_, wanted) : wanted;
    if (offset_) rows = std::min(rows, offset_);
    size_ = static_cast<uint>(std::min<ha_rows>(most_, rows));
    if (int error = handler_->next_rows_of_range(plan_.range, &outer_rows_, size_)) return error;
  }
  rows_read_ += outer_rows_.count();
  judged_ = 0;
  return 0;
}

/* Writes the key that the present row of the outer table leads to; false when a value is NULL. */
bool PushedJoin::put_key(uchar *image) const {
  for (uint part = 0; part < key().user_defined_key_parts; part++) {
    const Field *value = plan_.key_values[part];
    if (value->is_null()) return false;
    value->get_key_image(image, key().key_part[part].length, Field::itRAW);
    image += key().key_part[part].store_length;
  }
  return true;
}

/* Returns whether the present row of the outer table, which has number `at` in the batch, is looked
   up. */
bool PushedJoin::is_wanted(uint at) {
  return hold(plan_.outer_conditions) && put_key(keys_ + at * key().key_length);
}

/* Evaluates the conditions of outer rows, and reads the inner rows that they lead to. The first row
   may cause warnings. When the evaluation of a later row causes one, that row and those behind it
   wait for a later call, so that warnings come in the order of rows. */
int PushedJoin::look_up() {
  const uint from = judged_;
  memset(found_, 0, outer_rows_.count());
  outer_rows_.next();
  wanted_[judged_++] = is_wanted(from);
  if (unlikely(thd->is_error())) return HA_ERR_GENERIC;
  Dummy_error_handler said;
  thd->push_internal_handler(&said);
  while (outer_rows_.next()) {
    const bool wanted = is_wanted(judged_);
    if (unlikely(said.any_error())) break;
    wanted_[judged_++] = wanted;
  }
  thd->pop_internal_handler();
  if (unlikely(thd->is_error())) return HA_ERR_GENERIC;
  memcpy(found_ + from, wanted_ + from, judged_ - from);
  const uint rows = outer_rows_.count();
  if (int error = inner_->rows_of_keys(keys_, key().key_length, &inner_rows_, rows, found_))
    return error;
  for (uint n = from; n < judged_; n++) rows_read_ += found_[n];
  outer_rows_.go_to(from);
  inner_rows_.go_to(from);
  return 0;
}

/* Goes to the next pair of rows in the result; `wanted`: the most pairs, including this one, that
   will be wanted or skipped. Warnings number rows as the server counts them: from 1 on at each
   look-up, and one more for each row that is finished, two for a pair. */
int PushedJoin::next_pair(ha_rows wanted) {
  Diagnostics_area *area = thd->get_stmt_da();
  constexpr int kBehindPair = 1 + 2;
  if (uncounted_) area->reset_current_row_for_warning(kBehindPair);
  uncounted_ = false;
  uint next = outer_rows_.next_row();
  for (;;) {
    for (; next < judged_; next++) {
      outer_rows_.next();
      inner_rows_.next();
      if (wanted_[next]) area->reset_current_row_for_warning(1);
      if (!found_[next]) {
        area->inc_current_row_for_warning();
        continue;
      }
      if (hold(plan_.conditions)) {
        uncounted_ = true;
        return 0;
      }
      if (unlikely(thd->is_error())) return HA_ERR_GENERIC;
      area->reset_current_row_for_warning(kBehindPair);
    }
    if (unlikely(thd->check_killed())) return HA_ERR_ABORTED_BY_USER;
    if (next == outer_rows_.count()) {
      if (int error = read_outer(wanted)) return error;
      next = 0;
    }
    if (int error = look_up()) return error;
  }
}

int PushedJoin::next_row() {
  if (unlikely(!rows_left_)) return HA_ERR_END_OF_FILE;
  for (; offset_; offset_--) {
    if (int error = next_pair(offset_)) return error;
    rows_found_++;
    if (offset_ == 1) stop_skipping();
  }
  if (int error = next_pair(rows_left_)) return error;
  rows_left_--;
  rows_found_++;
  return 0;
}

}  // namespace peregrine
