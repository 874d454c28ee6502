/* Inspection in the C interface of Peregrine: running transactions, locks, waits and deadlocks. The
   rules of peregrine.h for errors and threads hold here too. */

#ifndef PEREGRINE_INSPECT_H
#define PEREGRINE_INSPECT_H

#include "peregrine.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Strings in UTF-8, not NUL-terminated. */
typedef struct peregrine_row_name {
  const char *table; /* empty: the table has been dropped */
  size_t table_length;
  const char *index; /* "PRIMARY" for the clustered one */
  size_t index_length;
  const char *key; /* the values, separated by commas */
  size_t key_length;
} peregrine_row_name;

typedef enum peregrine_transaction_state {
  PEREGRINE_RUNNING = 0,
  PEREGRINE_LOCK_WAIT = 1,
  PEREGRINE_ROLLING_BACK = 2,
  PEREGRINE_PREPARED = 3 /* waits for its coordinator */
} peregrine_transaction_state;

typedef struct peregrine_transaction_info {
  uint64_t id; /* from 2^48 on: provisional, of a transaction that has not written */
  uint64_t session;
  uint64_t started_us;     /* microseconds since 1970; 0: unknown */
  uint64_t waits_since_us; /* microseconds since 1970; 0: it does not wait */
  uint64_t waits_for;      /* in PEREGRINE_LOCK_WAIT: a peregrine_lock_info.lock */
  uint64_t rows_changed;
  uint64_t undo_records;
  uint64_t undo_bytes;
  uint64_t rows_locked;
  uint64_t lock_waits;
  uint64_t snapshot_age; /* ends of writing transactions since its snapshot; UINT64_MAX: it has none */
  uint32_t state;        /* peregrine_transaction_state */
  uint32_t isolation;    /* peregrine_isolation */
} peregrine_transaction_info;

typedef struct peregrine_lock_info {
  uint64_t lock; /* a number of the row */
  uint64_t transaction;
  peregrine_row_name row;
  uint32_t mode;    /* PEREGRINE_LOCK_SHARED, PEREGRINE_LOCK_EXCLUSIVE */
  uint32_t granted; /* 0: the transaction waits for it */
  uint64_t is_range; /* 1: the lock covers a range, and the key gives its bounds */
} peregrine_lock_info;

typedef struct peregrine_lock_wait_info {
  uint64_t lock;
  uint64_t requesting; /* peregrine_transaction_info.id */
  uint64_t blocking;
} peregrine_lock_wait_info;

typedef struct peregrine_lists {
  const peregrine_transaction_info *transactions;
  size_t transaction_count;
  const peregrine_lock_info *locks;
  size_t lock_count;
  const peregrine_lock_wait_info *waits;
  size_t wait_count;
  size_t truncated; /* 1: there are more locks than are listed */
} peregrine_lists;

typedef struct peregrine_inspection peregrine_inspection;

/* Lists running transactions, locks and waits. The lists live until peregrine_inspection_free. */
PEREGRINE_CODE peregrine_inspect(peregrine_engine *engine, peregrine_inspection **out,
                                 peregrine_lists *lists);
void peregrine_inspection_free(peregrine_inspection *inspection);

/* A transaction of a deadlock. It waits for a row that the next member holds; the last member waits
   for the first. */
typedef struct peregrine_deadlock_member {
  uint64_t id;
  uint64_t session;
  uint64_t undo_records;
  peregrine_row_name row;
  const char *statement; /* not NUL-terminated; NULL: not known */
  size_t statement_length;
  uint32_t mode; /* PEREGRINE_LOCK_SHARED, PEREGRINE_LOCK_EXCLUSIVE */
  uint32_t reserved;
} peregrine_deadlock_member;

typedef struct peregrine_deadlock_info {
  uint64_t at_us; /* microseconds since 1970 */
  const peregrine_deadlock_member *members;
  size_t member_count;
  size_t length; /* number of transactions in the cycle; the list of a long one is cut */
  size_t victim; /* which member was rolled back */
} peregrine_deadlock_info;

typedef struct peregrine_deadlock peregrine_deadlock;

/* Gives the latest deadlock; PEREGRINE_END: there was none. The members live until
   peregrine_deadlock_free. */
PEREGRINE_CODE peregrine_latest_deadlock(peregrine_engine *engine, peregrine_deadlock **out,
                                         peregrine_deadlock_info *info);
void peregrine_deadlock_free(peregrine_deadlock *deadlock);

#ifdef __cplusplus
}

static_assert(sizeof(peregrine_row_name) == 48, "as in mariadb/capi/src/c_types.rs");
static_assert(sizeof(peregrine_transaction_info) == 96, "as in mariadb/capi/src/c_types.rs");
static_assert(sizeof(peregrine_lock_info) == 80, "as in mariadb/capi/src/c_types.rs");
static_assert(sizeof(peregrine_lock_wait_info) == 24, "as in mariadb/capi/src/c_types.rs");
static_assert(sizeof(peregrine_lists) == 56, "as in mariadb/capi/src/c_types.rs");
static_assert(sizeof(peregrine_deadlock_member) == 96, "as in mariadb/capi/src/c_types.rs");
static_assert(sizeof(peregrine_deadlock_info) == 40, "as in mariadb/capi/src/c_types.rs");
#endif

#endif /* PEREGRINE_INSPECT_H */
