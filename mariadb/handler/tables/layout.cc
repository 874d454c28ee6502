/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see mariadb/handler/LICENSE). */

#include "tables/layout.h"
#include "tables/collation.h"
#include "tables/create_text.h"

#include <algorithm>

namespace peregrine {

/* The prefix of the server's file names of temporary tables. In the names of other tables such
   characters are encoded. The directory does not tell: tmpdir may be below the directory of the
   schemas. */
static constexpr const char *kTemporaryFile = tmp_file_prefix "-temptable-";

std::string table_name(const char *path) {
  const char *table = strrchr(path, FN_LIBCHAR);
  if (!table) return path;
  if (!strncmp(table + 1, kTemporaryFile, strlen(kTemporaryFile)))
    return std::string(kTemporaryPrefix) + (table + 1);
  const char *schema = table;
  while (schema > path && schema[-1] != FN_LIBCHAR) schema--;
  return schema;
}

/* Returns whether a collation orders the column's values, and not their bytes. The record has the
   values of a COMPRESSED column as the server has compressed them; no key has them. */
static bool is_text(const Field *field) {
  if (field->compression_method()) return false;
  switch (field->key_type()) {
    case HA_KEYTYPE_TEXT:
    case HA_KEYTYPE_VARTEXT1:
    case HA_KEYTYPE_VARTEXT2:
      return true;
    default:
      return false;
  }
}

/* Returns the pad character's bytes as a big-endian number of mbminlen bytes. */
static uint32_t pad_character(CHARSET_INFO *charset) {
  char bytes[4] = {0, 0, 0, 0};
  charset->fill(bytes, charset->mbminlen, charset->pad_char);
  uint32_t pad = 0;
  for (uint i = 0; i < charset->mbminlen; i++) pad = pad << 8 | static_cast<uchar>(bytes[i]);
  return pad;
}

static bool is_blob(const Field *field) {
  return field->flags & BLOB_FLAG;
}

bool is_integer(enum_field_types type) {
  switch (type) {
    case MYSQL_TYPE_TINY:
    case MYSQL_TYPE_SHORT:
    case MYSQL_TYPE_INT24:
    case MYSQL_TYPE_LONG:
    case MYSQL_TYPE_LONGLONG:
      return true;
    default:
      return false;
  }
}

void TableLayout::add_column(const TABLE *table, Field *field) {
  peregrine_column column{};
  column.name = field->field_name.str;
  column.name_length = static_cast<uint32_t>(field->field_name.length);
  texts_.push_back(sql_type(field));
  column.type = texts_.back().data();
  column.type_length = static_cast<uint32_t>(texts_.back().length());
  texts_.push_back(column_rest(table, field));
  column.rest = texts_.back().data();
  column.rest_length = static_cast<uint32_t>(texts_.back().length());
  column.offset = static_cast<uint32_t>(field->offset(table->record[0]));
  column.length = field->pack_length();
  if (field->real_maybe_null()) {
    column.null_offset = static_cast<uint32_t>(field->null_offset(table->record[0]));
    column.null_bit = field->null_bit;
  }
  CHARSET_INFO *charset = field->charset();

  if (is_absent(field)) {
    column.kind = PEREGRINE_ABSENT;
  } else if (is_blob(field)) {
    column.kind = PEREGRINE_BLOB;
    column.length_bytes = static_cast<Field_blob *>(field)->pack_length_no_ptr();
    if (is_text(field)) column.collation = engine_collation(charset, 0, false);
  } else {
    switch (field->real_type()) {
      case MYSQL_TYPE_FLOAT:
        column.kind = PEREGRINE_FLOAT;
        break;
      case MYSQL_TYPE_DOUBLE:
        column.kind = PEREGRINE_DOUBLE;
        break;
      case MYSQL_TYPE_ENUM:
      case MYSQL_TYPE_SET:
      case MYSQL_TYPE_YEAR:
        column.kind = PEREGRINE_UNSIGNED;
        break;
      case MYSQL_TYPE_VARCHAR:
      case MYSQL_TYPE_VARCHAR_COMPRESSED: {
        const Field_varstring *string = static_cast<Field_varstring *>(field);
        column.kind = PEREGRINE_VARIABLE;
        column.length_bytes = string->length_bytes;
        column.length = string->field_length;
        if (is_text(field))
          column.collation = engine_collation(charset, column.length / charset->mbmaxlen, false);
        break;
      }
      case MYSQL_TYPE_STRING:
        if (is_text(field)) {
          column.kind = PEREGRINE_PADDED;
          column.pad_length = charset->mbminlen;
          column.pad = pad_character(charset);
          column.collation = engine_collation(charset, column.length / charset->mbmaxlen, true);
        } else {
          /* BINARY, UUID, INET4, INET6. In the prefix that a key takes of a BINARY, zeros at the
             end count. */
          column.kind = PEREGRINE_FIXED;
        }
        break;
      default:
        if (is_integer(field->real_type())) {
          column.kind = field->flags & UNSIGNED_FLAG ? PEREGRINE_UNSIGNED : PEREGRINE_SIGNED;
          break;
        }
        switch (field->key_type()) {
          case HA_KEYTYPE_INT24:
            column.kind = PEREGRINE_SIGNED;
            break;
          case HA_KEYTYPE_UINT24:
          case HA_KEYTYPE_ULONG_INT:
          case HA_KEYTYPE_ULONGLONG:
            column.kind = PEREGRINE_UNSIGNED;
            break;
          case HA_KEYTYPE_BINARY:
            /* DECIMAL, BIT, and the time types with fractions: big-endian, in a form that compares
               as bytes */
            column.kind = PEREGRINE_FIXED;
            break;
          default: {
            StringBuffer<64> type;
            field->sql_type(type);
            refused_ = "column " + std::string(field->field_name.str) + " of type " +
                       std::string(type.ptr(), type.length());
          }
        }
    }
  }
  columns_.push_back(column);
}

/* Writes the bytes that the server puts in the column's place when it sets the column to NULL: it
   compares these bytes of records, too. */
void TableLayout::add_null(const TABLE *table, Field *field) {
  if (is_blob(field)) return;
  const my_ptrdiff_t by = nulls_.data() - table->record[0];
  field->move_field_offset(by);
  field->reset();
  field->move_field_offset(-by);
}

/* The engine's rows have at least one column, but the server allows tables with only virtual
   columns. The engine then stores the first one without bytes: the server computes all values. */
void TableLayout::keep_one_column() {
  auto is_left_out = [](const peregrine_column &column) { return column.kind == PEREGRINE_ABSENT; };
  if (columns_.empty() || !std::all_of(columns_.begin(), columns_.end(), is_left_out)) return;
  peregrine_column &first = columns_.front();
  first.kind = PEREGRINE_FIXED;
  first.length = first.null_offset = first.null_bit = first.rest_length = 0;
  /* table_rest describes the column that statements see. */
  first.type = kHiddenType;
  first.type_length = static_cast<uint32_t>(strlen(kHiddenType));
}

void TableLayout::add_key(const TABLE *table, const KEY &key) {
  std::vector<peregrine_key_part> parts;
  /* The server appends columns of the clustered key to a secondary key when they change nothing but
     the order of entries. */
  uint count = MY_MAX(key.user_defined_key_parts, key.ext_key_parts);
  for (uint p = 0; p < count; p++) {
    const KEY_PART_INFO &from = key.key_part[p];
    Field *field = table->field[from.fieldnr - 1];
    CHARSET_INFO *charset = field->charset();
    uint characters = from.length / (is_text(field) ? charset->mbmaxlen : 1);
    peregrine_key_part part{};
    part.column = from.fieldnr - 1;
    part.key_length = from.length;
    if ((from.key_part_flag & HA_PART_KEY_SEG) || is_blob(field)) part.prefix = characters;
    part.descending = (from.key_part_flag & HA_REVERSE_SORT) != 0;
    if (is_text(field))
      part.sort_length = longest_sort_key(engine_collation(charset, characters, false), characters);
    parts.push_back(part);
  }
  peregrine_key to{};
  to.name = key.name.str;
  to.name_length = static_cast<uint32_t>(key.name.length);
  to.part_count = key.user_defined_key_parts;
  to.extra_count = count - key.user_defined_key_parts;
  /* The server itself checks the uniqueness of long values, by a hash column with a plain key. */
  to.unique = (key.flags & HA_NOSAME) && key.algorithm != HA_KEY_ALG_LONG_HASH;
  parts_.push_back(std::move(parts));
  to.parts = parts_.back().data();
  keys_.push_back(to);
}

TableLayout::TableLayout(const TABLE *table) {
  columns_.reserve(table->s->fields);
  /* Reserved, because pointers into the strings must stay valid: two for each column. */
  texts_.reserve(2 * table->s->fields);
  nulls_.resize(table->s->reclength);
  for (Field **field = table->field; *field; field++) {
    add_column(table, *field);
    add_null(table, *field);
  }
  keep_one_column();
  for (uint k = 0; k < table->s->keys; k++) add_key(table, table->key_info[k]);
  definition_.columns = columns_.data();
  definition_.column_count = static_cast<uint32_t>(columns_.size());
  definition_.keys = keys_.data();
  definition_.key_count = static_cast<uint32_t>(keys_.size());
  definition_.primary = table->s->primary_key < MAX_KEY ? table->s->primary_key : UINT32_MAX;
  definition_.record_length = table->s->reclength;
  definition_.nulls = nulls_.data();
  rest_ = table_rest(table);
  definition_.rest = rest_.data();
  definition_.rest_length = static_cast<uint32_t>(rest_.length());
}

}  // namespace peregrine
