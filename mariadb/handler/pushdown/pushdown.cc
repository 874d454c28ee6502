/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see mariadb/handler/LICENSE). */

/* The statements that the engine runs itself: reads of one table by one key, and joins of two
   tables by a clustered key, when their plan is beyond doubt. The server runs all others. */

#include "pushdown/plan/join_plan.h"
#include "tables/layout.h"
#include "pushdown/pushed_join.h"
#include "pushdown/pushed_range.h"

namespace peregrine {
namespace {

/* Returns whether the statement does nothing but choose rows of its tables, and perhaps aggregate
   them. */
bool is_plain(const THD *thd, SELECT_LEX *select) {
  const LEX *lex = thd->lex;
  if (lex->sql_command != SQLCOM_SELECT || lex->analyze_stmt || lex->limit_rows_examined ||
      lex->sroutines_list.elements || lex->with_rownum)
    return false;
  const JOIN *join = select->join;
  constexpr ulonglong kOthers =
      OPTION_FOUND_ROWS | SELECT_DISTINCT | OPTION_BUFFER_RESULT | SELECT_STRAIGHT_JOIN;
  if (join->select_options & kOthers || join->select_distinct || join->having || join->procedure ||
      select->olap != UNSPECIFIED_OLAP_TYPE || select->have_window_funcs() ||
      select->first_inner_unit() || select->custom_agg_func_used())
    return false;
  if (!(thd->variables.option_bits & OPTION_BIG_SELECTS)) return false;
  const Select_limit_counters &limit = select->master_unit()->lim;
  return limit.get_select_limit() != limit.get_offset_limit() && !limit.is_with_ties();
}

/* Returns whether the engine alone provides the table, and the statement reads it without locking
   rows. */
bool readable(const TABLE *table) {
  return table->file->ht == hton && !table->part_info && !table->vfield && !table->versioned() &&
         static_cast<RowHandler *>(table->file)->reads_snapshots();
}

/* Collects all conditions of an AND; false when one has a subquery. */
bool add_conditions(const THD *thd, Item *condition, List<Item> *all) {
  if (condition->with_subquery()) return false;
  auto *parts =
      condition->type() == Item::COND_ITEM ? static_cast<Item_cond *>(condition) : nullptr;
  if (!parts || parts->functype() != Item_func::COND_AND_FUNC)
    return !all->push_back(condition, thd->mem_root);
  List_iterator_fast<Item> each(*parts->argument_list());
  while (Item *part = each++)
    if (!add_conditions(thd, part, all)) return false;
  return true;
}

/* The tables of a statement, and the conditions, all of which must hold. */
struct Source {
  static constexpr uint kMost = 2;
  TABLE *tables[kMost];
  uint count = 0;
  List<Item> conditions;
};

/* Returns false for more tables, for a table of another engine, and for a statement that has hints
   for the plan or an outer join. */
bool find_source(const THD *thd, const JOIN *join, Source *out) {
  for (const TABLE_LIST *each = join->tables_list; each; each = each->next_local) {
    /* The nest that JOIN … ON makes of its tables. */
    const TABLE_LIST *nest = each->embedding;
    if (nest && (nest->embedding || nest->outer_join || nest->on_expr || nest->sj_on_expr))
      return false;
    if (out->count == Source::kMost || !each->table || each->is_view_or_derived() ||
        each->next_global != each->next_local || each->index_hints || each->outer_join ||
        each->straight || !readable(each->table))
      return false;
    if (each->on_expr && !add_conditions(thd, each->on_expr, &out->conditions)) return false;
    out->tables[out->count++] = each->table;
  }
  return out->count && (!join->conds || add_conditions(thd, join->conds, &out->conditions));
}

/* Returns whether an item is an aggregate function that depends on one column, or on none. */
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

/* Returns whether an item is MIN or MAX of a key's column: the server then reads only the key's
   ends. */
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

/* Returns the column of the table that alone groups the rows in ascending order; null for other
   groupings. */
Field *group_of(const ORDER *list, const TABLE *table) {
  Item *item = *list->item;
  if (list->next || list->direction == ORDER::ORDER_DESC || item->type() != Item::FIELD_ITEM)
    return nullptr;
  Field *field = static_cast<Item_field *>(item)->field;
  return field->table == table && is_integer(field->real_type()) ? field : nullptr;
}

/* The kind of a select list. */
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
  /* The server finds a key's ends at once. When a key begins with the grouping column, it finds
     them at once for each group, too. */
  const bool quicker = ends == plain && (!group || !group->key_start.is_clear_all());
  return plain && plain + groups == select->item_list.elements && !quicker ? Columns::kAggregates
                                                                           : Columns::kOther;
}

/* Returns whether the order asked for is the engine's order of groups: ascending. */
bool is_in_order_of(const ORDER *order, const Field *group) {
  return !order->next && order->direction == ORDER::ORDER_ASC && is_column(*order->item, group);
}

/* Returns whether the rows of the range come in the order asked for. */
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
    if (part < range.equal_parts) continue; /* the column has one value */
    constexpr uint16 kOther = HA_PART_KEY_SEG | HA_REVERSE_SORT | HA_BLOB_PART;
    if (next == key.user_defined_key_parts || !is_of(next) ||
        key.key_part[next].key_part_flag & kOther)
      return false;
    next++;
  }
  return true;
}

