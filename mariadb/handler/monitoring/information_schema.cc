/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see mariadb/handler/LICENSE). */

/* INFORMATION_SCHEMA.PEREGRINE_TRX, _LOCKS, _LOCK_WAITS and _METRICS. Only users with the privilege
   PROCESS see rows. */

#include "monitoring/information_schema.h"
#include "monitoring/counters.h"
#include "errors.h"

#include <sql_acl.h>
#include <sql_i_s.h>
#include <tztime.h>

#include <memory>
#include <mutex>

namespace peregrine {

/* Longest statement shown, in bytes; InnoDB has the same limit. */
constexpr size_t kQueryLength = 1024;
constexpr uint kLockIdLength = 40;
constexpr uint kTableLength = 1024;
constexpr uint kKeyLength = 1024;

/* An inspection of the engine. */
struct Look {
  peregrine_inspection *inspection = nullptr;
  peregrine_lists lists{};
  ~Look() { peregrine_inspection_free(inspection); }
};

static int fill_transactions(THD *thd, TABLE_LIST *tables, Item *);
static int fill_locks(THD *thd, TABLE_LIST *tables, Item *);
static int fill_lock_waits(THD *thd, TABLE_LIST *tables, Item *);

/* Returns the number of tables in a statement that show an inspection; UINT_MAX when the server may
   fill one of them repeatedly, as in subqueries. */
static uint tables_with_look(THD *thd) {
  uint tables = 0;
  for (TABLE_LIST *table = thd->lex->query_tables; table; table = table->next_global) {
    if (!table->schema_table) continue;
    const auto fill = table->schema_table->fill_table;
    if (fill != fill_transactions && fill != fill_locks && fill != fill_lock_waits) continue;
    if (table->select_lex && table->select_lex->master_unit()->item) return UINT_MAX;
    tables++;
  }
  return tables;
}

/* The most inspections that are kept: those of the latest statements. */
constexpr size_t kLooks = 8;

/* Returns one inspection for all tables of a statement, so that they are consistent when joined. An
   inspection needs more memory the more locks there are, so it is freed when the last of the tables
   is filled. */
static std::shared_ptr<const Look> look_of(THD *thd) {
  struct Kept {
    query_id_t query;
    std::shared_ptr<const Look> look;
    /* Number of tables that the inspection must still fill. */
    uint left;
  };
  static std::mutex mutex;
  static Kept kept[kLooks];
  static size_t oldest = 0;
  std::lock_guard<std::mutex> guard(mutex);
  Kept *own = nullptr;
  Kept *room = &kept[oldest];
  for (Kept &each : kept) {
    if (!each.look)
      room = &each;
    else if (each.query == thd->query_id)
      own = &each;
  }
  if (!own) {
    auto taken = std::make_shared<Look>();
    if (peregrine_inspect(engine, &taken->inspection, &taken->lists) != PEREGRINE_OK)
      return nullptr;
    if (room->look) oldest = (oldest + 1) % kLooks;
    own = room;
    *own = {thd->query_id, taken, tables_with_look(thd)};
  }
  std::shared_ptr<const Look> look = own->look;
  if (own->left <= 1)
    own->look.reset();
  else if (own->left != UINT_MAX)
    own->left--;
  return look;
}

/* Returns whether the table may be filled. The plug-in then stays loaded until the statement
   ends. */
static bool may_fill(THD *thd) {
  if (check_global_access(thd, PROCESS_ACL, true)) return false;
  return engine && hton && ha_lock_engine(thd, hton);
}

static bool store(Field *field, const char *text, size_t length, CHARSET_INFO *charset) {
  field->set_notnull();
  return field->store(text, length, charset) < 0;
}

static bool store(Field *field, const char *text) {
  return store(field, text, strlen(text), system_charset_info);
}

static bool store(Field *field, ulonglong number) {
  field->set_notnull();
  return field->store(static_cast<longlong>(number), true) < 0;
}

/* Stores a time, given in microseconds since 1970; 0: unknown. */
static bool store_time(THD *thd, Field *field, uint64_t micros) {
  if (!micros) {
    field->set_null();
    return false;
  }
  MYSQL_TIME time;
  thd->variables.time_zone->gmt_sec_to_TIME(&time, static_cast<my_time_t>(micros / 1000000));
  field->set_notnull();
  return field->store_time_dec(&time, 0) < 0;
}

/* Stores the id of a transaction's lock; other transactions have other ids for the same row. */
static bool store_lock_id(Field *field, uint64_t transaction, uint64_t lock) {
  char text[kLockIdLength];
  int length = snprintf(text, sizeof text, "%llu:%016llx", static_cast<ulonglong>(transaction),
                        static_cast<ulonglong>(lock));
  return store(field, text, static_cast<size_t>(length), system_charset_info);
}

static const char *isolation_name(uint32_t isolation) {
  switch (isolation) {
    case PEREGRINE_READ_COMMITTED:
      return "READ COMMITTED";
    case PEREGRINE_REPEATABLE_READ:
      return "REPEATABLE READ";
    default:
      return "SERIALIZABLE";
  }
}

static const char *state_name(uint32_t state) {
  switch (state) {
    case PEREGRINE_LOCK_WAIT:
      return "LOCK WAIT";
    case PEREGRINE_ROLLING_BACK:
      return "ROLLING BACK";
    case PEREGRINE_PREPARED:
      return "PREPARED";
    default:
      return "RUNNING";
  }
}

std::string shown_table(const peregrine_row_name &row) {
  const std::string path(row.table, row.table_length);
  const size_t slash = path.find('/');
  if (slash == std::string::npos) return path.empty() ? "(dropped)" : path;
  auto quoted = [](const std::string &file) {
    char name[NAME_LEN + 1];
    filename_to_tablename(file.c_str(), name, sizeof name, true);
    std::string text("`");
    for (const char *c = name; *c; c++) text.append(*c == '`' ? 2 : 1, *c);
    return text + "`";
  };
  const std::string file = path.substr(slash + 1);
  const size_t partition = file.find("#P#");
  std::string text = quoted(path.substr(0, slash)) + "." + quoted(file.substr(0, partition));
  if (partition != std::string::npos)
    text += " /* Partition " + quoted(file.substr(partition + 3)) + " */";
  return text;
}

bool statement_of(uint64_t session, String *text) {
  if (!session) return false;
  /* Locks LOCK_thd_kill; while it is held, the connection can't end. */
  THD *thd = find_thread_by_id(static_cast<longlong>(session));
  if (!thd) return false;
  char buffer[kQueryLength];
  const size_t length = thd_query_safe(thd, buffer, sizeof buffer);
  text->copy(buffer, length, thd->charset());
  mysql_mutex_unlock(&thd->LOCK_thd_kill);
  return length != 0;
}

size_t peregrine_plugin_statement(uint64_t session, char *buffer, size_t capacity) {
  String text;
  if (!statement_of(session, &text)) return SIZE_MAX;
  uint errors;
  return copy_and_convert(buffer, static_cast<uint32>(capacity), &my_charset_utf8mb4_bin,
                          text.ptr(), text.length(), text.charset(), &errors);
}

namespace columns {
using Show::CEnd;
using Show::Column;
using Show::Datetime;
using Show::ULonglong;
using Show::Varchar;

static ST_FIELD_INFO transactions[] = {
    Column("TRX_ID", ULonglong(), NOT_NULL),
    Column("TRX_STATE", Varchar(13), NOT_NULL),
    Column("TRX_STARTED", Datetime(0), NULLABLE),
    Column("TRX_REQUESTED_LOCK_ID", Varchar(kLockIdLength), NULLABLE),
    Column("TRX_WAIT_STARTED", Datetime(0), NULLABLE),
    Column("TRX_WEIGHT", ULonglong(), NOT_NULL),
    Column("TRX_MYSQL_THREAD_ID", ULonglong(), NOT_NULL),
    Column("TRX_QUERY", Varchar(kQueryLength), NULLABLE),
    Column("TRX_ROWS_LOCKED", ULonglong(), NOT_NULL),
    Column("TRX_ROWS_MODIFIED", ULonglong(), NOT_NULL),
    Column("TRX_LOCK_WAITS", ULonglong(), NOT_NULL),
    Column("TRX_UNDO_BYTES", ULonglong(), NOT_NULL),
    Column("TRX_SNAPSHOT_AGE", ULonglong(), NULLABLE),
    Column("TRX_ISOLATION_LEVEL", Varchar(16), NOT_NULL),
    CEnd()};

static ST_FIELD_INFO locks[] = {Column("LOCK_ID", Varchar(kLockIdLength), NOT_NULL),
                                Column("LOCK_TRX_ID", ULonglong(), NOT_NULL),
                                Column("LOCK_MODE", Varchar(8), NOT_NULL),
                                Column("LOCK_TYPE", Varchar(6), NOT_NULL),
                                Column("LOCK_STATUS", Varchar(7), NOT_NULL),
                                Column("LOCK_TABLE", Varchar(kTableLength), NOT_NULL),
                                Column("LOCK_INDEX", Varchar(NAME_CHAR_LEN), NOT_NULL),
                                Column("LOCK_DATA", Varchar(kKeyLength), NOT_NULL),
                                CEnd()};

static ST_FIELD_INFO lock_waits[] = {Column("REQUESTING_TRX_ID", ULonglong(), NOT_NULL),
                                     Column("REQUESTED_LOCK_ID", Varchar(kLockIdLength), NOT_NULL),
                                     Column("BLOCKING_TRX_ID", ULonglong(), NOT_NULL),
                                     Column("BLOCKING_LOCK_ID", Varchar(kLockIdLength), NOT_NULL),
                                     CEnd()};

static ST_FIELD_INFO metrics[] = {
    Column("NAME", Varchar(64), NOT_NULL), Column("VALUE", ULonglong(), NOT_NULL),
    Column("TYPE", Varchar(7), NOT_NULL), Column("COMMENT", Varchar(192), NOT_NULL), CEnd()};

}  // namespace columns

static int fill_transactions(THD *thd, TABLE_LIST *tables, Item *) {
  if (!may_fill(thd)) return 0;
  auto look = look_of(thd);
  if (!look) return report_error(PEREGRINE_INTERNAL, thd, tables->alias.str);
  TABLE *table = tables->table;
  for (size_t n = 0; n < look->lists.transaction_count; n++) {
    const peregrine_transaction_info &info = look->lists.transactions[n];
    Field **field = table->field;
    bool failed = store(*field++, info.id);
    failed |= store(*field++, state_name(info.state));
    failed |= store_time(thd, *field++, info.started_us);
    if (info.state == PEREGRINE_LOCK_WAIT)
      failed |= store_lock_id(*field, info.id, info.waits_for);
    else
      (*field)->set_null();
    field++;
    failed |= store_time(thd, *field++, info.waits_since_us);
    failed |= store(*field++, info.undo_records);
    failed |= store(*field++, info.session);
    String query;
    if (statement_of(info.session, &query))
      failed |= store(*field, query.ptr(), query.length(), query.charset());
    else
      (*field)->set_null();
    field++;
    failed |= store(*field++, info.rows_locked);
    failed |= store(*field++, info.rows_changed);
    failed |= store(*field++, info.lock_waits);
    failed |= store(*field++, info.undo_bytes);
    if (info.snapshot_age == UINT64_MAX)
      (*field)->set_null();
    else
      failed |= store(*field, info.snapshot_age);
    field++;
    failed |= store(*field++, isolation_name(info.isolation));
    if (failed || schema_table_store_record(thd, table)) return 1;
  }
  return 0;
}

static int fill_locks(THD *thd, TABLE_LIST *tables, Item *) {
  if (!may_fill(thd)) return 0;
  auto look = look_of(thd);
  if (!look) return report_error(PEREGRINE_INTERNAL, thd, tables->alias.str);
  TABLE *table = tables->table;
  for (size_t n = 0; n < look->lists.lock_count; n++) {
    const peregrine_lock_info &info = look->lists.locks[n];
    const std::string name = shown_table(info.row);
    Field **field = table->field;
    bool failed = store_lock_id(*field++, info.transaction, info.lock);
    failed |= store(*field++, info.transaction);
    /* Only the lock of a table's counter has no index. */
    const bool is_counter = info.row.index_length == 0 && info.row.table_length != 0;
    const char *mode = info.mode == PEREGRINE_LOCK_SHARED ? "S" : "X";
    failed |= store(*field++, is_counter ? "AUTO_INC" : mode);
    failed |= store(*field++, is_counter ? "TABLE" : info.is_range ? "RANGE" : "RECORD");
    failed |= store(*field++, info.granted ? "GRANTED" : "WAITING");
    failed |= store(*field++, name.data(), name.size(), system_charset_info);
    failed |= store(*field++, info.row.index, info.row.index_length, system_charset_info);
    failed |= store(*field++, info.row.key, info.row.key_length, &my_charset_utf8mb4_bin);
    if (failed || schema_table_store_record(thd, table)) return 1;
  }
  if (look->lists.truncated)
    push_warning_printf(thd, Sql_condition::WARN_LEVEL_WARN, ER_UNKNOWN_ERROR,
                        "There are more locks; %llu are shown",
                        static_cast<ulonglong>(look->lists.lock_count));
  return 0;
}

static int fill_lock_waits(THD *thd, TABLE_LIST *tables, Item *) {
  if (!may_fill(thd)) return 0;
  auto look = look_of(thd);
  if (!look) return report_error(PEREGRINE_INTERNAL, thd, tables->alias.str);
  TABLE *table = tables->table;
  for (size_t n = 0; n < look->lists.wait_count; n++) {
    const peregrine_lock_wait_info &info = look->lists.waits[n];
    Field **field = table->field;
    bool failed = store(*field++, info.requesting);
    failed |= store_lock_id(*field++, info.requesting, info.lock);
    failed |= store(*field++, info.blocking);
    failed |= store_lock_id(*field++, info.blocking, info.lock);
    if (failed || schema_table_store_record(thd, table)) return 1;
  }
  return 0;
}

static int fill_metrics(THD *thd, TABLE_LIST *tables, Item *) {
  if (!may_fill(thd)) return 0;
  peregrine_counters now{};
  int code = peregrine_engine_counters(engine, &now);
  if (code != PEREGRINE_OK) return report_error(code, thd, tables->alias.str);
  TABLE *table = tables->table;
  for (const Counter &counter : kCounters) {
    Field **field = table->field;
    bool failed = store(*field++, counter.name);
    failed |= store(*field++, counter.value(now));
    failed |= store(*field++, counter.only_grows ? "counter" : "value");
    failed |= store(*field++, counter.comment);
    if (failed || schema_table_store_record(thd, table)) return 1;
  }
  return 0;
}

using Fill = int (*)(THD *, TABLE_LIST *, Item *);

template <ST_FIELD_INFO *columns, Fill fill>
static int start(void *p) {
  ST_SCHEMA_TABLE *table = static_cast<ST_SCHEMA_TABLE *>(p);
  table->fields_info = columns;
  table->fill_table = fill;
  return 0;
}

static st_mysql_information_schema interface = {MYSQL_INFORMATION_SCHEMA_INTERFACE_VERSION};

static constexpr st_maria_plugin plugin_of(const char *name, const char *description,
                                           int (*init)(void *)) {
  return {MYSQL_INFORMATION_SCHEMA_PLUGIN,
          &interface,
          name,
          kAuthor,
          description,
          PLUGIN_LICENSE_GPL,
          init,
          nullptr,
          kVersion,
          nullptr,
          nullptr,
          kVersionText,
          MariaDB_PLUGIN_MATURITY_EXPERIMENTAL};
}

const st_maria_plugin transactions_table =
    plugin_of("PEREGRINE_TRX", "Running transactions of Peregrine",
              start<columns::transactions, fill_transactions>);
const st_maria_plugin locks_table =
    plugin_of("PEREGRINE_LOCKS", "Row locks of Peregrine", start<columns::locks, fill_locks>);
const st_maria_plugin lock_waits_table =
    plugin_of("PEREGRINE_LOCK_WAITS", "Who waits for whom in Peregrine",
              start<columns::lock_waits, fill_lock_waits>);
const st_maria_plugin metrics_table =
    plugin_of("PEREGRINE_METRICS", "Counters of Peregrine", start<columns::metrics, fill_metrics>);

}  // namespace peregrine
