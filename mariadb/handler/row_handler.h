/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see mariadb/handler/LICENSE). */

/* The handler: an open table for the server. */

#ifndef PEREGRINE_ROW_HANDLER_H
#define PEREGRINE_ROW_HANDLER_H

#include "engine.h"
#include "pushdown/plan/key_range.h"
#include "pushdown/row_batch.h"
#include "transactions/transactions.h"

namespace peregrine {

/* The state that all handlers of a table share: the engine's table. */
class TableShare : public Handler_share {
 public:
  ~TableShare() override { peregrine_table_close(table); }
  peregrine_table *table = nullptr;
};

/* The result of COUNT or SUM: high * 2^64 + low, and the number of values in it. */
struct AggregateNumber {
  int64_t high;
  uint64_t low;
  uint64_t values;
};

class RowHandler final : public handler {
 public:
  RowHandler(handlerton *hton, TABLE_SHARE *share);
  ~RowHandler() override;

  /* The engine's abilities: row_handler.cc. */
  Table_flags table_flags() const override;
  ulong index_flags(uint key, uint part, bool all_parts) const override;
  const char *index_type(uint) override { return "BTREE"; }
  uint max_supported_keys() const override { return MAX_KEY; }
  uint max_supported_key_length() const override { return kMaxKeyLength; }
  uint max_supported_key_part_length() const override { return kMaxKeyLength; }
  uint8 table_cache_type() override { return HA_CACHE_TBL_NOCACHE; }
  const key_map *keys_to_use_for_scanning() override { return &key_map_full; }

  /* Opening: row_handler.cc. */
  int open(const char *name, int mode, uint test_if_locked) override;
  int close() override;
  int reset() override;
  int extra(ha_extra_function operation) override;

  /* Definitions: create.cc. */
  int create(const char *name, TABLE *table, HA_CREATE_INFO *info) override;
  int delete_table(const char *name) override;
  int rename_table(const char *from, const char *to) override;
  int truncate() override;
  int delete_all_rows() override { return HA_ERR_WRONG_COMMAND; }
  enum_alter_inplace_result check_if_supported_inplace_alter(TABLE *altered,
                                                             Alter_inplace_info *info) override;
  bool prepare_inplace_alter_table(TABLE *altered, Alter_inplace_info *info) override;
  bool commit_inplace_alter_table(TABLE *altered, Alter_inplace_info *info, bool commit) override;
  bool check_if_incompatible_data(HA_CREATE_INFO *info, uint table_changes) override;
  void update_create_info(HA_CREATE_INFO *info) override;

  /* Locks: locks.cc. */
  uint lock_count() const override { return 0; }
  THR_LOCK_DATA **store_lock(THD *thd, THR_LOCK_DATA **to, thr_lock_type type) override;
  int external_lock(THD *thd, int type) override;
  handler *clone(const char *name, MEM_ROOT *root) override;
  int start_stmt(THD *thd, thr_lock_type type) override;
  void unlock_row() override;
  void try_semi_consistent_read(bool tries) override;
  bool was_semi_consistent_read() override;

  /* Reading: read.cc. */
  int rnd_init(bool scan) override;
  int rnd_end() override;
  int rnd_next(uchar *record) override;
  int rnd_pos(uchar *record, uchar *position) override;
  void position(const uchar *record) override;
  int index_init(uint key, bool sorted) override;
  int index_end() override;
  int index_read_map(uchar *record, const uchar *key, key_part_map parts,
                     ha_rkey_function function) override;
  int index_read_last_map(uchar *record, const uchar *key, key_part_map parts) override;
  int index_next(uchar *record) override;
  int index_prev(uchar *record) override;
  int index_first(uchar *record) override;
  int index_last(uchar *record) override;
  int index_next_same(uchar *record, const uchar *key, uint length) override;
  int read_range_first(const key_range *start, const key_range *end, bool equal,
                       bool sorted) override;

  Item *idx_cond_push(uint key, Item *condition) override;

  /* Reading many ranges at once: multi_range.cc. */
  int multi_range_read_init(RANGE_SEQ_IF *ranges, void *context, uint count, uint mode,
                            HANDLER_BUFFER *buffer) override;
  int multi_range_read_next(range_id_t *range) override;
  ha_rows multi_range_read_info_const(uint key, RANGE_SEQ_IF *ranges, void *context, uint count,
                                      uint *buffer_size, uint *mode, Cost_estimate *cost) override;
  ha_rows multi_range_read_info(uint key, uint count, uint rows, uint parts, uint *buffer_size,
                                uint *mode, Cost_estimate *cost) override;
  int multi_range_read_explain_info(uint mode, char *text, size_t size) override;

  /* Reads for statements that the engine runs itself: pushed_read.cc. */
  bool reads_snapshots() const { return lock_ == PEREGRINE_LOCK_NONE; }
  int first_of_range(const KeyRange &range);
  int next_of_range(const KeyRange &range);
  int next_rows_of_range(const KeyRange &range, RowBatch *batch, ha_rows wanted);
  int rows_of_keys(const uchar *keys, uint key_length, RowBatch *batch, uint rows, uchar *wanted);
  bool can_aggregate(const KeyRange &range, const peregrine_aggregate *wanted, uint count);
  int aggregate_range(const KeyRange &range, const peregrine_aggregate *wanted, uint count);
  int next_group();
  int aggregate_number(uint n, AggregateNumber *out);
  int aggregate_value(uint n);

  /* Changing: write.cc. */
  int write_row(const uchar *record) override;
  int update_row(const uchar *old_record, const uchar *new_record) override;
  int delete_row(const uchar *record) override;
  void start_bulk_insert(ha_rows rows, uint flags) override;
  int end_bulk_insert() override;
  void get_auto_increment(ulonglong offset, ulonglong increment, ulonglong wanted, ulonglong *first,
                          ulonglong *reserved) override;
  void release_auto_increment() override;
  int reset_auto_increment(ulonglong value) override;

