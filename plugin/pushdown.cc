/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see LICENSE-GPL). */

/* Which statements the engine runs itself: reads of one table by one key, whose plan is beyond
   doubt. All others are the server's. */

#include "pushed_select.h"
#include "layout.h"

namespace peregrine {
namespace {

/* The one table of a plain SELECT; null where it is another kind of statement. */
TABLE *only_table(const THD *thd, SELECT_LEX *select) {
  const LEX *lex = thd->lex;
  if (lex->sql_command != SQLCOM_SELECT || lex->analyze_stmt || lex->limit_rows_examined ||
      lex->sroutines_list.elements || lex->with_rownum)
    return nullptr;
  const JOIN *join = select->join;
  TABLE_LIST *tables = join->tables_list;
  if (!tables || tables->next_local || tables->next_global || !tables->table ||
      tables->is_view_or_derived() || tables->index_hints || tables->embedding)
    return nullptr;
  constexpr ulonglong kOthers = OPTION_FOUND_ROWS | SELECT_DISTINCT | OPTION_BUFFER_RESULT;
  if (join->select_options & kOthers || join->select_distinct || join->having || join->procedure ||
      select->olap != UNSPECIFIED_OLAP_TYPE || select->have_window_funcs() ||
      select->first_inner_unit() || select->custom_agg_func_used())
    return nullptr;
  if (!(thd->variables.option_bits & OPTION_BIG_SELECTS)) return nullptr;
  const Select_limit_counters &limit = select->master_unit()->lim;
  if (limit.get_select_limit() == limit.get_offset_limit() || limit.is_with_ties()) return nullptr;
  return tables->table;
}

/* Whether the engine has the table to itself, and the statement reads it without locking rows. */
bool readable(const TABLE *table) {
  return table->file->ht == hton && !table->part_info && !table->vfield && !table->versioned() &&
         static_cast<RowHandler *>(table->file)->reads_snapshots();
}

/* An aggregate function that depends on one column, or on none. */
bool is_plain_aggregate(Item *item) {
  if (item->type() != Item::SUM_FUNC_ITEM) return false;
  auto *sum = static_cast<Item_sum *>(item);
  switch (sum->sum_func()) {
    case Item_sum::COUNT_FUNC:
    case Item_sum::SUM_FUNC:
    case Item_sum::AVG_FUNC:
    case Item_sum::MIN_FUNC:
    case Item_sum::MAX_FUNC:
      break;
    default:
      return false;
  }
  Item *argument = sum->get_arg(0);
  return argument->type() == Item::FIELD_ITEM || argument->basic_const_item();
}

/* MIN and MAX of a key's columns: the server looks at the key's ends, and reads no more. */
bool is_end_of_key(Item *item) {
  auto *sum = static_cast<Item_sum *>(item);
  if (sum->sum_func() != Item_sum::MIN_FUNC && sum->sum_func() != Item_sum::MAX_FUNC) return false;
  Item *argument = sum->get_arg(0);
  return argument->type() != Item::FIELD_ITEM ||
         !static_cast<Item_field *>(argument)->field->part_of_key.is_clear_all();
}

bool is_column(Item *item, const Field *field) {
  return item->type() == Item::FIELD_ITEM && static_cast<Item_field *>(item)->field == field;
}

/* The column of the table by whose values alone rows are grouped, if that is how they are grouped.
 */
Field *group_of(const ORDER *list, const TABLE *table) {
  Item *item = *list->item;
  if (list->next || list->direction == ORDER::ORDER_DESC || item->type() != Item::FIELD_ITEM)
    return nullptr;
  Field *field = static_cast<Item_field *>(item)->field;
  return field->table == table && is_integer(field->real_type()) ? field : nullptr;
}

/* What a select list is made of. */
enum class Columns { kExpressions, kAggregates, kOther };

Columns columns_of(SELECT_LEX *select, const Field *group) {
  uint plain = 0;
  uint ends = 0;
  uint groups = 0;
  List_iterator_fast<Item> each(select->item_list);
  while (Item *item = each++) {
    if (item->with_subquery() || item->with_window_func()) return Columns::kOther;
    if (group && is_column(item, group)) groups++;
    if (!item->with_sum_func()) continue;
    if (!is_plain_aggregate(item)) return Columns::kOther;
    plain++;
    ends += is_end_of_key(item);
  }
  if (!plain && !group) return Columns::kExpressions;
  /* What a key ends with the server finds at once, and where a key begins with the column that
     groups, for each group. */
  const bool quicker = ends == plain && (!group || !group->key_start.is_clear_all());
  return plain && plain + groups == select->item_list.elements && !quicker ? Columns::kAggregates
                                                                           : Columns::kOther;
}

/* Whether the groups come in the order that is asked for: ascending, which is how the engine has
   them. */
bool is_in_order_of(const ORDER *order, const Field *group) {
  return !order->next && order->direction == ORDER::ORDER_ASC && is_column(*order->item, group);
}

/* Whether the rows of the range come in the order that is asked for. */
bool is_in_order(const ORDER *order, const TABLE *table, const KeyRange &range) {
  if (!order || range.unique) return true;
  if (range.key == MAX_KEY) return false;
  const KEY &key = table->key_info[range.key];
  uint next = range.equal_parts;
  for (; order; order = order->next) {
    const Item *item = (*order->item)->real_item();
    if (item->type() != Item::FIELD_ITEM || order->direction != ORDER::ORDER_ASC) return false;
    const Field *field = static_cast<const Item_field *>(item)->field;
    const auto is_of = [&](uint part) { return key.key_part[part].field == field; };
    uint part = 0;
    while (part < range.equal_parts && !is_of(part)) part++;
    if (part < range.equal_parts) continue; /* of one value */
    constexpr uint16 kOther = HA_PART_KEY_SEG | HA_REVERSE_SORT | HA_BLOB_PART;
    if (next == key.user_defined_key_parts || !is_of(next) ||
        key.key_part[next].key_part_flag & kOther)
      return false;
    next++;
  }
  return true;
}

/* Whether rows found by the key must be fetched, and are so many that a scan of the table may be
   the better plan. */
bool too_many(TABLE *table, const KeyRange &range, bool limited) {
  if (range.unique || limited || range.key == MAX_KEY || range.key == table->s->primary_key ||
      table->covering_keys.is_set(range.key))
    return false;
  const auto part = [](const uchar *image, key_part_map parts, ha_rkey_function flag) {
    key_range end;
    end.key = image;
    end.length = 0;
    end.keypart_map = parts;
    end.flag = flag;
    return end;
  };
  const key_range low = part(range.low, range.low_parts,
                             range.low_inclusive ? HA_READ_KEY_OR_NEXT : HA_READ_AFTER_KEY);
  const bool equal = range.equal;
  const key_range high =
      part(equal ? range.low : range.high, equal ? range.low_parts : range.high_parts,
           equal || range.high_inclusive ? HA_READ_AFTER_KEY : HA_READ_BEFORE_KEY);
  const ha_rows rows = table->file->records_in_range(range.key, low.key ? &low : nullptr,
                                                     high.key ? &high : nullptr, nullptr);
  return rows > table->file->stats.records / 8;
}

/* EXPLAIN says no more than PUSHED SELECT of what the server does not run. */
void explain(THD *thd, const TABLE *table, const KeyRange &range, bool aggregates, bool inside) {
  const char *how = range.test_count && range.group ? ", tested, grouped and aggregated in pages"
                    : range.group                   ? ", grouped and aggregated in pages"
                    : range.test_count              ? ", tested and aggregated in pages"
                    : inside                        ? ", aggregated in pages"
                    : aggregates                    ? ", aggregated row by row"
                                                    : "";
  if (range.key == MAX_KEY)
    push_warning_printf(thd, Sql_condition::WARN_LEVEL_NOTE, ER_YES, "Peregrine: all rows%s", how);
  else
    push_warning_printf(thd, Sql_condition::WARN_LEVEL_NOTE, ER_YES, "Peregrine: %s of key `%s`%s",
                        range.unique              ? "one row"
                        : range.low || range.high ? "a range"
                                                  : "all",
                        table->key_info[range.key].name.str, how);
}

}  // namespace

select_handler *push_select(THD *thd, SELECT_LEX *select) {
  if (!pushes_down(thd)) return nullptr;
  TABLE *table = only_table(thd, select);
  if (!table || !readable(table)) return nullptr;
  KeyRange range;
  if (const ORDER *group = select->join->group_list) {
    range.group = group_of(group, table);
    if (!range.group) return nullptr;
  }
  const Columns columns = columns_of(select, range.group);
  if (columns == Columns::kOther) return nullptr;
  const bool aggregates = columns == Columns::kAggregates;
  const ORDER *order = select->join->order;
  if (aggregates && order && !(range.group && is_in_order_of(order, range.group))) return nullptr;
  if (Item *condition = select->join->conds) {
    if (condition->with_subquery() || !find_key_range(thd, table, condition, aggregates, &range))
      return nullptr;
  } else if (!aggregates) {
    return nullptr;
  }
  if (!aggregates && !is_in_order(order, table, range)) return nullptr;
  const bool whole = range.key == MAX_KEY;
  if (whole && !table->covering_keys.is_clear_all())
    range.key = find_shortest_key(table, &table->covering_keys);
  Aggregates inside;
  if (aggregates &&
      !inside.find(select->item_list, static_cast<RowHandler *>(table->file), range) &&
      (whole || range.test_count || range.group))
    return nullptr;
  const bool limited = !aggregates && select->master_unit()->lim.get_select_limit() != HA_POS_ERROR;
  if (too_many(table, range, limited)) return nullptr;
  if (thd->lex->describe) explain(thd, table, range, aggregates, !inside.empty());
  return new (std::nothrow) PushedSelect(thd, select, table, range, aggregates, inside);
}

}  // namespace peregrine
