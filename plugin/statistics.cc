/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see LICENSE-GPL). */

/* What the optimizer asks, and the administrator's ANALYZE and CHECK. The costs are in the same
   unit as InnoDB's, a page read, so that both get the same plans. */

#include "row_handler.h"
#include "errors.h"

namespace peregrine {

int RowHandler::info(uint flags) {
  if (flags & (HA_STATUS_VARIABLE | HA_STATUS_AUTO)) {
    peregrine_table_stats now;
    int code = peregrine_table_statistics(share_->table, &now);
    if (unlikely(code != PEREGRINE_OK)) return server_error(code, ha_thd());
    stats.records = now.rows;
    /* To the optimizer a table that looks empty is empty, and plans for it are poor. */
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

/* Counts the entries of a key, reading each entry's row; true: interrupted. */
bool RowHandler::count_rows(THD *thd, uint key, ulonglong *rows, int *error) {
  *rows = 0;
  *error = key == MAX_KEY ? ha_rnd_init(true) : ha_index_init(key, true);
  if (*error) return false;
  while (!*error) {
    if (thd_killed(thd)) break;
    if (key == MAX_KEY)
      *error = ha_rnd_next(table->record[0]);
    else
      *error = *rows ? ha_index_next(table->record[0]) : ha_index_first(table->record[0]);
    if (!*error) ++*rows;
  }
  ha_index_or_rnd_end();
  if (*error == HA_ERR_END_OF_FILE) *error = 0;
  return thd_killed(thd);
}

int RowHandler::check(THD *thd, HA_CHECK_OPT *) {
  ulonglong rows, entries;
  int error, result = HA_ADMIN_OK;
  table->use_all_columns();
  if (count_rows(thd, MAX_KEY, &rows, &error)) return HA_ADMIN_FAILED;
  if (error) {
    print_error(error, MYF(0));
    return HA_ADMIN_CORRUPT;
  }
  for (uint k = 0; k < table->s->keys; k++) {
    if (k == table->s->primary_key) continue;
    if (count_rows(thd, k, &entries, &error)) return HA_ADMIN_FAILED;
    if (error) {
      print_error(error, MYF(0));
      result = HA_ADMIN_CORRUPT;
    } else if (entries != rows) {
      push_warning_printf(thd, Sql_condition::WARN_LEVEL_WARN, ER_NOT_KEYFILE,
                          "Key '%s' has %llu entries, the table has %llu rows",
                          table->key_info[k].name.str, entries, rows);
      result = HA_ADMIN_CORRUPT;
    }
  }
  return result;
}

}  // namespace peregrine
