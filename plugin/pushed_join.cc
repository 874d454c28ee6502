/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see LICENSE-GPL). */

#include "pushed_join.h"

#include <algorithm>

namespace peregrine {
namespace {

/* Whether all conditions hold of the rows that the columns stand on. */
bool hold(List<Item> &conditions) {
  List_iterator_fast<Item> each(conditions);
  while (Item *condition = each++)
    if (!condition->val_bool()) return false;
  return true;
}

/* A column or a constant, which the server compares as it is. */
bool is_quiet_operand(Item *item) {
  return (item->type() == Item::FIELD_ITEM || item->basic_const_item()) &&
         (item->cmp_type() == INT_RESULT || item->cmp_type() == STRING_RESULT);
}

/* Whether a condition comes to the same whether it is evaluated or not: no error, no warning,
   nothing else that anybody sees. */
bool is_quiet(Item *condition) {
  if (condition->type() != Item::FUNC_ITEM) return false;
  auto *function = static_cast<Item_func *>(condition);
  switch (function->functype()) {
    case Item_func::EQ_FUNC:
    case Item_func::NE_FUNC:
    case Item_func::LT_FUNC:
    case Item_func::LE_FUNC:
    case Item_func::GE_FUNC:
    case Item_func::GT_FUNC:
    case Item_func::BETWEEN:
    case Item_func::ISNULL_FUNC:
    case Item_func::ISNOTNULL_FUNC:
      break;
    default:
      return false;
  }
  Item **arguments = function->arguments();
  for (uint n = 0; n < function->argument_count(); n++) {
    if (!is_quiet_operand(arguments[n]) || arguments[n]->cmp_type() != arguments[0]->cmp_type())
      return false;
  }
  return true;
}

bool are_quiet(List<Item> conditions) {
  List_iterator_fast<Item> each(conditions);
  while (Item *condition = each++)
    if (!is_quiet(condition)) return false;
  return true;
}

}  // namespace

PushedJoin::PushedJoin(THD *thd, SELECT_LEX *select, const JoinPlan &plan)
    : PushedSelect(thd, select, static_cast<RowHandler *>(plan.outer->file)),
      plan_(plan),
      inner_(static_cast<RowHandler *>(plan.inner->file)),
      judges_quietly_(are_quiet(plan.outer_conditions)) {}

void PushedJoin::restore() {
  outer_rows_.restore();
  inner_rows_.restore();
  stop_skipping();
  outer_columns_.restore();
  inner_columns_.restore();
}

/* From here on rows are read as far as it takes to pass them over. */
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
  found_ = static_cast<uchar *>(thd->alloc(most_));
  if (!most_ || !keys_ || !found_ || (offset_ && start_skipping())) return HA_ERR_OUT_OF_MEM;
  return 0;
}

/* Reads the next rows of the outer table; `wanted`: pairs that will be wanted at most, or that are
   to be passed over. */
int PushedJoin::read_outer(ha_rows wanted) {
  if (!begun_) {
    if (int error = handler_->first_of_range(plan_.range)) return error;
    begun_ = true;
    memcpy(outer_rows_.records(), plan_.outer->record[0], outer_rows_.length());
    outer_rows_.fill(1);
  } else {
    if (plan_.range.unique) return HA_ERR_END_OF_FILE;
    /* Each pair takes a row at least, and it may be one of many: rows behind a LIMIT may be read,
       but nobody may see that. */
    ha_rows rows = judges_quietly_ ? std::max<ha_rows>(2 * size_, wanted) : wanted;
    if (offset_) rows = std::min(rows, offset_);
    size_ = static_cast<uint>(std::min<ha_rows>(most_, rows));
    if (int error = handler_->next_rows_of_range(plan_.range, &outer_rows_, size_)) return error;
  }
  rows_read_ += outer_rows_.count();
  return 0;
}

/* The key that the present row of the outer table leads to; false where a value is NULL. */
bool PushedJoin::put_key(uchar *image) const {
  for (uint part = 0; part < key().user_defined_key_parts; part++) {
    const Field *value = plan_.key_values[part];
    if (value->is_null()) return false;
    value->get_key_image(image, key().key_part[part].length, Field::itRAW);
    image += key().key_part[part].store_length;
  }
  return true;
}

/* Reads the rows of the inner table that those of the outer one lead to. */
int PushedJoin::look_up() {
  const uint key_length = key().key_length;
  while (outer_rows_.next()) {
    const uint at = outer_rows_.at();
    found_[at] = hold(plan_.outer_conditions) && put_key(keys_ + at * key_length);
  }
  if (unlikely(thd->is_error())) return HA_ERR_GENERIC;
  outer_rows_.rewind();
  if (int error =
          inner_->rows_of_keys(keys_, key_length, &inner_rows_, outer_rows_.count(), found_))
    return error;
  for (uint n = 0; n < outer_rows_.count(); n++) rows_read_ += found_[n];
  return 0;
}

/* Goes to the next pair of rows that the statement is about; `wanted`: how many of them, at most,
   will be wanted, or passed over, with this one. */
int PushedJoin::next_pair(ha_rows wanted) {
  for (;;) {
    while (outer_rows_.next()) {
      inner_rows_.next();
      if (!found_[outer_rows_.at()]) continue;
      if (hold(plan_.conditions)) return 0;
      if (unlikely(thd->is_error())) return HA_ERR_GENERIC;
    }
    if (unlikely(thd->check_killed())) return HA_ERR_ABORTED_BY_USER;
    if (int error = read_outer(wanted)) return error;
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
