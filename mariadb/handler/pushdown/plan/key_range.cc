/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see mariadb/handler/LICENSE). */

#include "pushdown/plan/key_range.h"
#include "tables/layout.h"

namespace peregrine {
namespace {

/* The constants that a column is compared with. */
struct Bounds {
  Field *field = nullptr;
  Item *low = nullptr;
  Item *high = nullptr;
  bool equal = false; /* to `low` */
  bool low_inclusive = true;
  bool high_inclusive = true;
  /* Whether the key's range decides the comparison. */
  bool in_range = false;
};

/* A comparison that no key range can express, but a test of each row can. */
struct Other {
  Field *field;
  Item *constant; /* null: no constant */
  peregrine_operator operation;
};

/* Comparisons of a condition, by column. A condition with more columns is not a key look-up. */
struct Comparisons {
  static constexpr uint kMost = 8;
  Bounds columns[kMost];
  uint count = 0;
  Other others[kMost];
  uint other_count = 0;

  Bounds *of(const Field *field) {
    for (uint i = 0; i < count; i++)
      if (columns[i].field == field) return &columns[i];
    return nullptr;
  }

  /* Adds bounds for a column that has none yet; null when there are too many. */
  Bounds *add(Field *field) {
    if (count == kMost) return nullptr;
    columns[count].field = field;
    return &columns[count++];
  }

