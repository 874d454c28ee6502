/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see mariadb/handler/LICENSE). */

/* Statistics for the optimizer, and the administrator's ANALYZE and CHECK. The costs have InnoDB's
   unit, a page read, so that both engines get the same plans. */

#include "row_handler.h"
#include "errors.h"

namespace peregrine {

/* The time when the server wrote the table's definition: neither the server nor the engine keeps
   another one. */
static time_t create_time_of(const TABLE_SHARE *share) {
  char path[FN_REFLEN];
  MY_STAT file;
  fn_format(path, share->normalized_path.str, "", reg_ext, MY_UNPACK_FILENAME | MY_APPEND_EXT);
  return my_stat(path, &file, MYF(0)) ? file.st_ctime : 0;
}

int RowHandler::info(uint flags) {
  /* The table is damaged and about to be emptied. */
  if (unlikely(!share_)) return 0;
  /* For a partition the server takes the time when it opens the partition. */
  if (flags & (table->part_info ? HA_STATUS_CONST : HA_STATUS_TIME))
    stats.create_time = create_time_of(table->s);
  if (flags & (HA_STATUS_VARIABLE | HA_STATUS_AUTO)) {
    peregrine_table_stats now;
    int code = peregrine_table_statistics(share_->table, &now);
    if (unlikely(code != PEREGRINE_OK)) return server_error(code, ha_thd());
    if (unlikely(now.told_guessed))
      sql_print_warning("Peregrine: the size of table %s is guessed: %s",
                        table->s->normalized_path.str, last_error_text().c_ptr_safe());
    stats.records = now.rows;
    /* The optimizer takes 0 rows to mean an empty table, and makes poor plans for it. */
    if (stats.records == 0 && !(flags & (HA_STATUS_TIME | HA_STATUS_OPEN))) stats.records = 1;
    stats.deleted = 0;
    stats.data_file_length = now.data_bytes;
    stats.index_file_length = now.index_bytes;
    stats.mean_rec_length = now.rows ? static_cast<ulong>(now.data_bytes / now.rows) : 0;
    stats.mrr_length_per_rec = ref_length + sizeof(void *);
    stats.block_size = kPageSize;
    if ((flags & HA_STATUS_AUTO) && table->found_next_number_field)
      stats.auto_increment_value = now.next_auto_increment;
  }
  if (flags & HA_STATUS_CONST) {
    for (uint k = 0; k < table->s->keys; k++) {
      KEY &key = table->key_info[k];
      uint64_t rows[MAX_REF_PARTS * 2];
      uint count = MY_MIN(key.ext_key_parts, static_cast<uint>(array_elements(rows)));
      if (peregrine_table_rows_per_key(share_->table, k, rows, count) != PEREGRINE_OK) continue;
      for (uint part = 0; part < count; part++)
        key.rec_per_key[part] = static_cast<ulong>(rows[part]);
    }
  }
  if (flags & HA_STATUS_ERRKEY) errkey = connection_ ? connection_->duplicate_key : MAX_KEY;
  return 0;
}

ha_rows RowHandler::records_in_range(uint key, const key_range *low, const key_range *high,
                                     page_range *) {
  uint64_t rows = 0;
  int code = peregrine_estimate_range(
      handle_, key, low ? low->key : nullptr, low ? low->keypart_map : 0,
      !low || low->flag != HA_READ_AFTER_KEY, high ? high->key : nullptr,
      high ? high->keypart_map : 0, !high || high->flag != HA_READ_BEFORE_KEY, &rows);
  if (code != PEREGRINE_OK) return HA_POS_ERROR;
  /* To the optimizer 0 means "surely none", which an estimate can't say. */
  return MY_MAX(rows, 1ULL);
}

ha_rows RowHandler::estimate_rows_upper_bound() {
  return 2 * stats.records + EXTRA_RECORDS;
}

double RowHandler::scan_time() {
  return static_cast<double>(stats.data_file_length) / kPageSize + 1;
}

double RowHandler::read_time(uint index, uint ranges, ha_rows rows) {
  if (index != table->s->primary_key) return handler::read_time(index, ranges, rows);
  const double scan = scan_time();
  const ha_rows all = estimate_rows_upper_bound();
  if (all < rows) return scan;
  return ranges + static_cast<double>(rows) / static_cast<double>(all) * scan;
}

int RowHandler::analyze(THD *thd, HA_CHECK_OPT *) {
  int code = peregrine_table_analyze(share_->table);
  if (code != PEREGRINE_OK) {
    report_error(code, thd, table->s->table_name.str);
    return HA_ADMIN_FAILED;
  }
  info(HA_STATUS_CONST | HA_STATUS_VARIABLE | HA_STATUS_NO_LOCK);
  return HA_ADMIN_OK;
}

namespace {
/* The context of the engine's calls during CHECK TABLE. */
struct Checking {
  THD *thd;
  const char *table;
  uint problems;
};
}  // namespace

static int check_interrupted(void *context) {
  /* A time limit kills softly, which thd_killed() does not count. */
  return thd_kill_level(static_cast<Checking *>(context)->thd) != THD_IS_NOT_KILLED;
}

/* The server shows a statement's warnings in the result of CHECK TABLE. */
static void check_problem(void *context, const char *text, size_t length) {
  Checking *checking = static_cast<Checking *>(context);
  checking->problems++;
  push_warning_printf(checking->thd, Sql_condition::WARN_LEVEL_WARN, ER_NOT_KEYFILE, "%.*s",
                      static_cast<int>(length), text);
  sql_print_error("Peregrine: CHECK TABLE %s: %.*s", checking->table, static_cast<int>(length),
                  text);
}

int RowHandler::check(THD *thd, HA_CHECK_OPT *) {
  Checking checking{thd, table->s->normalized_path.str, 0};
  int code = peregrine_table_check(share_->table, check_interrupted, check_problem, &checking);
  switch (code) {
    case PEREGRINE_OK:
      return HA_ADMIN_OK;
    case PEREGRINE_END:
      return HA_ADMIN_CORRUPT;
    case PEREGRINE_INTERRUPTED:
      /* The server itself says only that the check failed. */
      push_warning(thd, Sql_condition::WARN_LEVEL_WARN, ER_QUERY_INTERRUPTED,
                   ER_THD(thd, ER_QUERY_INTERRUPTED));
      return HA_ADMIN_FAILED;
    default:
      report_error(code, thd, table->s->table_name.str);
      return HA_ADMIN_FAILED;
  }
}

}  // namespace peregrine
