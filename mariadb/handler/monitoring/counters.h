/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see mariadb/handler/LICENSE). */

/* The engine's counters by name: for SHOW STATUS, SHOW ENGINE STATUS and PEREGRINE_METRICS. */

#ifndef PEREGRINE_COUNTERS_H
#define PEREGRINE_COUNTERS_H

#include "engine.h"

namespace peregrine {

struct Counter {
  /* The status variable's name without "Peregrine_". */
  const char *name;
  uint64_t peregrine_counters::*member;
  /* Number of the engine's units in one unit of `name`. */
  uint64_t unit;
  /* Whether the value never falls. */
  bool only_grows;
  const char *comment;

  ulonglong value(const peregrine_counters &now) const { return now.*member / unit; }
};

/* In the order in which they are shown. */
constexpr Counter kCounters[] = {
    {"buffer_pool_pages_dirty", &peregrine_counters::pool_pages_dirty, 1, false,
     "Pages in memory that are newer than their image on disk"},
    {"buffer_pool_pages_total", &peregrine_counters::pool_pages_total, 1, false,
     "Pages that the buffer pool has room for"},
    {"buffer_pool_pages_used", &peregrine_counters::pool_pages_used, 1, false,
     "Pages in the buffer pool"},
    {"checkpoints", &peregrine_counters::checkpoints, 1, true, "Completed checkpoints"},
    {"commits", &peregrine_counters::commits, 1, true, "Commits of transactions that had written"},
    {"data_file_bytes", &peregrine_counters::file_bytes, 1, false, "Size of the data file"},
    {"data_file_free_bytes", &peregrine_counters::file_free_bytes, 1, false,
     "Free bytes in the data file, used before it grows"},
    {"deadlocks", &peregrine_counters::deadlocks, 1, true, "Deadlocks found and broken"},
    {"history_length", &peregrine_counters::purge_backlog, 1, false,
     "Ended transactions whose old versions are not purged yet"},
    {"log_bytes_written", &peregrine_counters::log_bytes, 1, true, "Bytes appended to the log"},
    {"log_syncs", &peregrine_counters::log_syncs, 1, true, "Syncs of the log"},
    {"mini_page_reads", &peregrine_counters::mini_page_reads, 1, true,
     "Reads of leaves not in memory that their mini-pages answered"},
    {"pages_evicted", &peregrine_counters::pages_evicted, 1, true,
     "Pages that had to leave the buffer pool"},
    {"pages_read", &peregrine_counters::pages_read, 1, true, "Pages read from the data file"},
    {"pages_written", &peregrine_counters::pages_written, 1, true,
     "Pages written to the data file"},
    {"recovery_seconds", &peregrine_counters::recovery_seconds, 1, false,
     "Seconds that recovery would take, were the server killed now"},
    {"rollbacks", &peregrine_counters::rollbacks, 1, true,
     "Rollbacks of transactions that had written"},
    {"row_lock_current_waits", &peregrine_counters::lock_waits_now, 1, false,
     "Transactions that wait for a row lock"},
    {"row_lock_time", &peregrine_counters::lock_wait_us, 1000, true,
     "Milliseconds that waits for row locks took, all together"},
    {"row_lock_time_max", &peregrine_counters::longest_lock_wait_us, 1000, true,
     "Milliseconds of the longest wait for a row lock"},
    {"row_lock_timeouts", &peregrine_counters::lock_timeouts, 1, true,
     "Waits for row locks that ended with error 1205"},
    {"row_lock_waits", &peregrine_counters::lock_waits, 1, true, "Waits for row locks"},
    {"row_locks", &peregrine_counters::locked_rows, 1, false,
     "Rows in the lock table: locked without being changed, or waited for"},
    {"rows_deleted", &peregrine_counters::rows_deleted, 1, true, "Rows deleted"},
    {"rows_inserted", &peregrine_counters::rows_inserted, 1, true, "Rows inserted"},
    {"rows_read", &peregrine_counters::rows_read, 1, true, "Rows read"},
    {"rows_updated", &peregrine_counters::rows_updated, 1, true, "Rows updated"},
    {"transaction_status_bytes", &peregrine_counters::transaction_status_bytes, 1, false,
     "Memory that says how transactions ended that some snapshot may ask for"},
    {"undo_pages", &peregrine_counters::undo_pages, 1, false, "Pages of undo"},
};

}  // namespace peregrine

#endif