  /* Statistics for the optimizer: statistics.cc. */
  int info(uint flags) override;
  ha_rows records_in_range(uint key, const key_range *low, const key_range *high,
                           page_range *pages) override;
  ha_rows estimate_rows_upper_bound() override;
  double scan_time() override;
  double read_time(uint index, uint ranges, ha_rows rows) override;
  int analyze(THD *thd, HA_CHECK_OPT *options) override;
  int check(THD *thd, HA_CHECK_OPT *options) override;
  int optimize(THD *, HA_CHECK_OPT *) override { return HA_ADMIN_TRY_ALTER; }

  /* Errors: row_handler.cc. */
  void print_error(int error, myf flags) override;
  bool get_error_message(int error, String *text) override;

 private:
  /* No key: the next search must tell the engine the key. */
  static constexpr uint kNoKey = MAX_KEY + 1;
  /* The greatest key length that SQL may define, in bytes. */
  static constexpr uint kMaxKeyLength = 3072;
  /* Fills an invalid position: its length field exceeds any length. */
  static constexpr uchar kNoPosition = 0xFF;

  void use_lock(peregrine_lock lock);
  int check_decided(THD *thd);
  int use_key(uint key);
  int use_condition();
  void count_rows(uint key, ha_rows rows);
  int prepare_rows(const KeyRange &range);
  static int check_condition(void *handler);
  int search(uchar *record, const uchar *key, key_part_map parts, peregrine_seek seek, int end);
  int fill(bool begins);
  bool has_server_checks() const;
  bool is_server_check(const uchar *record) const;
  int search_for_check(uchar *record, const uchar *image, key_part_map parts, peregrine_seek seek,
                       int end);
  int finish(int code, int end);
  int finish_read(int code, int end);
  int finish_change(int code);
  peregrine_lock duplicate_lock() const;
  int session(peregrine_session **out);
  int truncate_damaged();
  /* Rows that are locked for a change are read whole, as in InnoDB: for history, triggers,
     partitions and binary logs, the server relies on more columns than it names. Rows that the
     server checks a rule against are also read whole. */
  bool reads_whole_rows() const {
    return checks_ ||
           (lock_ & ~static_cast<uint32_t>(PEREGRINE_SKIP_LOCKED)) == PEREGRINE_LOCK_EXCLUSIVE;
  }
  /* The record that receives a row, and the columns read. All reads take their target from here. */
  peregrine_target target(uchar *record) const {
    return {record, words(reads_whole_rows() ? &table->s->all_set : columns_asked())};
  }
  const MY_BITMAP *columns_asked() const {
    const bool narrowed = narrowed_ && table->read_set == &table->def_read_set;
    return narrowed ? &asked_ : table->read_set;
  }
  void narrow();
  static const uint64_t *words(const MY_BITMAP *map) {
    static_assert(sizeof(my_bitmap_map) == sizeof(uint64_t), "words of 64 bits");
    return reinterpret_cast<const uint64_t *>(map->bitmap);
  }
  bool change_definition(const peregrine_definition *described, uint32_t locking);
  bool is_refused(int code);
  void raise_auto_increment();
  bool lock_auto_increment(bool *for_a_moment);
  void unlock_auto_increment();

  /* Null while the open table is damaged and the statement will empty it. The handler then allows
     nothing else: see damaged_name_. */
  TableShare *share_ = nullptr;
  peregrine_handle *handle_ = nullptr;
  /* The server's name of the damaged table. */
  std::string damaged_name_;
  Connection *connection_ = nullptr;
  /* How reads lock rows: store_lock and external_lock decide it. */
  uint32_t lock_ = PEREGRINE_LOCK_NONE;
  peregrine_lock stored_lock_ = PEREGRINE_LOCK_NONE;
  bool skip_locked_ = false;
  /* Whether the statement locks rows but writes nothing to the binary log, so that the binary log
     may be in statement format. */
  bool logs_nothing_ = false;
  /* Whether scans read the committed version of a locked row before they wait for it. */
  bool semi_consistent_ = false;
  /* The columns that the statement asked for when the server switched to reading a key only. In a
     scan for another handler, those of them that the key has. */
  MY_BITMAP asked_ = {};
  bool has_asked_ = false;
  /* Whether the open scan reads asked_, and not all columns of its key. */
  bool narrowed_ = false;
  /* The server's implementation of multi-range reads, with its second handler of the table. */
  DsMrr_impl multi_range_;
  /* The key that the engine uses for the open scan. */
  uint used_key_ = kNoKey;
  bool has_range_end_ = false;
  /* Whether the engine has a condition of the server for the key in use. */
  bool has_condition_ = false;
  /* Whether the open scan looks for rows that violate a rule of the server. */
  bool checks_ = false;
  /* Whether inserted rows are part of the table's creation. */
  bool fills_ = false;
  /* Whether the next rnd_next is the first of its scan. */
  bool scan_begins_ = false;
  /* Whether the statement changes or replaces rows that its own rows duplicate. */
  bool changes_duplicates_ = false;
  /* Whether the engine defers index entries. */
  bool bulk_insert_ = false;
  /* The end of the automatic values that the statement has reserved; 0 when there are none. */
  ulonglong reserved_end_ = 0;
  /* Whether the statement holds the lock of the AUTO_INCREMENT counter. */
  bool locked_auto_increment_ = false;
  /* The error of taking that lock; 0: none. */
  int auto_increment_error_ = 0;
};

}  // namespace peregrine

#endif
