/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see mariadb/handler/LICENSE). */

#include "pushdown/plan/join_plan.h"
#include "tables/layout.h"
#include "pushdown/row_batch.h"

namespace peregrine {
namespace {

/* Returns whether columns that are equal in a comparison with this collation have equal bytes in a
   key. */
bool same_key(const Field *outer, const Field *inner, CHARSET_INFO *collation) {
  if (outer->real_type() != inner->real_type()) return false;
  if (is_integer(inner->real_type()))
    return (outer->flags & UNSIGNED_FLAG) == (inner->flags & UNSIGNED_FLAG);
  return inner->real_type() == MYSQL_TYPE_VARCHAR && outer->charset() == inner->charset() &&
         collation == inner->charset() && outer->char_length() <= inner->char_length();
}

/* Returns whether a condition gives a part of the inner table's key, and notes the part. */
bool gives_part(Item *condition, JoinPlan *plan) {
  if (condition->type() != Item::FUNC_ITEM ||
      static_cast<Item_func *>(condition)->functype() != Item_func::EQ_FUNC)
    return false;
  auto *equality = static_cast<Item_bool_rowready_func2 *>(condition);
  const Field *fields[2];
  for (uint i = 0; i < 2; i++) {
    Item *operand = equality->arguments()[i];
    if (operand->type() != Item::FIELD_ITEM) return false;
    fields[i] = static_cast<Item_field *>(operand)->field;
  }
  if (fields[0]->table != plan->outer) std::swap(fields[0], fields[1]);
  auto [outer, inner] = fields;
  if (outer->table != plan->outer || inner->table != plan->inner) return false;
  const KEY &key = plan->inner->key_info[plan->inner->s->primary_key];
  for (uint part = 0; part < key.user_defined_key_parts; part++) {
    if (key.key_part[part].field != inner || plan->key_values[part]) continue;
    if (!same_key(outer, inner, equality->compare_collation())) return false;
    plan->key_values[part] = const_cast<Field *>(outer);
    return true;
  }
  return false;
}

/* Returns whether a condition names a column of the table for which `is` holds. */
template <typename Is>
bool names(Item *condition, const TABLE *table, Is is) {
  List<Item_field> columns;
  condition->walk(&Item::collect_item_field_processor, false, &columns);
  List_iterator_fast<Item_field> each(columns);
  while (Item_field *column = each++)
    if (column->field->table == table && is(column->field)) return true;
  return false;
}

enum class Kind { kNumber, kString, kOther };

/* The kind of comparison for an operand. Values of other types may be converted, which can fail. */
Kind kind_of(const Item *item) {
  if (!item->type_handler()->is_traditional_scalar_type()) return Kind::kOther;
  switch (item->cmp_type()) {
    case INT_RESULT:
    case REAL_RESULT:
    case DECIMAL_RESULT:
      return Kind::kNumber;
    case STRING_RESULT:
      return Kind::kString;
    default:
      return Kind::kOther;
  }
}

/* Returns whether the value of a constant needs no computation: it is a literal or a variable. */
bool is_plain_constant(Item *item) {
  if (item->basic_const_item() || item->get_item_splocal()) return true;
  return item->type() == Item::FUNC_ITEM && item->const_item() &&
         static_cast<Item_func *>(item)->functype() == Item_func::GUSERVAR_FUNC;
}

/* Returns whether all operands are DATE columns, or constants that are days in every
   interpretation. */
bool are_days(const Item_func *function) {
  Item **arguments = function->arguments();
  for (uint n = 0; n < function->argument_count(); n++) {
    Item *operand = arguments[n];
    const bool is_day_of_row = operand->type() == Item::FIELD_ITEM &&
                               static_cast<Item_field *>(operand)->field->type() == MYSQL_TYPE_DATE;
    if (!is_day_of_row && !(is_plain_constant(operand) && is_day(operand))) return false;
  }
  return true;
}

/* Returns whether all operands are columns and constants that the server compares without a
   conversion. */
bool are_quiet_operands(const Item_func *function) {
  Item **arguments = function->arguments();
  const Kind kind = kind_of(arguments[0]);
  if (kind == Kind::kOther || kind_of(arguments[function->argument_count() - 1]) == Kind::kOther)
    return are_days(function);
  for (uint n = 0; n < function->argument_count(); n++) {
    Item *operand = arguments[n];
    if (operand->type() != Item::FIELD_ITEM && !is_plain_constant(operand)) return false;
    if (kind_of(operand) != kind) return false;
  }
  return true;
}

/* Returns whether the number of evaluations of a condition has no visible effect. */
bool is_quiet(Item *condition) {
  if (condition->type() == Item::COND_ITEM) {
    List_iterator_fast<Item> each(*static_cast<Item_cond *>(condition)->argument_list());
    while (Item *part = each++)
      if (!is_quiet(part)) return false;
    return true;
  }
  if (condition->type() != Item::FUNC_ITEM) return false;
  const auto *function = static_cast<Item_func *>(condition);
  switch (function->functype()) {
    case Item_func::EQ_FUNC:
    case Item_func::EQUAL_FUNC:
    case Item_func::NE_FUNC:
    case Item_func::LT_FUNC:
    case Item_func::LE_FUNC:
    case Item_func::GE_FUNC:
    case Item_func::GT_FUNC:
    case Item_func::BETWEEN:
    case Item_func::IN_FUNC:
    case Item_func::LIKE_FUNC:
      return are_quiet_operands(function);
    case Item_func::ISNULL_FUNC:
    case Item_func::ISNOTNULL_FUNC:
      return function->arguments()[0]->type() == Item::FIELD_ITEM;
    default:
      return false;
  }
}

bool are_quiet(List<Item> &conditions) {
  List_iterator_fast<Item> each(conditions);
  while (Item *condition = each++)
    if (!is_quiet(condition)) return false;
  return true;
}

/* Returns whether the server evaluates a condition before others of the same table: plain
   equalities, which it collects first. */
bool comes_first(Item *condition) {
  return condition->type() == Item::FUNC_ITEM &&
         static_cast<Item_func *>(condition)->functype() == Item_func::EQ_FUNC &&
         is_quiet(condition);
}

/* Adds a condition where the server evaluates it; true: no memory. */
bool add_in_order(THD *thd, Item *condition, List<Item> *list) {
  return comes_first(condition) ? list->push_front(condition, thd->mem_root)
                                : list->push_back(condition, thd->mem_root);
}

/* Returns whether the server may replace a column in conditions by the constant, or the column of
   the outer table, that a condition equates it with. */
bool is_replaced(const Field *field, List<Item> &conditions, const TABLE *inner) {
  List_iterator_fast<Item> each(conditions);
  while (Item *condition = each++) {
    if (condition->type() != Item::FUNC_ITEM) continue;
    const auto *function = static_cast<Item_func *>(condition);
    if (function->functype() != Item_func::EQ_FUNC) continue;
    for (uint n = 0; n < 2; n++) {
      const Item *operand = function->arguments()[n];
      if (operand->type() != Item::FIELD_ITEM) continue;
      if (static_cast<const Item_field *>(operand)->field != field) continue;
      if (field->table == inner || function->arguments()[1 - n]->const_item()) return true;
    }
  }
  return false;
}

/* Returns whether the server evaluates the conditions that may cause warnings for the same rows,
   with the same columns. `all`: these and the other conditions. */
bool are_evaluated_alike(List<Item> &conditions, List<Item> &all, const JoinPlan &plan) {
  const auto is = [&](const Field *field) { return is_replaced(field, all, plan.inner); };
  List_iterator_fast<Item> each(conditions);
  while (Item *condition = each++) {
    if (is_quiet(condition)) continue;
    if (names(condition, plan.outer, is) || names(condition, plan.inner, is)) return false;
  }
  return true;
}

/* Plans to read the whole outer table, by the shortest key that has all columns read. */
void read_all(JoinPlan *plan) {
  TABLE *outer = plan->outer;
  plan->range = {};
  if (!outer->covering_keys.is_clear_all())
    plan->range.key = find_shortest_key(outer, &outer->covering_keys);
}

/* Finds the range of the outer table under the conditions that a key may decide. The range decides
   all of them, or the whole table is read. `all`: all conditions on that table. */
bool find_range(THD *thd, List<Item> &decided, const List<Item> &all, bool limited,
                JoinPlan *plan) {
  if (!decided.elements) {
    read_all(plan);
    return true;
  }
  if (!find_key_range(thd, plan->outer, decided, false, &plan->range)) return false;
  if (needs_rows(plan->outer, plan->range) &&
      /* Under a LIMIT the result may be complete early or late, depending on the order of the
         rows. */
      rows_in(plan->outer, plan->range) > rows_of(plan->outer) / (limited ? 2 : 8)) {
    plan->outer_conditions = all;
    read_all(plan);
  }
  return true;
}

/* Finds a plan that looks up rows of `inner` for rows of `outer`. */
bool find_plan(THD *thd, List<Item> &conditions, TABLE *outer, TABLE *inner, bool limited,
               JoinPlan *plan) {
  plan->outer = outer;
  plan->inner = inner;
  const uint primary = inner->s->primary_key;
  if (primary == MAX_KEY || !inner->keys_in_use_for_query.is_set(primary)) return false;
  List<Item> decided;
  List<Item> of_outer;
  List_iterator_fast<Item> each(conditions);
  while (Item *condition = each++) {
    if (gives_part(condition, plan)) continue;
    List<Item> *to = &plan->conditions;
    if (condition->used_tables() == outer->map) {
      const auto is_in_key = [](const Field *field) { return !field->part_of_key.is_clear_all(); };
      to = names(condition, outer, is_in_key) ? &decided : &plan->outer_conditions;
      if (add_in_order(thd, condition, &of_outer)) return false;
    } else if (condition->used_tables() == inner->map) {
      /* In this case the server may read the inner table first. */
      const auto begins_key = [](const Field *field) { return !field->key_start.is_clear_all(); };
      if (names(condition, inner, begins_key)) return false;
    }
    if (add_in_order(thd, condition, to)) return false;
  }
  bool reversible = false;
  const KEY &key = inner->key_info[primary];
  for (uint part = 0; part < key.user_defined_key_parts; part++) {
    const Field *value = plan->key_values[part];
    constexpr uint16 kOther = HA_PART_KEY_SEG | HA_REVERSE_SORT | HA_BLOB_PART;
    if (!value || key.key_part[part].key_part_flag & kOther) return false;
    reversible |= !value->key_start.is_clear_all();
  }
  if (!find_range(thd, decided, of_outer, limited, plan)) return false;
  plan->outer_is_quiet = are_quiet(plan->outer_conditions);
  plan->is_quiet = plan->outer_is_quiet && are_quiet(plan->conditions);
  /* The opposite direction may be possible, too: from a row of the inner table by a key to rows of
     the outer one. */
  return !reversible || plan->range.unique ||
         (!plan->range.is_whole() && rows_in(outer, plan->range) <= rows_of(inner));
}

/* Notes where IS NULL means more than its text. For NOT NULL columns of days, the server's
   optimizer makes it find zero dates. For an AUTO_INCREMENT column, when the session asks for it,
   it finds the row last inserted. */
void look_for_other_null(const Item *item, void *found) {
  if (!item || item->type() != Item::FUNC_ITEM) return;
  auto *function = static_cast<Item_func *>(const_cast<Item *>(item));
  if (function->functype() != Item_func::ISNULL_FUNC) return;
  const Item *operand = function->arguments()[0]->real_item();
  if (operand->type() != Item::FIELD_ITEM) return;
  if (static_cast<Item_func_isnull *>(function)->arg_is_datetime_notnull_field() ||
      static_cast<const Item_field *>(operand)->field->flags & AUTO_INCREMENT_FLAG)
    *static_cast<bool *>(found) = true;
}

/* Returns whether the evaluation of a condition gives all of its meaning. */
bool means_what_it_says(Item *condition) {
  bool other_null = false;
  condition->traverse_cond(look_for_other_null, &other_null, Item::PREFIX);
  return !other_null;
}

}  // namespace

bool find_join(THD *thd, List<Item> &conditions, TABLE *const tables[2], bool limited,
               JoinPlan *plan) {
  table_map both = 0;
  for (uint i = 0; i < 2; i++) {
    if (!RowBatch::has_room_for(tables[i])) return false;
    both |= tables[i]->map;
  }
  List_iterator_fast<Item> each(conditions);
  while (Item *condition = each++) {
    const table_map used = condition->used_tables();
    if (!used || used & ~both || condition->is_expensive() || !means_what_it_says(condition))
      return false;
  }
  bool found = false;
  for (uint i = 0; i < 2; i++) {
    JoinPlan way;
    if (!find_plan(thd, conditions, tables[i], tables[1 - i], limited, &way)) continue;
    if (found) return false;
    found = true;
    *plan = way;
  }
  return found && are_evaluated_alike(plan->outer_conditions, conditions, *plan) &&
         are_evaluated_alike(plan->conditions, conditions, *plan);
}

}  // namespace peregrine