/* For a statement that the server does not run, EXPLAIN says only PUSHED SELECT. The note adds the
   plan. */
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
                        range.unique        ? "one row"
                        : !range.is_whole() ? "a range"
                                            : "all",
                        table->key_info[range.key].name.str, how);
}

void explain(THD *thd, const JoinPlan &plan) {
  const KeyRange &range = plan.range;
  const char *outer = plan.outer->alias.c_ptr();
  const char *inner = plan.inner->alias.c_ptr();
  if (!range.is_whole())
    push_warning_printf(thd, Sql_condition::WARN_LEVEL_NOTE, ER_YES,
                        "Peregrine: %s of key `%s` of `%s`, joined with rows of `%s` in batches",
                        range.unique ? "one row" : "a range",
                        plan.outer->key_info[range.key].name.str, outer, inner);
  else
    push_warning_printf(thd, Sql_condition::WARN_LEVEL_NOTE, ER_YES,
                        "Peregrine: all rows of `%s`, joined with rows of `%s` in batches", outer,
                        inner);
}

select_handler *push_range(THD *thd, SELECT_LEX *select, Source *source) {
  TABLE *table = source->tables[0];
  KeyRange range;
  if (const ORDER *group = select->join->group_list) {
    range.group = group_of(group, table);
    if (!range.group) return nullptr;
  }
  const Columns columns = columns_of(select, range.group);
  if (columns == Columns::kOther) return nullptr;
  const bool aggregates = columns == Columns::kAggregates;
  /* Only the ORDER BY has an aggregate: the server has dropped the order, since the result is one
     row. */
  if (!aggregates && select->join->implicit_grouping) return nullptr;
  const ORDER *order = select->join->order;
  if (aggregates && order && !(range.group && is_in_order_of(order, range.group))) return nullptr;
  if (source->conditions.elements) {
    if (!find_key_range(thd, table, source->conditions, aggregates, &range)) return nullptr;
  } else if (!aggregates) {
    return nullptr;
  }
  if (!aggregates && !is_in_order(order, table, range)) return nullptr;
  const bool whole = range.key == MAX_KEY;
  if (whole && !table->covering_keys.is_clear_all())
    range.key = find_shortest_key(table, &table->covering_keys);
  Aggregates inside;
  /* A value may not fit the variable that it is assigned to, and the warning about that names a
     row. */
  const bool counts = thd->lex->result && !range.unique && !range.test_count && !range.group;
  if (aggregates &&
      !inside.find(select->item_list, static_cast<RowHandler *>(table->file), range, counts) &&
      (whole || range.test_count || range.group))
    return nullptr;
  const bool limited = !aggregates && select->master_unit()->lim.get_select_limit() != HA_POS_ERROR;
  if (!limited && needs_rows(table, range) &&
      rows_in(table, range) > table->file->stats.records / 8)
    return nullptr;
  if (thd->lex->describe) explain(thd, table, range, aggregates, !inside.empty());
  return new (std::nothrow) PushedRange(thd, select, table, range, aggregates, inside);
}

select_handler *push_join(THD *thd, SELECT_LEX *select, Source *source) {
  const JOIN *join = select->join;
  if (join->group_list || join->implicit_grouping ||
      columns_of(select, nullptr) != Columns::kExpressions)
    return nullptr;
  const bool limited = select->master_unit()->lim.get_select_limit() != HA_POS_ERROR;
  JoinPlan plan;
  if (!find_join(thd, source->conditions, source->tables, limited, &plan)) return nullptr;
  /* The server reads a row that is known to be the only one before it runs the statement, and
     evaluates its conditions several times. */
  if (plan.range.unique && !plan.is_quiet) return nullptr;
  /* The join evaluates conditions of many rows before the select list of the first of them. */
  if ((select->uncacheable & UNCACHEABLE_SIDEEFFECT) && !plan.outer_is_quiet) return nullptr;
  if (!is_in_order(join->order, plan.outer, plan.range)) {
    /* A full scan can also follow the clustered key. */
    if (!plan.range.is_whole()) return nullptr;
    plan.range.key = plan.outer->s->primary_key;
    if (!is_in_order(join->order, plan.outer, plan.range)) return nullptr;
  }
  if (thd->lex->describe) explain(thd, plan);
  return new (std::nothrow) PushedJoin(thd, select, plan);
}

}  // namespace

select_handler *push_select(THD *thd, SELECT_LEX *select) {
  if (!pushes_down(thd) || !is_plain(thd, select)) return nullptr;
  /* A cursor only needs the columns' definitions. */
  if (select->join->result && select->join->result->view_structure_only()) return nullptr;
  Source source;
  if (!find_source(thd, select->join, &source)) return nullptr;
  return source.count == 1 ? push_range(thd, select, &source) : push_join(thd, select, &source);
}

}  // namespace peregrine