  bool add_other(const Other &other) {
    if (other_count == kMost) return false;
    others[other_count++] = other;
    return true;
  }
};

/* Returns whether an integer is in the range of the column's type. */
bool fits(const Field *field, longlong value, bool is_unsigned) {
  const uint bits = field->pack_length() * 8;
  if (field->flags & UNSIGNED_FLAG) {
    if (value < 0 && !is_unsigned) return false;
    return bits == 64 || static_cast<ulonglong>(value) < 1ULL << bits;
  }
  if (value < 0) return !is_unsigned && (bits == 64 || value >= -(1LL << (bits - 1)));
  return bits == 64 || value < 1LL << (bits - 1);
}

/* Returns whether the engine can test rows for a comparison with the column. */
bool is_testable(const Field *field) {
  return is_integer(field->type()) || field->type() == MYSQL_TYPE_DATE;
}

/* Returns whether the server compares the column with the constant as strings: not, for example, as
   addresses, and not with the text in a JSON value. */
bool compares_as_strings(const Field *field, const Item *constant) {
  if (constant->cmp_type() != STRING_RESULT) return false;
  if (constant->type() == Item::FUNC_ITEM &&
      static_cast<const Item_func *>(constant)->functype() == Item_func::JSON_EXTRACT_FUNC)
    return false;
  const Type_handler *own = field->type_handler_for_comparison();
  Type_handler_hybrid_field_type both(own);
  return !both.aggregate_for_comparison(constant->type_handler_for_comparison()) &&
         both.type_handler() == own;
}

/* Returns whether the evaluation of a constant may change something: the server may never evaluate
   it. A function that only reads a variable, or the last automatic value, has no argument. */
bool may_change_something(const Field *field, const Item *constant) {
  const SELECT_LEX *select = field->table->in_use->lex->first_select_lex();
  if (!(select->uncacheable & UNCACHEABLE_SIDEEFFECT)) return false;
  return constant->type() == Item::COND_ITEM ||
         (constant->type() == Item::FUNC_ITEM &&
          static_cast<const Item_func *>(constant)->argument_count() != 0);
}

/* Returns whether the order of a key is the order in which the server compares the column with the
   constant, and the column can have the constant as its value. */
bool comparable(const Field *field, Item *constant, CHARSET_INFO *collation) {
  if (!constant->const_item() || constant->with_subquery() || constant->is_expensive() ||
      may_change_something(field, constant))
    return false;
  if (is_integer(field->type())) {
    if (constant->cmp_type() != INT_RESULT) return false;
    const longlong value = constant->val_int();
    return !constant->null_value && fits(field, value, constant->unsigned_flag);
  }
  switch (field->type()) {
    case MYSQL_TYPE_DATE:
      return (constant->cmp_type() == STRING_RESULT ||
              constant->type_handler()->field_type() == MYSQL_TYPE_DATE) &&
             is_day(constant);
    case MYSQL_TYPE_VARCHAR:
      break;
    case MYSQL_TYPE_STRING:
      /* The padding of a column must not count. */
      if (field->binary() || field->charset()->state & MY_CS_NOPAD) return false;
      break;
    default:
      return false;
  }
  /* The server treats ENUM and SET as strings only when it compares them. */
  if (field->real_type() != field->type()) return false;
  if (!compares_as_strings(field, constant) || collation != field->charset()) return false;
  StringBuffer<MAX_FIELD_WIDTH> memory;
  const String *value = constant->val_str(&memory);
  return value && my_charset_same(value->charset(), field->charset()) &&
         value->numchars() <= field->char_length();
}

/* Returns the column of the table that an operand is; null: it is none. */
Field *column_of(const TABLE *table, Item *operand) {
  if (operand->type() != Item::FIELD_ITEM) return nullptr;
  Field *field = static_cast<Item_field *>(operand)->field;
  return field->table == table ? field : nullptr;
}

bool add_comparison(Comparisons *all, Field *field, Item_func::Functype operation, Item *constant) {
  Bounds *bounds = all->of(field);
  switch (operation) {
    case Item_func::EQ_FUNC:
      if (bounds || !(bounds = all->add(field))) return false;
      bounds->equal = true;
      bounds->low = constant;
      return true;
    case Item_func::GT_FUNC:
    case Item_func::GE_FUNC:
      if (!bounds && !(bounds = all->add(field))) return false;
      if (bounds->low) return false;
      bounds->low = constant;
      bounds->low_inclusive = operation == Item_func::GE_FUNC;
      return true;
    case Item_func::LT_FUNC:
    case Item_func::LE_FUNC:
      if (!bounds && !(bounds = all->add(field))) return false;
      if (bounds->high || bounds->equal) return false;
      bounds->high = constant;
      bounds->high_inclusive = operation == Item_func::LE_FUNC;
      return true;
    default:
      return false;
  }
}

/* Reads a comparison; false when it is not one with a constant. */
bool read_comparison(const TABLE *table, Item *condition, Comparisons *all) {
  if (condition->type() != Item::FUNC_ITEM) return false;
  auto *function = static_cast<Item_func *>(condition);
  Item **operands = function->arguments();
  switch (function->functype()) {
    case Item_func::EQ_FUNC:
    case Item_func::GT_FUNC:
    case Item_func::GE_FUNC:
    case Item_func::LT_FUNC:
    case Item_func::LE_FUNC: {
      auto *comparison = static_cast<Item_bool_rowready_func2 *>(condition);
      Item_func::Functype operation = comparison->functype();
      Field *field = column_of(table, operands[0]);
      Item *constant = operands[1];
      if (!field) {
        field = column_of(table, operands[1]);
        constant = operands[0];
        operation = comparison->rev_functype();
      }
      return field && comparable(field, constant, comparison->compare_collation()) &&
             add_comparison(all, field, operation, constant);
    }
    /* For a column with a key the server may have a better plan. */
    case Item_func::NE_FUNC: {
      auto *comparison = static_cast<Item_bool_rowready_func2 *>(condition);
      Field *field = column_of(table, operands[0]);
      Item *constant = operands[field ? 1 : 0];
      if (!field) field = column_of(table, operands[1]);
      return field && field->key_start.is_clear_all() && is_testable(field) &&
             comparable(field, constant, comparison->compare_collation()) &&
             all->add_other({field, constant, PEREGRINE_TEST_NOT_EQUAL});
    }
    case Item_func::ISNULL_FUNC:
    case Item_func::ISNOTNULL_FUNC: {
      Field *field = column_of(table, operands[0]);
      const bool is_null = function->functype() == Item_func::ISNULL_FUNC;
      /* For a NOT NULL column the server makes IS NULL find zero dates, and the row last
         inserted. */
      return field && field->real_maybe_null() && field->key_start.is_clear_all() &&
             all->add_other(
                 {field, nullptr, is_null ? PEREGRINE_TEST_IS_NULL : PEREGRINE_TEST_IS_NOT_NULL});
    }
    case Item_func::BETWEEN: {
      auto *between = static_cast<Item_func_between *>(condition);
      Field *field = column_of(table, operands[0]);
      if (!field || between->negated) return false;
      /* The server takes bounds that differ only in case for equal, whatever the column's
         collation. */
      if (!is_integer(field->type()) && operands[1]->eq(operands[2], false)) return false;
      for (int i = 1; i <= 2; i++)
        if (!comparable(field, operands[i], between->compare_collation())) return false;
      return add_comparison(all, field, Item_func::GE_FUNC, operands[1]) &&
             add_comparison(all, field, Item_func::LE_FUNC, operands[2]);
    }
    default:
      return false;
  }
}

/* The number of a key's parts that the comparisons use: first parts with equalities, and perhaps
   one part with bounds after them. -1 when the key can't express them. */
int used_parts(const KEY &key, Comparisons *all) {
  for (uint i = 0; i < key.user_defined_key_parts; i++) {
    const KEY_PART_INFO &part = key.key_part[i];
    const Bounds *bounds = all->of(part.field);
    if (!bounds) return static_cast<int>(i);
    if (part.key_part_flag & (HA_PART_KEY_SEG | HA_REVERSE_SORT | HA_BLOB_PART)) return -1;
    if (!bounds->equal) return static_cast<int>(i) + 1;
  }
  return static_cast<int>(key.user_defined_key_parts);
}

/* Returns the image of the key's first parts, with the low or the high constants; null when there
   is no memory or a column can't store its constant. */
const uchar *image_of(THD *thd, TABLE *table, const KEY &key, uint parts, Comparisons *all,
                      bool high) {
  uint length = 0;
  for (uint i = 0; i < parts; i++) {
    const KEY_PART_INFO &part = key.key_part[i];
    const Bounds *bounds = all->of(part.field);
    Item *constant = high && !bounds->equal ? bounds->high : bounds->low;
    if (constant->save_in_field_no_warnings(part.field, true)) return nullptr;
    part.field->set_notnull();
    length += part.store_length;
  }
  auto *image = static_cast<uchar *>(thd->alloc(length));
  if (image) key_copy(image, table->record[0], &key, length);
  return image;
}

/* Returns the bytes of a column in a record where its value is the constant; null when there is no
   memory or the column can't store the constant. */
const uchar *value_of(THD *thd, Field *field, Item *constant) {
  if (constant->save_in_field_no_warnings(field, true)) return nullptr;
  return static_cast<uchar *>(thd->memdup(field->ptr, field->pack_length()));
}

/* Makes the comparisons that the range does not decide into tests of its rows. Returns false when
   that is impossible: strings compare by their collations. */
bool add_tests(THD *thd, const Comparisons &all, KeyRange *range) {
  const size_t most = 2 * all.count + all.other_count;
  auto *tests = static_cast<peregrine_test *>(thd->alloc(most * sizeof(peregrine_test)));
  if (!tests) return false;
  uint count = 0;
  const auto add = [&](Field *field, Item *constant, peregrine_operator operation) {
    const uchar *value = value_of(thd, field, constant);
    tests[count++] = {field->field_index, static_cast<uint32_t>(operation), value};
    return value != nullptr;
  };
  for (uint i = 0; i < all.count; i++) {
    const Bounds &bounds = all.columns[i];
    if (bounds.in_range) continue;
    if (!is_testable(bounds.field)) return false;
    if (bounds.equal) {
      if (!add(bounds.field, bounds.low, PEREGRINE_TEST_EQUAL)) return false;
      continue;
    }
    if (bounds.low &&
        !add(bounds.field, bounds.low,
             bounds.low_inclusive ? PEREGRINE_TEST_GREATER_OR_EQUAL : PEREGRINE_TEST_GREATER))
      return false;
    if (bounds.high &&
        !add(bounds.field, bounds.high,
             bounds.high_inclusive ? PEREGRINE_TEST_LESS_OR_EQUAL : PEREGRINE_TEST_LESS))
      return false;
  }
  for (uint i = 0; i < all.other_count; i++) {
    const Other &other = all.others[i];
    if (other.constant) {
      if (!add(other.field, other.constant, other.operation)) return false;
    } else {
      tests[count++] = {other.field->field_index, static_cast<uint32_t>(other.operation), nullptr};
    }
  }
  range->tests = tests;
  range->test_count = count;
  return true;
}

bool find_range(THD *thd, TABLE *table, List<Item> &conditions, bool tests, KeyRange *range) {
  Comparisons all;
  List_iterator_fast<Item> each(conditions);
  while (Item *condition = each++)
    if (!read_comparison(table, condition, &all)) return false;
  uint found = MAX_KEY;
  for (uint i = 0; i < table->s->keys; i++) {
    const int used = used_parts(table->key_info[i], &all);
    if (used == 0) continue;
    /* There is a choice: another key could be used, too. */
    if (used < 0 || found != MAX_KEY || !table->keys_in_use_for_query.is_set(i)) return false;
    found = i;
  }
  if (found == MAX_KEY) return tests && add_tests(thd, all, range);
  const KEY &key = table->key_info[found];
  const uint parts = static_cast<uint>(used_parts(key, &all));
  for (uint i = 0; i < parts; i++) all.of(key.key_part[i].field)->in_range = true;
  if ((parts != all.count || all.other_count) && !(tests && add_tests(thd, all, range)))
    return false;
  const Bounds *last = all.of(key.key_part[parts - 1].field);
  range->key = found;
  range->equal = last->equal;
  range->equal_parts = last->equal ? parts : parts - 1;
  range->unique = last->equal && parts == key.user_defined_key_parts && (key.flags & HA_NOSAME);
  const key_part_map all_parts = make_prev_keypart_map(parts);
  const key_part_map before = make_prev_keypart_map(parts - 1);
  if (last->low) {
    range->low = image_of(thd, table, key, parts, &all, false);
    if (!range->low) return false;
    range->low_parts = all_parts;
    range->low_inclusive = last->low_inclusive;
  } else if (last->field->real_maybe_null()) {
    /* NULL is ordered before all values, but no value is greater than NULL in a comparison. */
    return false;
  } else if (parts > 1) {
    range->low = image_of(thd, table, key, parts - 1, &all, false);
    if (!range->low) return false;
    range->low_parts = before;
  }
  if (last->equal) return true;
  if (last->high) {
    range->high = image_of(thd, table, key, parts, &all, true);
    if (!range->high) return false;
    range->high_parts = all_parts;
    range->high_inclusive = last->high_inclusive;
  } else if (parts > 1) {
    range->high = image_of(thd, table, key, parts - 1, &all, false);
    if (!range->high) return false;
    range->high_parts = before;
  }
  return true;
}

}  // namespace

bool find_key_range(THD *thd, TABLE *table, List<Item> &conditions, bool tests, KeyRange *range) {
  /* This evaluates constants. The server must report errors and warnings of that itself, as often
     as it evaluates them, or not at all if it does not. */
  Dummy_error_handler said;
  thd->push_internal_handler(&said);
  const bool found = find_range(thd, table, conditions, tests, range);
  thd->pop_internal_handler();
  return found && !said.any_error();
}

bool is_day(Item *constant) {
  StringBuffer<16> memory;
  const String *value = constant->val_str(&memory);
  if (!value || value->length() != 10 || value->charset()->mbminlen != 1) return false;
  uint parts[3] = {0, 0, 0};
  uint part = 0;
  for (uint i = 0; i < 10; i++) {
    const char c = value->ptr()[i];
    if (i == 4 || i == 7) {
      if (c != '-') return false;
      part++;
    } else {
      if (c < '0' || c > '9') return false;
      parts[part] = 10 * parts[part] + static_cast<uint>(c - '0');
    }
  }
  const auto [year, month, day] = parts;
  constexpr uint kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  if (!year || !month || month > 12) return false;
  const bool leap = month == 2 && year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
  return day && day <= kDays[month - 1] + leap;
}

bool needs_rows(const TABLE *table, const KeyRange &range) {
  return !range.unique && range.key != MAX_KEY && range.key != table->s->primary_key &&
         !table->covering_keys.is_set(range.key);
}

ha_rows rows_in(TABLE *table, const KeyRange &range) {
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
  return table->file->records_in_range(range.key, low.key ? &low : nullptr,
                                       high.key ? &high : nullptr, nullptr);
}

ha_rows rows_of(TABLE *table) {
  /* The handler's number may date from the opening of the table. */
  return table->file->info(HA_STATUS_VARIABLE | HA_STATUS_NO_LOCK) ? 0 : table->file->stats.records;
}

}  // namespace peregrine
