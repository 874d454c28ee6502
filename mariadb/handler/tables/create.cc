/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see mariadb/handler/LICENSE). */

/* Creating, dropping, renaming and truncating tables. An unsupported part of a definition is
   refused by name. */

#include "row_handler.h"
#include "errors.h"
#include "tables/layout.h"

#include <create_options.h>
#include <sql_partition.h>

#include <string>
#include <vector>

namespace peregrine {

/* The server's names of copies begin with kCopyPrefix; those of partitions end with
   kPartitionCopyEnding. */
static constexpr const char *kCopyPrefix = tmp_file_prefix "-alter-";
static constexpr const char *kPartitionCopyEnding = "#TMP#";

static bool is_temporary(const std::string &name) {
  return name.compare(0, strlen(kTemporaryPrefix), kTemporaryPrefix) == 0;
}

/* Refuses an option: "Table storage engine 'PEREGRINE' does not support the create option …". */
static int refuse(const char *option) {
  my_error(ER_ILLEGAL_HA_CREATE_OPTION, MYF(0), kEngineName, option);
  return HA_ERR_UNSUPPORTED;
}

/* Refuses what the statement asks for and the engine does not have; returns 0 when there is nothing
   to refuse. */
static int refuse_unsupported(THD *thd, const HA_CREATE_INFO *info) {
  if (info->data_file_name) return refuse("DATA DIRECTORY");
  if (info->index_file_name) return refuse("INDEX DIRECTORY");
  switch (thd_sql_command(thd)) {
    case SQLCOM_CREATE_TABLE:
    case SQLCOM_ALTER_TABLE: {
      List_iterator_fast<Key> keys(thd->lex->alter_info.key_list);
      while (const Key *key = keys++) {
        if (key->type == Key::FOREIGN_KEY) return refuse("FOREIGN KEY");
      }
      break;
    }
    default:
      break;
  }
  return 0;
}

/* Returns whether a UNIQUE key could be the primary key, if it came first. */
static bool could_be_primary(const KEY &key) {
  if (!(key.flags & HA_NOSAME) || key.algorithm == HA_KEY_ALG_LONG_HASH) return false;
  for (uint p = 0; p < key.user_defined_key_parts; p++) {
    if (key.key_part[p].null_bit || (key.key_part[p].key_part_flag & HA_PART_KEY_SEG)) return false;
  }
  return true;
}

/* Returns whether the server gives a partitioned table another primary key when it next sorts the
   keys: it puts UNIQUE keys without NULL first. It sorts them in any ALTER of single partitions,
   and keeps the other partitions, whose rows are stored in the old order. */
static bool primary_key_may_change(const TABLE *table) {
  if (!table->part_info || table->s->primary_key < MAX_KEY) return false;
  for (uint k = 0; k < table->s->keys; k++) {
    if (could_be_primary(table->key_info[k])) return true;
  }
  return false;
}

/* Returns whether a partition has a LOCKING of its own. When it opens a partition, the server
   passes only the table's options. */
static bool locks_by_partition(partition_info *partitions) {
  if (!partitions) return false;
  List_iterator<partition_element> each(partitions->partitions);
  while (const partition_element *partition = each++) {
    const engine_option_value *option = partition->option_list;
    for (; option; option = option->next) {
      if (option->value.str && !my_strcasecmp(system_charset_info, option->name.str, "LOCKING"))
        return true;
    }
  }
  return false;
}

int RowHandler::create(const char *name, TABLE *form, HA_CREATE_INFO *info) {
  THD *thd = ha_thd();
  if (int error = refuse_unsupported(thd, info)) return error;
  if (primary_key_may_change(form))
    return refuse("UNIQUE with NULL before one without, no PRIMARY KEY");
  /* Partitions that ALTER TABLE adds are those of the statement. */
  if (locks_by_partition(form->part_info) || locks_by_partition(thd->lex->part_info))
    return refuse("LOCKING of a partition");
  uint32_t locking;
  if (!read_locking(form->s->option_struct, &locking)) return HA_ERR_UNSUPPORTED;
  TableLayout layout(form);
  if (!layout.refused().empty()) return refuse(layout.refused().c_str());
  std::string engine_name = table_name(name);
  int code =
      peregrine_table_create(engine, engine_name.data(), engine_name.size(), layout.definition(),
                             info->auto_increment_value, locking, is_temporary(engine_name));
  return report_error(code, thd, name);
}

int drop_table(THD *thd, const char *path) {
  std::string name = table_name(path);
  Connection *connection = thd ? existing_connection(thd) : nullptr;
  peregrine_session *session = connection ? connection->session : nullptr;
  return report_error(peregrine_table_drop(engine, session, name.data(), name.size()), thd, path);
}

int RowHandler::delete_table(const char *name) {
  return peregrine::drop_table(current_thd, name);
}

/* Returns whether the server's name is that of a copy, which the server has just filled with
   another table's rows and which will replace that table: a copy of ALTER TABLE, or of an ALTER of
   partitions. */
static bool is_copy(const std::string &name) {
  const size_t slash = name.rfind('/');
  if (name.compare(slash + 1, strlen(kCopyPrefix), kCopyPrefix) == 0) return true;
  const size_t ending = strlen(kPartitionCopyEnding);
  return name.size() > ending && !strcasecmp(&name[name.size() - ending], kPartitionCopyEnding);
}

int RowHandler::rename_table(const char *from, const char *to) {
  std::string old_name = table_name(from), new_name = table_name(to);
  int code = peregrine_table_rename(engine, old_name.data(), old_name.size(), new_name.data(),
                                    new_name.size(), is_copy(old_name));
  return report_error(code, current_thd, from);
}

/* Truncates a table that can't be opened. It stays closed here: the server opens it for the next
   statement. */
int RowHandler::truncate_damaged() {
  const std::string name = table_name(damaged_name_.c_str());
  return finish(peregrine_table_truncate_damaged(engine, name.data(), name.size()), 0);
}

int RowHandler::truncate() {
  if (unlikely(!share_)) return truncate_damaged();
  /* All partitions are truncated, or none. */
  int code = peregrine_table_undecided(share_->table);
  if (code == PEREGRINE_OK) code = peregrine_table_truncate(share_->table);
  if (code != PEREGRINE_OK) return server_error(code, ha_thd());
  /* The old handle refers to the old trees. */
  peregrine_handle_close(handle_);
  handle_ = nullptr;
  return finish(peregrine_handle_open(share_->table, &handle_), 0);
}

/* The server keeps this object for each handler whose definition it is about to change. The
   partitions of a table are changed together, through the first of them. */
struct AlterContext : public inplace_alter_handler_ctx {
  explicit AlterContext(RowHandler *handler) : handler(handler) {}
  RowHandler *handler;
};

/* Returns whether existing rows may violate the new definition. The server's flags tell of checks
   that are added to the table, but not of checks that come with a changed column, or of a
   period. */
static bool constrains_more(const TABLE *table, const TABLE *altered, Alter_info *changes) {
  if (altered->s->period.name && !table->s->period.name) return true;
  if (!(changes->flags & ALTER_CHANGE_COLUMN)) return false;
  List_iterator_fast<Create_field> columns(changes->create_list);
  while (const Create_field *column = columns++) {
    /* A column that the statement does not name has the old column's check object. */
    const Field *old = column->field;
    if (column->check_constraint && (!old || column->check_constraint != old->check_constraint))
      return true;
  }
  return false;
}

/* A change without a copy is instant: it affects the server's own definition, and the data that the
   engine keeps beside the rows. All other changes make a copy. So do changes that constrain the
   rows, because the copy checks each row. */
enum_alter_inplace_result RowHandler::check_if_supported_inplace_alter(TABLE *altered,
                                                                       Alter_inplace_info *info) {
  /* Changes of the server's own definition alone, which no row can violate. */
  constexpr alter_table_operations server_only =
      ALTER_COLUMN_DEFAULT | ALTER_COLUMN_NAME | ALTER_RENAME_COLUMN | ALTER_RENAME_INDEX |
      ALTER_INDEX_IGNORABILITY | ALTER_DROP_CHECK_CONSTRAINT | ALTER_RENAME;
  info->handler_ctx = new (ha_thd()->mem_root) AlterContext(this);
  if (!info->handler_ctx) return HA_ALTER_ERROR;
  constexpr uint option_fields = HA_CREATE_USED_COMMENT | HA_CREATE_USED_DEFAULT_CHARSET |
                                 HA_CREATE_USED_MIN_ROWS | HA_CREATE_USED_MAX_ROWS |
                                 HA_CREATE_USED_AVG_ROW_LENGTH | HA_CREATE_USED_AUTO;
  if (info->handler_flags &
      ~(server_only | ALTER_OPTIONS | ALTER_CHANGE_CREATE_OPTION | ALTER_PARTITIONED))
    return HA_ALTER_INPLACE_NOT_SUPPORTED;
  if (info->create_info->used_fields & ~option_fields) return HA_ALTER_INPLACE_NOT_SUPPORTED;
  if (constrains_more(table, altered, info->alter_info)) return HA_ALTER_INPLACE_NOT_SUPPORTED;
  uint32_t locking;
  if (!read_locking(altered->s->option_struct, &locking)) return HA_ALTER_ERROR;
  if (info->create_info->used_fields & HA_CREATE_USED_AUTO) {
    /* A counter must not go back behind the rows: a copy looks at each row. The check uses the
       whole table's counter, because of several partitions the server takes INSTANT if a single one
       returns it. */
    handler *whole = table->file;
    if (whole->info(HA_STATUS_AUTO) ||
        info->create_info->auto_increment_value < whole->stats.auto_increment_value)
      return HA_ALTER_INPLACE_NOT_SUPPORTED;
  }
  return HA_ALTER_INPLACE_INSTANT;
}

/* The counter rises before the server logs the statement: a server that is killed later completes
   the statement at its next start from the definition alone, and the definition has no counter. If
   the statement fails, numbers are skipped. */
bool RowHandler::prepare_inplace_alter_table(TABLE *, Alter_inplace_info *info) {
  const HA_CREATE_INFO *now = info->create_info;
  if (!(now->used_fields & HA_CREATE_USED_AUTO)) return false;
  return is_refused(peregrine_table_set_auto_increment(share_->table, now->auto_increment_value));
}

bool RowHandler::commit_inplace_alter_table(TABLE *altered, Alter_inplace_info *info, bool commit) {
  if (!commit) {
    /* Another partition's change may have failed. If restoring the description fails here, the next
       opening does it. */
    const TableLayout layout(table);
    if (peregrine_table_set_description(share_->table, layout.definition()) != PEREGRINE_OK)
      sql_print_warning("Peregrine: %s keeps the new names and types of its columns and keys: %s",
                        table->s->table_name.str, last_error_text().c_ptr_safe());
    return false;
  }
  uint32_t locking;
  if (!read_locking(altered->s->option_struct, &locking)) return true;
  const TableLayout layout(altered);
  auto change = [&](inplace_alter_handler_ctx *context) {
    return static_cast<AlterContext *>(context)->handler->change_definition(layout.definition(),
                                                                            locking);
  };
  /* The server calls only the first partition's handler; the contexts of all are here. */
  inplace_alter_handler_ctx **all = info->group_commit_ctx;
  info->group_commit_ctx = nullptr;
  if (!all) return change(info->handler_ctx);
  for (; *all; all++)
    if (change(*all)) return true;
  return false;
}

/* Changes the data that the engine keeps beside the rows; true: an error was reported. */
bool RowHandler::change_definition(const peregrine_definition *described, uint32_t locking) {
  int code = peregrine_table_set_description(share_->table, described);
  if (code == PEREGRINE_OK) code = peregrine_table_set_locking(share_->table, locking);
  return is_refused(code);
}

/* Returns whether the engine refused a change of the definition; an error was then reported. */
bool RowHandler::is_refused(int code) {
  if (code == PEREGRINE_OK) return false;
  const int error = report_error(code, ha_thd(), table->s->table_name.str);
  if (!ha_thd()->is_error()) print_error(error, MYF(0));
  return true;
}

/* Returns the names of the keys whose order determines the stored rows. The clustered key is the
   first UNIQUE key when there is no PRIMARY KEY. For keys that the server keeps as hashes, the
   first key has its hashes in the first hidden column, and so on. */
static std::vector<std::string> keys_in_order(const TABLE *table) {
  std::vector<std::string> names;
  const uint primary = table->s->primary_key;
  names.push_back(primary < MAX_KEY ? table->key_info[primary].name.str : "");
  for (uint k = 0; k < table->s->keys; k++) {
    const KEY &key = table->key_info[k];
    if (key.algorithm == HA_KEY_ALG_LONG_HASH) names.push_back(key.name.str);
  }
  return names;
}

/* The server calls this for a table that shall become a partition, or be exchanged with one: can
   its rows be stored there? The server itself compares columns and keys, but not the order of the
   keys. */
bool RowHandler::check_if_incompatible_data(HA_CREATE_INFO *info, uint table_changes) {
  if (table_changes != IS_EQUAL_YES) return COMPATIBLE_DATA_NO;
  if ((info->used_fields & HA_CREATE_USED_AUTO) && info->auto_increment_value)
    return COMPATIBLE_DATA_NO;
  uint32_t mine, theirs;
  if (!read_locking(table->s->option_struct, &mine) ||
      !read_locking(info->option_struct, &theirs) || mine != theirs)
    return COMPATIBLE_DATA_NO;
  /* The partitioned table is the one that the statement alters. */
  const TABLE_LIST *altered = ha_thd()->lex->query_tables;
  if (altered && altered->table && keys_in_order(altered->table) != keys_in_order(table))
    return COMPATIBLE_DATA_NO;
  return COMPATIBLE_DATA_YES;
}

void RowHandler::update_create_info(HA_CREATE_INFO *info) {
  if (!(info->used_fields & HA_CREATE_USED_AUTO)) {
    RowHandler::info(HA_STATUS_AUTO);
    info->auto_increment_value = stats.auto_increment_value;
  }
}

}  // namespace peregrine
