/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see mariadb/handler/LICENSE). */

#include "tables/create_text.h"

namespace peregrine {

const char *const kHiddenType = "hidden";

/* While an object of this class lives, expressions are printed the same whatever the session's
   modes: with names in backticks, and with backslashes. */
class WithoutModes {
 public:
  explicit WithoutModes(THD *thd) : thd_(thd) {
    if (!thd_) return;
    mode_ = thd_->variables.sql_mode;
    options_ = thd_->variables.option_bits;
    thd_->variables.sql_mode = 0;
    thd_->variables.option_bits |= OPTION_QUOTE_SHOW_CREATE;
  }
  ~WithoutModes() {
    if (!thd_) return;
    thd_->variables.sql_mode = mode_;
    thd_->variables.option_bits = options_;
  }
  WithoutModes(const WithoutModes &) = delete;
  WithoutModes &operator=(const WithoutModes &) = delete;

 private:
  THD *thd_;
  sql_mode_t mode_ = 0;
  ulonglong options_ = 0;
};

static std::string name_text(const LEX_CSTRING &name) {
  std::string text = "`";
  for (size_t i = 0; i < name.length; i++) {
    if (name.str[i] == '`') text += '`';
    text += name.str[i];
  }
  return text + "`";
}

static std::string string_text(const char *from, size_t length) {
  StringBuffer<MAX_FIELD_WIDTH> text(&my_charset_utf8mb4_general_ci);
  append_unescaped(&text, from, length);
  return std::string(text.ptr(), text.length());
}

static std::string comment_text(const LEX_CSTRING &comment) {
  return " COMMENT " + string_text(comment.str, comment.length);
}

static std::string expression_text(Virtual_column_info *info) {
  StringBuffer<MAX_FIELD_WIDTH> text(&my_charset_utf8mb4_general_ci);
  info->print(&text);
  return std::string(text.ptr(), text.length());
}

static std::string bits_text(Field *field) {
  std::string bits;
  for (ulonglong left = field->val_int(); left || bits.empty(); left >>= 1)
    bits.insert(bits.begin(), left & 1 ? '1' : '0');
  return "b'" + bits + "'";
}

static std::string bytes_text(const String &bytes) {
  static const char digits[] = "0123456789ABCDEF";
  std::string text = "X'";
  for (uint32 i = 0; i < bytes.length(); i++) {
    const uchar byte = static_cast<uchar>(bytes.ptr()[i]);
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text + "'";
}

static bool is_printable(const String &bytes) {
  for (uint32 i = 0; i < bytes.length(); i++) {
    if (bytes.ptr()[i] < ' ' || bytes.ptr()[i] > '~') return false;
  }
  return true;
}

/* Returns the field's present value as a literal. */
static std::string literal(Field *field) {
  if (field->type() == MYSQL_TYPE_BIT) return bits_text(field);
  StringBuffer<MAX_FIELD_WIDTH> buffer(field->charset());
  const String *value = field->val_str(&buffer);
  if (!value) return "";
  if (!field->str_needs_quotes()) return std::string(value->ptr(), value->length());
  if (field->charset() == &my_charset_bin && !is_printable(*value)) return bytes_text(*value);
  StringBuffer<MAX_FIELD_WIDTH> text;
  uint errors;
  if (text.copy(value->ptr(), value->length(), field->charset(), &my_charset_utf8mb4_general_ci,
                &errors))
    return "";
  return string_text(text.ptr(), text.length());
}

/* Returns the default value of a column; empty when it is NULL, or there is none. */
static std::string default_text(const TABLE *table, Field *field) {
  if (Virtual_column_info *expression = field->default_value) {
    const std::string text = expression_text(expression);
    return expression->expr->need_parentheses_in_default() ? "(" + text + ")" : text;
  }
  if ((field->flags & (NO_DEFAULT_VALUE_FLAG | BLOB_FLAG)) ||
      field->unireg_check == Field::NEXT_NUMBER)
    return "";
  const my_ptrdiff_t by = table->s->default_values - table->record[0];
  field->move_field_offset(by);
  const std::string text = field->is_null() ? "" : literal(field);
  field->move_field_offset(-by);
  return text;
}

/* Returns whether a load would compute other values than those stored. */
static bool is_of_its_moment(const Field *field) {
  return field->stored_in_db() && (field->vcol_info->flags & VCOL_NOT_STRICTLY_DETERMINISTIC);
}

bool is_absent(const Field *field) {
  return !field->stored_in_db() && !(field->flags & PART_KEY_FLAG);
}

std::string sql_type(const Field *field) {
  if (field->invisible == INVISIBLE_FULL) return kHiddenType;
  const bool is_old_format =
      field->type_handler()->version().ptr() == Type_handler::version_mariadb53().ptr();
  if (is_old_format && field->decimals() > 0) return "";
  StringBuffer<MAX_FIELD_WIDTH> type(&my_charset_utf8mb4_bin);
  field->sql_type(type);
  std::string text(type.ptr(), type.length());
  if (field->has_charset())
    text += std::string(" CHARACTER SET ") + field->charset()->cs_name.str + " COLLATE " +
            field->charset()->coll_name.str;
  if (field->flags & AUTO_INCREMENT_FLAG) text += " AUTO_INCREMENT";
  return text;
}

std::string column_rest(const TABLE *table, Field *field) {
  if (field->invisible == INVISIBLE_FULL) return "";
  const WithoutModes plainly(current_thd);
  std::string text;
  if (field->vers_sys_field()) {
    const char *row = field->vers_sys_start() ? "ROW START" : "ROW END";
    if (field->invisible == INVISIBLE_SYSTEM) return row;
    text = std::string(" GENERATED ALWAYS AS ") + row;
  } else if (field->vcol_info) {
    if (!is_of_its_moment(field))
      text = " GENERATED ALWAYS AS (" + expression_text(field->vcol_info) +
             (field->stored_in_db() ? ") STORED" : ") VIRTUAL");
  } else {
    const std::string value = default_text(table, field);
    if (!value.empty()) text += " DEFAULT " + value;
    if (field->has_update_default_function()) {
      text += " ON UPDATE current_timestamp(";
      if (field->decimals()) text += std::to_string(field->decimals());
      text += ")";
    }
    if (table->versioned() && field->vers_update_unversioned())
      text += " WITHOUT SYSTEM VERSIONING";
  }
  if (field->invisible == INVISIBLE_USER) text += " INVISIBLE";
  if (field->comment.length) text += comment_text(field->comment);
  if (field->check_constraint) text += " CHECK (" + expression_text(field->check_constraint) + ")";
  return text;
}

/* Entries of three texts, with a NUL between texts. */
class Parts {
 public:
  void add(const char *kind, const std::string &of, const std::string &text) {
    if (!text_.empty()) text_ += '\0';
    text_ += kind;
    text_ += '\0';
    append(of);
    text_ += '\0';
    append(text);
  }
  const std::string &text() const { return text_; }

 private:
  void append(const std::string &text) {
    for (char letter : text)
      if (letter) text_ += letter;
  }

  std::string text_;
};

static void add_columns(const TABLE *table, Parts *parts) {
  for (Field **at = table->field; *at; at++) {
    Field *field = *at;
    if (is_absent(field) && field->invisible <= INVISIBLE_USER)
      parts->add("column", std::to_string(at - table->field),
                 name_text(field->field_name) + " " + sql_type(field) + column_rest(table, field));
    if (!field->vers_sys_field() && field->vcol_info && is_of_its_moment(field))
      parts->add("comment", "",
                 "column " + std::string(field->field_name.str) +
                     " is not generated here: a load may work out other values of " +
                     expression_text(field->vcol_info));
  }
}

static void add_periods(const TABLE *table, Parts *parts) {
  const TABLE_SHARE *share = table->s;
  auto ends = [](const Field *start, const Field *end) {
    return " (" + name_text(start->field_name) + ", " + name_text(end->field_name) + ")";
  };
  if (share->versioned) {
    parts->add("option", "", "WITH SYSTEM VERSIONING");
    if (table->vers_start_field()->invisible != INVISIBLE_SYSTEM)
      parts->add(
          "line", "",
          "PERIOD FOR SYSTEM_TIME" + ends(table->vers_start_field(), table->vers_end_field()));
  }
  if (share->period.name)
    parts->add("line", "",
               "PERIOD FOR " + name_text(share->period.name) +
                   ends(table->period_start_field(), table->period_end_field()));
}

static void add_checks(const TABLE *table, Parts *parts) {
  const TABLE_SHARE *share = table->s;
  if (!table->check_constraints) return;
  /* The checks of columns come first in the array, and are part of the columns' text. */
  for (uint c = share->field_check_constraints; c < share->table_check_constraints; c++) {
    Virtual_column_info *check = table->check_constraints[c];
    /* A period's own check comes with the period. */
    if (share->period.constr_name.streq(check->name)) continue;
    const std::string name = check->name.str ? "CONSTRAINT " + name_text(check->name) + " " : "";
    parts->add("line", "", name + "CHECK (" + expression_text(check) + ")");
  }
}

static void add_keys(const TABLE *table, Parts *parts) {
  for (uint k = 0; k < table->s->keys; k++) {
    const KEY &key = table->key_info[k];
    std::string text;
    if (key.flags & HA_USES_COMMENT) text += comment_text(key.comment);
    if (key.is_ignored) text += " IGNORED";
    if (!text.empty()) parts->add("key", key.name.str, text);
    if (key.without_overlaps)
      parts->add("overlaps", key.name.str, name_text(table->s->period.name) + " WITHOUT OVERLAPS");
  }
}

std::string table_rest(const TABLE *table) {
  const WithoutModes plainly(current_thd);
  Parts parts;
  const CHARSET_INFO *charset = table->s->table_charset;
  /* This entry always exists: it tells that the text is complete. */
  parts.add("option", "",
            charset ? std::string("DEFAULT CHARSET=") + charset->cs_name.str +
                          " COLLATE=" + charset->coll_name.str
                    : "");
  if (table->s->comment.length) parts.add("option", "", comment_text(table->s->comment).substr(1));
  add_columns(table, &parts);
  add_periods(table, &parts);
  add_checks(table, &parts);
  add_keys(table, &parts);
  return parts.text();
}

}  // namespace peregrine
