/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see mariadb/handler/LICENSE). */

#include "row_handler.h"
#include "errors.h"
#include "tables/layout.h"

#include <new>

namespace peregrine {

RowHandler::RowHandler(handlerton *hton, TABLE_SHARE *share) : handler(hton, share) {}

RowHandler::~RowHandler() {
  peregrine_handle_close(handle_);
}

/* Returns whether the engine maintains several unique keys of a table. The server itself checks
   unique keys with hashes, and before the engine does. */
static bool has_several_unique_keys(const TABLE_SHARE *share) {
  uint count = 0;
  for (uint k = 0; share && k < share->keys; k++) {
    const KEY &key = share->key_info[k];
    if ((key.flags & HA_NOSAME) && key.algorithm != HA_KEY_ALG_LONG_HASH) count++;
  }
  return count > 1;
}

/* HA_DUPLICATE_KEY_NOT_IN_ORDER: a duplicate in the last unique key does not mean that the other
   unique keys have none. Another transaction may insert one while the statement waits for the row,
   and the engine's order of keys may differ from the server's. Without the flag, the server assumes
   that there is none, and REPLACE fails with a duplicate.

   HA_CAN_ONLINE_BACKUPS: from BACKUP STAGE FLUSH on the server allows changes of these tables, and
   from BACKUP STAGE BLOCK_COMMIT on it blocks commits. In return, open tables must be consistent on
   disk: a copy of the disk at one moment must open to the state committed then, as after a crash.
   The log and copy-on-write pages guarantee that at any moment. FLUSH ENGINE LOGS writes the
   commits that have not waited for the disk (peregrine_flush_log_at_trx_commit). */
handler::Table_flags RowHandler::table_flags() const {
  const Table_flags order =
      has_several_unique_keys(table_share) ? HA_DUPLICATE_KEY_NOT_IN_ORDER : 0;
  const Table_flags logged = logs_nothing_ ? HA_BINLOG_STMT_CAPABLE : 0;
  return order | logged | HA_REC_NOT_IN_SEQ /* positions are not multiples of a length */
         | HA_NULL_IN_KEY | HA_CAN_INDEX_BLOBS | HA_CAN_GEOMETRY | HA_CAN_VIRTUAL_COLUMNS |
         HA_PARTIAL_COLUMN_READ         /* only the columns asked for are decoded */
         | HA_TABLE_SCAN_ON_INDEX       /* the clustered index holds the rows */
         | HA_PRIMARY_KEY_IN_READ_INDEX /* secondary keys end with the clustered key */
         | HA_DUPLICATE_POS             /* the duplicate row is known by position */
         | HA_CAN_SQL_HANDLER | HA_CAN_SKIP_LOCKED |
         HA_BINLOG_ROW_CAPABLE   /* snapshots: a repeated statement may read other rows */
         | HA_CAN_ONLINE_BACKUPS /* see above */
         | HA_ONLINE_ANALYZE | HA_CONCURRENT_OPTIMIZE | HA_CRASH_SAFE;
}

ulong RowHandler::index_flags(uint key, uint, bool) const {
  ulong flags = HA_READ_NEXT | HA_READ_PREV | HA_READ_ORDER | HA_READ_RANGE | HA_KEYREAD_ONLY |
                HA_DO_INDEX_COND_PUSHDOWN;
  if (key == table_share->primary_key) flags |= HA_CLUSTERED_INDEX;
  return flags;
}

/* Returns whether the statement does nothing with a table but remove all its rows. */
static bool only_empties(THD *thd) {
  return thd_sql_command(thd) == SQLCOM_TRUNCATE ||
         (thd_sql_command(thd) == SQLCOM_ALTER_TABLE &&
          (thd->lex->alter_info.partition_flags & ALTER_PARTITION_TRUNCATE));
}

/* Gets the engine's table of a share; the first handler of the share opens it. `damaged` becomes
   true, without an error, when the table can't be opened but the statement will empty it. */
static int open_share(Handler_share *&place, TableShare **out, const TABLE *table, const char *name,
                      THD *thd, bool *damaged) {
  TableShare *share = static_cast<TableShare *>(place);
  if (!share) {
    share = new (std::nothrow) TableShare;
    if (!share) return HA_ERR_OUT_OF_MEM;
    TableLayout layout(table);
    std::string engine_name = table_name(name);
    int code = peregrine_table_open(engine, engine_name.data(), engine_name.size(),
                                    layout.definition(), &share->table);
    if (code != PEREGRINE_OK) {
      delete share;
      *damaged = (code == PEREGRINE_CORRUPT || code == PEREGRINE_IO) && only_empties(thd);
      return *damaged ? 0 : report_error(code, thd, name);
    }
    /* A crash may have come between the engine's change of LOCKING and the server's. */
    uint32_t locking;
    if (read_locking(table->s->option_struct, &locking)) {
      code = peregrine_table_set_locking(share->table, locking);
      if (code != PEREGRINE_OK) {
        int error = report_error(code, thd, name);
        delete share;
        return error;
      }
    }
    /* Likewise the names of columns and keys, and the types for dumps, may differ. Rows do not
       depend on them, so the table opens even when they can't be updated. */
    if (peregrine_table_set_description(share->table, layout.definition()) != PEREGRINE_OK)
      sql_print_warning("Peregrine: %s keeps the old names and types of its columns and keys: %s",
                        name, last_error_text().c_ptr_safe());
    place = share;
  }
  *out = share;
  return 0;
}

int RowHandler::open(const char *name, int, uint) {
  lock_shared_ha_data();
  Handler_share *place = get_ha_share_ptr();
  const bool is_new = !place;
  bool damaged = false;
  int error = open_share(place, &share_, table, name, ha_thd(), &damaged);
  if (!error && !damaged && is_new) set_ha_share_ptr(place);
  unlock_shared_ha_data();
  if (error) return error;
  if (damaged) {
    damaged_name_ = name;
    return 0;
  }
  int code = peregrine_handle_open(share_->table, &handle_);
  if (code != PEREGRINE_OK) return report_error(code, ha_thd(), name);
  ref_length = peregrine_table_position_length(share_->table);
  // A table scan reads in the order of the clustered key. An UPDATE that changes this key must
  // collect the rows first, or it would meet them again further on.
  key_used_on_scan = table->s->primary_key;
  stats.block_size = kPageSize;
  if (my_bitmap_init(&asked_, nullptr, table->s->fields)) return HA_ERR_OUT_OF_MEM;
  error = info(HA_STATUS_NO_LOCK | HA_STATUS_VARIABLE | HA_STATUS_CONST | HA_STATUS_OPEN);
  /* The server does not close a handler that failed to open. */
  if (error) close();
  return error;
}

int RowHandler::close() {
  peregrine_handle_close(handle_);
  handle_ = nullptr;
  share_ = nullptr;
  my_bitmap_free(&asked_);
  return 0;
}

int RowHandler::reset() {
  multi_range_.dsmrr_close();
  /* The next statement must open the table anew, whether this one has emptied it or not. */
  if (unlikely(!share_)) {
    if (table) table->internal_set_needs_reopen(true);
    return 0;
  }
  peregrine_handle_reset(handle_);
  used_key_ = kNoKey;
  has_range_end_ = false;
  has_condition_ = false;
  has_asked_ = narrowed_ = false;
  checks_ = fills_ = false;
  bulk_insert_ = semi_consistent_ = changes_duplicates_ = false;
  return 0;
}

int RowHandler::extra(ha_extra_function operation) {
  switch (operation) {
    case HA_EXTRA_KEYREAD:
      /* The server is about to ask for all columns of the key, whatever the statement needs. */
      has_asked_ = table->read_set == &table->def_read_set;
      if (has_asked_) bitmap_copy(&asked_, table->read_set);
      break;
    case HA_EXTRA_NO_KEYREAD:
      has_asked_ = narrowed_ = false;
      break;
    case HA_EXTRA_INSERT_WITH_UPDATE:
    case HA_EXTRA_WRITE_CAN_REPLACE:
      changes_duplicates_ = true;
      break;
    case HA_EXTRA_NO_IGNORE_DUP_KEY:
    case HA_EXTRA_WRITE_CANNOT_REPLACE:
      changes_duplicates_ = false;
      break;
    case HA_EXTRA_BEGIN_COPY:
      return fill(true);
    case HA_EXTRA_END_COPY:
    case HA_EXTRA_ABORT_COPY:
      return fill(false);
    default:
      break;
  }
  return 0;
}

/* CREATE TEMPORARY TABLE … SELECT: the rows are part of the table's creation, and a ROLLBACK keeps
   them; not with IGNORE or REPLACE, as in InnoDB. */
int RowHandler::fill(bool begins) {
  if (begins == fills_ || table->s->tmp_table == NO_TMP_TABLE) return 0;
  peregrine_session *session;
  if (int error = this->session(&session)) return error;
  fills_ = begins;
  return finish(
      begins ? peregrine_begin_fill(handle_, session) : peregrine_end_fill(handle_, session), 0);
}

int RowHandler::session(peregrine_session **out) {
  if (unlikely(!connection_)) {
    THD *thd = ha_thd();
    connection_ = connection_of(thd);
    if (!connection_) return HA_ERR_OUT_OF_MEM;
    if (int error = begin_statement(thd, connection_)) return error;
  }
  *out = connection_->session;
  return 0;
}

int RowHandler::finish(int code, int end) {
  return likely(code == PEREGRINE_OK) ? 0 : server_error(code, ha_thd(), end);
}

/* Translates the result of a read, and reports an error to the client: when the server begins a
   merge of scans, or a sort, it drops errors, and DELETE and UPDATE end as if there were no
   rows. */
int RowHandler::finish_read(int code, int end) {
  if (likely(code == PEREGRINE_OK)) return 0;
  const int error = server_error(code, ha_thd(), end);
  /* The server itself reports statements that were killed. */
  if (code != PEREGRINE_END && code != PEREGRINE_INTERRUPTED) print_error(error, MYF(0));
  return error;
}

/* Reports only the statement's first error to the client; later ones result from it. */
void RowHandler::print_error(int error, myf flags) {
  if (!(flags & (ME_WARNING | ME_NOTE)) && ha_thd()->is_error()) return;
  handler::print_error(error, flags);
}

bool RowHandler::get_error_message(int error, String *text) {
  /* The server's own error numbers have texts, to which it would append this one. */
  if (error <= kFirstOwnError) return false;
  /* swap, because an assignment would share the buffer of `last`, which is freed at the end. */
  String last = last_error_text();
  text->swap(last);
  return false;
}

}  // namespace peregrine
