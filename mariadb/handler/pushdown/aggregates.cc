/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see mariadb/handler/LICENSE). */

#include "pushdown/aggregates.h"
#include "tables/layout.h"

namespace peregrine {
namespace {

/* Returns whether the order of stored values is the server's order: not for ENUM, which the server
   compares by names. */
bool is_ordered(const Field *field) {
  switch (field->real_type()) {
    case MYSQL_TYPE_NEWDATE:
    case MYSQL_TYPE_DATETIME2:
    case MYSQL_TYPE_TIMESTAMP2:
    case MYSQL_TYPE_TIME2:
      return true;
    default:
      return is_integer(field->type());
  }
}

/* Translates an aggregate function for the engine; false when the engine can't compute it. */
bool translate(Item *item, peregrine_aggregate *out) {
  auto *sum = static_cast<Item_sum *>(item);
  Item *argument = sum->get_arg(0);
  const Item_sum::Sumfunctype function = sum->sum_func();
  if (argument->type() != Item::FIELD_ITEM) {
    *out = {PEREGRINE_AGGREGATE_ROWS, 0};
    return function == Item_sum::COUNT_FUNC && argument->basic_const_item() && !argument->is_null();
  }
  const Field *field = static_cast<Item_field *>(argument)->field;
  out->column = field->field_index;
  switch (function) {
    case Item_sum::COUNT_FUNC:
      out->kind = PEREGRINE_AGGREGATE_COUNT;
      return true;
    case Item_sum::SUM_FUNC:
    case Item_sum::AVG_FUNC:
      out->kind = PEREGRINE_AGGREGATE_SUM;
      return is_integer(field->type()) && sum->result_type() == DECIMAL_RESULT;
    case Item_sum::MIN_FUNC:
      out->kind = PEREGRINE_AGGREGATE_MIN;
      return is_ordered(field);
    case Item_sum::MAX_FUNC:
      out->kind = PEREGRINE_AGGREGATE_MAX;
      return is_ordered(field);
    default:
      return false;
  }
}

/* high * 2^64 + low */
void make_decimal(longlong high, ulonglong low, my_decimal *out) {
  constexpr uint kMask = E_DEC_FATAL_ERROR;
  my_decimal upper, almost, one, unit, product, lower;
  int2my_decimal(kMask, high, false, &upper);
  int2my_decimal(kMask, static_cast<longlong>(ULONGLONG_MAX), true, &almost);
  int2my_decimal(kMask, 1, true, &one);
  my_decimal_add(kMask, &unit, &almost, &one);
  my_decimal_mul(kMask, &product, &upper, &unit);
  int2my_decimal(kMask, static_cast<longlong>(low), true, &lower);
  my_decimal_add(kMask, out, &product, &lower);
}

int add_sum(Item_sum *item, const AggregateNumber &number) {
  if (number.values == 0) return 0; /* NULL, its initial value */
  my_decimal total;
  if (number.high == 0)
    int2my_decimal(E_DEC_FATAL_ERROR, static_cast<longlong>(number.low), true, &total);
  else
    make_decimal(number.high, number.low, &total);
  static_cast<Item_sum_sum *>(item)->direct_add(&total);
  if (item->aggregator_add()) return HA_ERR_GENERIC;
  if (item->sum_func() == Item_sum::AVG_FUNC)
    static_cast<Item_sum_avg *>(item)->count = number.values;
  return 0;
}

}  // namespace

bool Aggregates::find(List<Item> &list, RowHandler *handler, const KeyRange &range, bool counts) {
  uint n = 0;
  List_iterator_fast<Item> each(list);
  while (Item *item = each++) {
    if (item->type() != Item::SUM_FUNC_ITEM) continue; /* the column that groups */
    if (n == kMost || !translate(item, &wanted_[n++])) return false;
  }
  if (counts && n != kMost) {
    rows_at_ = n;
    wanted_[n++] = {PEREGRINE_AGGREGATE_ROWS, 0};
  }
  if (!handler->can_aggregate(range, wanted_, n)) return false;
  count_ = n;
  return true;
}

int Aggregates::run(RowHandler *handler, const KeyRange &range) const {
  return handler->aggregate_range(range, wanted_, count_);
}

int Aggregates::rows(RowHandler *handler, ha_rows *out) const {
  *out = 0;
  if (rows_at_ == kMost) return 0;
  AggregateNumber number;
  if (int error = handler->aggregate_number(rows_at_, &number)) return error;
  *out = number.low;
  return 0;
}

int Aggregates::give(Item_sum *sum, RowHandler *handler, uint n) const {
  const uint kind = wanted_[n].kind;
  if (kind == PEREGRINE_AGGREGATE_MIN || kind == PEREGRINE_AGGREGATE_MAX) {
    const int error = handler->aggregate_value(n);
    if (error == HA_ERR_END_OF_FILE) return 0; /* NULL, its initial value */
    if (error) return error;
    return sum->aggregator_add() ? HA_ERR_GENERIC : 0;
  }
  AggregateNumber number;
  if (int error = handler->aggregate_number(n, &number)) return error;
  if (kind == PEREGRINE_AGGREGATE_SUM) return add_sum(sum, number);
  static_cast<Item_sum_count *>(sum)->direct_add(static_cast<longlong>(number.low));
  return sum->aggregator_add() ? HA_ERR_GENERIC : 0;
}

int Aggregates::give(List<Item> &list, RowHandler *handler) const {
  uint n = 0;
  List_iterator_fast<Item> each(list);
  while (Item *item = each++) {
    if (item->type() != Item::SUM_FUNC_ITEM) continue;
    auto *sum = static_cast<Item_sum *>(item);
    sum->aggregator_clear();
    if (int error = give(sum, handler, n++)) return error;
  }
  return 0;
}

}  // namespace peregrine
