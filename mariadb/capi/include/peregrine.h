/* The C interface of the Peregrine storage engine, as the MariaDB plug-in uses it.

   Every function returns a peregrine_code unless its comment says otherwise. After a code other
   than PEREGRINE_OK or PEREGRINE_END, peregrine_error_message() gives the text of the calling
   thread's error. No panic leaves a function: a panic becomes PEREGRINE_INTERNAL. A panic while
   data were being changed stops the engine: every later call returns PEREGRINE_STOPPED until the
   process restarts and recovers.

   Objects and threads: all threads may use an engine and a table at the same time. Only one thread
   at a time may use a session or a handle, except that any thread may call peregrine_session_kill.

   mariadb/capi/src/c_types.rs and the static assertions at the end of this file check the layout of
   each struct against its Rust twin. */

#ifndef PEREGRINE_H
#define PEREGRINE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The caller must look at the returned code: a dropped code is a dropped error. */
#ifdef __GNUC__
#define PEREGRINE_CODE __attribute__((warn_unused_result)) int
#else
#define PEREGRINE_CODE int
#endif

typedef struct peregrine_engine peregrine_engine;
typedef struct peregrine_session peregrine_session;
typedef struct peregrine_table peregrine_table;
typedef struct peregrine_handle peregrine_handle;

/* The result of a call. */
typedef enum peregrine_code {
  PEREGRINE_OK = 0,
  PEREGRINE_END = 1,            /* no such row, or no further row: not an error */
  PEREGRINE_DUPLICATE = 2,      /* peregrine_error_key() names the key */
  PEREGRINE_DEADLOCK = 3,       /* the whole transaction must roll back: all else fails as well */
  PEREGRINE_LOCK_TIMEOUT = 4,   /* the statement must roll back */
  PEREGRINE_CONFLICT = 5,       /* changed after the snapshot; the transaction must roll back */
  PEREGRINE_INTERRUPTED = 6,    /* the statement was killed */
  PEREGRINE_NO_SUCH_TABLE = 7,
  PEREGRINE_TABLE_EXISTS = 8,
  PEREGRINE_BUSY = 9,           /* in use by open transactions */
  PEREGRINE_INVALID = 10,       /* a value, key or definition that the engine does not accept */
  PEREGRINE_TOO_LARGE = 11,     /* a row or key beyond a limit; the text names it */
  PEREGRINE_NO_SPACE = 12,      /* the disk is full */
  PEREGRINE_IO = 13,            /* a system call failed */
  PEREGRINE_CORRUPT = 14,       /* bytes on disk are not what they must be */
  PEREGRINE_FORMAT = 15,        /* files of another version, or not Peregrine's */
  PEREGRINE_STOPPED = 16,       /* the engine has stopped; a restart recovers */
  PEREGRINE_INTERNAL = 17,      /* a bug in the engine */
  PEREGRINE_DEFINITION = 18,    /* the server's definition of a table differs from the engine's */
  PEREGRINE_LOCK_NOT_AVAILABLE = 19, /* locked, and the caller asked not to wait */
  PEREGRINE_ROW_CHANGED = 20, /* another transaction uses or has changed the row, and the table's
                                 locking is optimistic: the statement must roll back */
  PEREGRINE_TABLE_NEWER = 21, /* created, copied or truncated after the transaction's snapshot */
  PEREGRINE_OUT_OF_MEMORY = 22, /* no memory for a large value, row or log record */
  PEREGRINE_LOG_LIMIT = 23 /* the log has reached the most that is kept for a running transaction:
                              the transaction must roll back */
} peregrine_code;

/* Copies the text of this thread's last error, with an ending NUL, cut to `size` bytes. Returns the
   length of the whole text in bytes without the NUL. */
size_t peregrine_error_message(char *buffer, size_t size);

/* The server's number of the key that caused this thread's last PEREGRINE_DUPLICATE. */
uint32_t peregrine_error_key(void);

/* ---- The engine ------------------------------------------------------------------------- */

/* Writes the sort key of a string to a buffer: at most `capacity` bytes to `out`. Returns the
   length of the whole sort key. When that is more than `capacity`, the engine repeats the call with
   a buffer that is large enough. Returns SIZE_MAX for an unknown collation, and
   PEREGRINE_NO_SORT_KEY_MEMORY when the function has no memory to work in. `prefix_chars` first
   cuts the value to that many characters; UINT32_MAX takes the whole value. */
#define PEREGRINE_NO_SORT_KEY_MEMORY (SIZE_MAX - 1)
typedef size_t (*peregrine_sort_key)(uint32_t collation, const uint8_t *value, size_t length,
                                     uint32_t prefix_chars, uint8_t *out, size_t capacity);

/* The waits of a session of which the engine tells the server. */
typedef enum peregrine_told_waits {
  PEREGRINE_TOLD_NONE = 0,
  PEREGRINE_TOLD_FOR_HOLDERS = 1, /* waits for sessions that hold the row */
  PEREGRINE_TOLD_IN_QUEUE = 2     /* also waits for sessions that get the row before this one, and
                                     the waits of sessions that queue behind it */
} peregrine_told_waits;

/* The engine's questions about the server's sessions. `session` is the number given to
   peregrine_session_new(). No function may wait for a session or call the engine, except that
   told_waits may kill the session. */
typedef struct peregrine_sessions {
  /* Writes the text of the statement that a session is executing, in UTF-8, cut to `capacity`
     bytes. Returns its length, or SIZE_MAX when it is not known. The thread that has found a
     deadlock calls it while the session waits for a row lock. */
  size_t (*statement)(uint64_t session, char *buffer, size_t capacity);
  /* Returns a peregrine_told_waits. The thread that is about to wait calls it. */
  uint32_t (*told_waits)(uint64_t session);
  /* Tells the server that one session waits for a row that another session has, or gets before it.
     Returns whether the server is about to kill the other session's statement for that. Neither
     transaction ends during the call. The engine may tell of a pair more than once. */
  int (*waits_for)(uint64_t waiter, uint64_t holder);
  /* How a session waits for rows at this moment. May write the limit in seconds; without that, the
     limit of peregrine_statement_start() holds. Returns whether the session waits also in tables
     whose locking is optimistic. The thread that has met a row of another transaction calls it. */
  int (*waiting)(uint64_t session, uint32_t *seconds);
} peregrine_sessions;

typedef struct peregrine_options {
  const char *directory; /* NUL-terminated; the engine creates it when it does not exist */
  uint64_t pool_bytes;
  uint64_t log_bytes;
  uint64_t checkpoint_seconds;
  uint64_t recovery_target_seconds; /* 0: no target, log_bytes alone decides */
  uint64_t longest_kept_log; /* the most bytes of log that are kept for a running transaction */
  uint32_t flush_log_at_commit; /* 1 sync at commit, 2 write at commit, 0 write each second */
  uint32_t lock_wait_seconds;
  peregrine_sort_key sort_key;
  const peregrine_sessions *sessions; /* must live as long as the engine; NULL: nothing is known */
  const char *temporary_prefix; /* NUL-terminated; the engine drops tables whose names begin with it
                                   on opening. NULL: none */
  uint32_t direct_io; /* not 0: pages are read past the system's page cache */
  uint32_t unreadable_is_damage; /* not 0: a page whose read fails twice counts as damaged */
} peregrine_options;

typedef struct peregrine_counters {
  uint64_t pages_read;
  uint64_t pages_written;
  uint64_t pages_evicted;
  uint64_t mini_page_reads;
  uint64_t pool_pages_used;
  uint64_t pool_pages_total;
  uint64_t pool_pages_dirty;
  uint64_t log_bytes;
  uint64_t log_syncs;
  uint64_t checkpoints;
  uint64_t commits;
  uint64_t rollbacks;
  uint64_t rows_read;
  uint64_t rows_inserted;
  uint64_t rows_updated;
  uint64_t rows_deleted;
  uint64_t lock_waits;
  uint64_t lock_waits_now;
  uint64_t lock_wait_us; /* the sum over ended waits */
  uint64_t longest_lock_wait_us;
  uint64_t lock_timeouts;
  uint64_t deadlocks;
  uint64_t locked_rows;
  uint64_t undo_pages;
  uint64_t purge_backlog;
  uint64_t file_bytes;
  uint64_t file_free_bytes;
  uint64_t transaction_status_bytes;
  uint64_t recovery_seconds; /* estimate for an open after a crash at this moment, rounded up */
} peregrine_counters;

PEREGRINE_CODE peregrine_engine_open(const peregrine_options *options, peregrine_engine **out);

/* Takes a last checkpoint and closes. The caller must not use the engine again, whatever the
   code. */
PEREGRINE_CODE peregrine_engine_close(peregrine_engine *engine);

/* Changes when commits are durable. Holds from the next commit on. */
PEREGRINE_CODE peregrine_engine_set_flush(peregrine_engine *engine, uint32_t flush_log_at_commit);

/* Changes longest_kept_log. Holds from the next checkpoint on. */
PEREGRINE_CODE peregrine_engine_set_longest_kept_log(peregrine_engine *engine, uint64_t bytes);

/* Waits until every commit so far is durable. */
PEREGRINE_CODE peregrine_engine_sync_log(peregrine_engine *engine);

/* The most threads that work on one peregrine_aggregate_range, its caller among them, where many
   pages must be read: 1 to 64. 0 is the default: one for each processor. Holds from the next
   peregrine_aggregate_range on. */
PEREGRINE_CODE peregrine_engine_set_scan_threads(peregrine_engine *engine, uint32_t threads);

PEREGRINE_CODE peregrine_engine_checkpoint(peregrine_engine *engine);
PEREGRINE_CODE peregrine_engine_counters(peregrine_engine *engine, peregrine_counters *out);

/* ---- Tables ----------------------------------------------------------------------------- */

/* The form of a column in the server's record buffer. */
typedef enum peregrine_column_kind {
  PEREGRINE_SIGNED = 0,   /* little-endian two's complement, `length` bytes */
  PEREGRINE_UNSIGNED = 1, /* little-endian, `length` bytes */
  PEREGRINE_FLOAT = 2,    /* 4 bytes */
  PEREGRINE_DOUBLE = 3,   /* 8 bytes */
  PEREGRINE_FIXED = 4,    /* `length` bytes whose memcmp order is the order of values */
  PEREGRINE_PADDED = 5,   /* `length` bytes, filled at the end with the pad character */
  PEREGRINE_VARIABLE = 6, /* `length_bytes` (1 or 2) bytes of length, then up to `length` bytes */
  PEREGRINE_BLOB = 7,     /* `length_bytes` (1 to 4) bytes of length, then a pointer */
  PEREGRINE_ABSENT = 8    /* not stored: a virtual column that no key uses */
} peregrine_column_kind;

typedef struct peregrine_column {
  const char *name;      /* not NUL-terminated */
  const char *type;      /* in SQL, UTF-8, not NUL-terminated; the engine keeps it for `peregrine dump` */
  const char *rest;      /* likewise: the text that follows the type and NULL in a CREATE TABLE, such as DEFAULT */
  uint32_t name_length;
  uint32_t type_length;  /* 0: not known */
  uint32_t rest_length;
  uint32_t kind;         /* peregrine_column_kind */
  uint32_t offset;       /* of the column's bytes in the record */
  uint32_t length;       /* see the kind; a blob's greatest length follows from length_bytes */
  uint32_t length_bytes;
  uint32_t null_offset;  /* byte of the record with the null bit */
  uint32_t null_bit;     /* mask of the null bit; 0 when the column is NOT NULL */
  uint32_t collation;    /* 0: memcmp; otherwise the engine passes it to peregrine_sort_key */
  uint32_t pad;          /* PADDED: the pad character as a big-endian number */
  uint32_t pad_length;   /* PADDED: its length in bytes: 1, 2 or 4 */
} peregrine_column;

typedef struct peregrine_key_part {
  uint32_t column;
  uint32_t prefix;       /* 0: whole; otherwise characters (columns with a collation) or bytes */
  uint32_t key_length;   /* bytes of the value in the server's key image, null byte and length
                            bytes not counted */
  uint32_t sort_length;  /* columns with a collation: the most bytes that peregrine_sort_key gives */
  uint32_t descending;   /* 1: greater values come first */
} peregrine_key_part;

typedef struct peregrine_key {
  const char *name;
  uint32_t name_length;
  uint32_t part_count;   /* number of the key's own parts */
  uint32_t extra_count;  /* number of parts of the clustered key that follow them in key images */
  uint32_t unique;
  const peregrine_key_part *parts; /* part_count + extra_count of them */
} peregrine_key;

typedef struct peregrine_definition {
  const peregrine_column *columns;
  const peregrine_key *keys;   /* in the server's order */
  uint32_t column_count;
  uint32_t key_count;
  uint32_t primary;            /* the server's number of the clustered key; UINT32_MAX: none */
  uint32_t record_length;
  const uint8_t *nulls;        /* a record with the bytes of each column where it is NULL */
  const char *rest;            /* all else that a CREATE TABLE has, UTF-8, for `peregrine dump`: texts with a NUL
                                  between them. Three texts form an entry: its kind, its object, and its text.
                                  "column": a column that the engine does not store, by its number in the table;
                                  "line": a line after the columns and keys; "option": a table option;
                                  "key": text after the parts of a key, by the key's name;
                                  "overlaps": text that replaces the key's last two parts, by the key's name;
                                  "comment": a note for the reader of the dump */
  uint32_t rest_length;        /* 0: not known, and the columns' `rest` is not known either */
} peregrine_definition;

/* What happens when two transactions want the same row. */
typedef enum peregrine_locking {
  PEREGRINE_PESSIMISTIC = 0, /* the second waits */
  PEREGRINE_OPTIMISTIC = 1   /* the second fails at once: PEREGRINE_ROW_CHANGED */
} peregrine_locking;

/* `of_one_session`: the table belongs to one session, which reads it whatever its snapshot is. The
   log has none of its rows, so its name must begin with the temporary prefix. */
PEREGRINE_CODE peregrine_table_create(peregrine_engine *engine, const char *name,
                                      size_t name_length, const peregrine_definition *definition,
                                      uint64_t auto_increment, uint32_t locking,
                                      uint32_t of_one_session);

/* `session`: the session whose transaction may have used the table; it goes on without the table.
   Or NULL. */
PEREGRINE_CODE peregrine_table_drop(peregrine_engine *engine, peregrine_session *session,
                                    const char *name, size_t name_length);

/* `as_new`: the table is a copy that replaces another table. Snapshots older than this call can't
   read it. */
PEREGRINE_CODE peregrine_table_rename(peregrine_engine *engine, const char *from,
                                      size_t from_length, const char *to, size_t to_length,
                                      uint32_t as_new);

/* Drops every table whose name starts with `prefix`. */
PEREGRINE_CODE peregrine_tables_drop(peregrine_engine *engine, const char *prefix,
                                     size_t prefix_length);

/* Opens a table under the server's definition of it. Returns PEREGRINE_DEFINITION when that differs
   from the engine's. Names may differ, and so may the order of keys other than the clustered
   one. */
PEREGRINE_CODE peregrine_table_open(peregrine_engine *engine, const char *name, size_t name_length,
                                    const peregrine_definition *definition, peregrine_table **out);
void peregrine_table_close(peregrine_table *table);

/* Removes all rows and sets the auto-increment counter to 1. No other handle may be open. */
PEREGRINE_CODE peregrine_table_truncate(peregrine_table *table);

/* The same for a table that can't be opened because it is damaged. PEREGRINE_BUSY as below. */
PEREGRINE_CODE peregrine_table_truncate_damaged(peregrine_engine *engine, const char *name,
                                                size_t name_length);

/* Returns PEREGRINE_BUSY when a prepared transaction that waits for its decision has used the
   table. The same holds for the other partitions of a partitioned table. */
PEREGRINE_CODE peregrine_table_undecided(peregrine_table *table);

typedef struct peregrine_table_stats {
  uint64_t rows;
  uint64_t data_bytes;
  uint64_t index_bytes;
  uint64_t next_auto_increment;
  /* Not 0: some pages can't be read, so some bytes are guessed. Set once for each table, with the
     reason in peregrine_error_message. */
  uint64_t told_guessed;
} peregrine_table_stats;

PEREGRINE_CODE peregrine_table_statistics(peregrine_table *table, peregrine_table_stats *out);

/* About how many rows have equal values in the first n + 1 parts of a key: `out[n]`, for n below
   `count`. */
PEREGRINE_CODE peregrine_table_rows_per_key(peregrine_table *table, uint32_t key, uint64_t *out,
                                            uint32_t count);

/* Samples the table's indexes anew. */
PEREGRINE_CODE peregrine_table_analyze(peregrine_table *table);

/* Receives a problem of a table: a text in UTF-8, not NUL-terminated. */
typedef void (*peregrine_problem)(void *context, const char *text, size_t length);

/* Verifies the trees, rows and index entries of a table as of now, while other threads use it. The
   engine calls `interrupted` at every page; when it returns other than 0, the check ends with
   PEREGRINE_INTERRUPTED. The engine calls `problem` for each problem at the end. Returns
   PEREGRINE_END when there are problems. */
PEREGRINE_CODE peregrine_table_check(peregrine_table *table, int (*interrupted)(void *context),
                                     peregrine_problem problem, void *context);

/* Reserves `count` values of the form offset + k * increment, none above `max`. */
PEREGRINE_CODE peregrine_table_reserve_auto_increment(peregrine_table *table, uint64_t count,
                                                      uint64_t increment, uint64_t offset,
                                                      uint64_t max, uint64_t *first);
/* Returns reserved values that were not used: the counter goes from `reserved_end` back to `next`.
   Has no effect when another caller has reserved values since. */
PEREGRINE_CODE peregrine_table_return_auto_increment(peregrine_table *table, uint64_t next,
                                                     uint64_t reserved_end);
PEREGRINE_CODE peregrine_table_raise_auto_increment(peregrine_table *table, uint64_t next);

/* Like peregrine_table_raise_auto_increment, and durable when it returns. */
PEREGRINE_CODE peregrine_table_set_auto_increment(peregrine_table *table, uint64_t next);

/* Changes the table's locking. Holds from the next conflict on. */
PEREGRINE_CODE peregrine_table_set_locking(peregrine_table *table, uint32_t locking);

/* Gives the engine's columns and keys the names and SQL types of a definition, for inspections,
   checks and dumps. Returns PEREGRINE_DEFINITION when the definition differs from the table's in
   more than these. */
PEREGRINE_CODE peregrine_table_set_description(peregrine_table *table,
                                               const peregrine_definition *definition);

/* The greatest length of a row's position in bytes, including its ending length. */
uint32_t peregrine_table_position_length(const peregrine_table *table);

/* ---- Sessions: one per connection, with at most one transaction at a time ------------------ */

typedef enum peregrine_isolation {
  PEREGRINE_READ_COMMITTED = 0,
  PEREGRINE_REPEATABLE_READ = 1,
  PEREGRINE_SERIALIZABLE = 2
} peregrine_isolation;

/* `number`: the session's number in peregrine_inspect. */
PEREGRINE_CODE peregrine_session_new(peregrine_engine *engine, uint64_t number,
                                     peregrine_session **out);

/* Rolls back an open transaction, and frees the session. A prepared transaction goes on without
   it. */
void peregrine_session_free(peregrine_session *session);

/* Begins a statement, and a transaction when none is open. `now_us`: the time, in microseconds
   since 1970, for peregrine_inspect. `keeps_log`: not 0 exempts the transaction from the limit of
   peregrine_engine_set_longest_kept_log. */
PEREGRINE_CODE peregrine_statement_start(peregrine_session *session, uint32_t isolation,
                                         uint32_t lock_wait_seconds, uint64_t now_us,
                                         int32_t keeps_log);

/* Ends the statement; its changes stay part of the transaction. Fails with PEREGRINE_DEADLOCK or
   PEREGRINE_CONFLICT when the transaction can only be rolled back, even if the server has dropped
   the error that said so. */
PEREGRINE_CODE peregrine_statement_end(peregrine_session *session);

/* Undoes the changes of the statement. When the transaction can only be rolled back, undoes
   nothing: the rollback of the transaction does that. The statement's deferred index entries of a
   bulk insert are dropped with its rows. */
PEREGRINE_CODE peregrine_statement_rollback(peregrine_session *session);

/* Commits, or finishes the commit that peregrine_session_commit_ordered has begun. In the latter
   case, `wait` 0 lets it return before the commit is durable. After an error a prepared transaction
   may still be prepared; it goes on without the session. */
PEREGRINE_CODE peregrine_session_commit(peregrine_session *session, uint32_t wait);
PEREGRINE_CODE peregrine_session_rollback(peregrine_session *session);

/* Savepoints; `*out` is the number for the other two functions. A rollback releases the savepoints
   that were set later; so does a release with `later` not 0. The end of a statement releases the
   savepoints that functions have set in it. */
PEREGRINE_CODE peregrine_savepoint_set(peregrine_session *session, uint64_t *out);
PEREGRINE_CODE peregrine_savepoint_rollback(peregrine_session *session, uint64_t savepoint);
PEREGRINE_CODE peregrine_savepoint_release(peregrine_session *session, uint64_t savepoint,
                                           uint32_t later);

/* Takes the transaction's snapshot now. */
PEREGRINE_CODE peregrine_session_snapshot(peregrine_session *session, uint32_t isolation,
                                          uint32_t lock_wait_seconds, uint64_t now_us);

/* Locks a table's auto-increment counter against other sessions that lock it, until the session
   unlocks it or the transaction ends. The values reserved in between are consecutive. */
PEREGRINE_CODE peregrine_auto_increment_lock(peregrine_session *session, peregrine_table *table);
PEREGRINE_CODE peregrine_auto_increment_unlock(peregrine_session *session, peregrine_table *table);

/* Interrupts the session's lock waits until its next statement begins. Any thread may call it. */
void peregrine_session_kill(peregrine_session *session);

/* ---- Handles: reading and changing rows of one table -------------------------------------- */

typedef enum peregrine_lock {
  PEREGRINE_LOCK_NONE = 0, /* snapshot read */
  PEREGRINE_LOCK_SHARED = 1,
  PEREGRINE_LOCK_EXCLUSIVE = 2,
  PEREGRINE_SKIP_LOCKED = 4, /* with one of the two above: rows locked by others are skipped */
  PEREGRINE_NEWEST = 8       /* with EXCLUSIVE: reads the newest rows, whatever the snapshot is, and waits
                                for rows that others write; for checks of all rows */
} peregrine_lock;

/* The target of a search, relative to a key image k. A row "starts with k" when it equals k in the
   parts that k has. */
typedef enum peregrine_seek {
  PEREGRINE_EXACT = 0,        /* the first row that starts with k */
  PEREGRINE_AT_OR_AFTER = 1,  /* … or else the first greater one */
  PEREGRINE_AFTER = 2,        /* the first row that is greater than all that start with k */
  PEREGRINE_AT_OR_BEFORE = 3, /* the last row that starts with k, or else the last smaller one */
  PEREGRINE_BEFORE = 4,       /* the last row that is smaller than all that start with k */
  PEREGRINE_FIRST = 5,
  PEREGRINE_LAST = 6,
  PEREGRINE_EXACT_LAST = 7    /* the last row that starts with k */
} peregrine_seek;

/* How rows are read: the record buffer that receives them, and the columns wanted, as the server's
   bitmap (bit n % 64 of word n / 64). Only these columns are written to the record. */
typedef struct peregrine_target {
  uint8_t *record;
  const uint64_t *columns;
} peregrine_target;

PEREGRINE_CODE peregrine_handle_open(peregrine_table *table, peregrine_handle **out);
void peregrine_handle_close(peregrine_handle *handle);

/* Uses the server's key `key` (UINT32_MAX: the order of the table) for the searches that follow.
   The engine does not fetch rows when the key has all columns wanted. */
PEREGRINE_CODE peregrine_use_key(peregrine_handle *handle, uint32_t key, uint32_t lock);

/* Returns 1 when entries of the server's key `key` give back the values of all its columns and of
   those of the primary key, 0 otherwise. Prefixes, descending parts, floating-point numbers, and
   strings of the primary key with a collation are not given back: an entry has the sort key of such
   a string. */
int peregrine_key_gives_back(peregrine_handle *handle, uint32_t key);

/* Decides from the columns of a key, written to the record of a target, what happens to an index
   entry. 0: the engine fetches its row; 1: it skips the entry; 2: the scan ends; 3: the statement
   was killed. */
typedef int (*peregrine_check)(void *context);

/* Uses a condition for the searches that follow in the key in use, which must give its columns
   back. `check` NULL removes the condition. With a condition the engine always fetches rows, and
   only those for which the condition holds. */
PEREGRINE_CODE peregrine_set_condition(peregrine_handle *handle, peregrine_check check,
                                       void *context, peregrine_target target);

/* Sets the end of forward scans: after the rows that start with a key image (`inclusive`), or
   before the rows that are not less than it. `key` NULL removes the end. */
PEREGRINE_CODE peregrine_set_end(peregrine_handle *handle, const uint8_t *key, uint64_t key_parts,
                                 uint32_t inclusive);

/* Locks the values of a key, or of its first parts, against other sessions that guard the same
   values, until the session's transaction has inserted or updated a row, or has ended. The caller
   guards before it searches, with PEREGRINE_NEWEST, for rows that violate a rule of its own. */
PEREGRINE_CODE peregrine_guard(peregrine_handle *handle, peregrine_session *session,
                               const uint8_t *key, uint64_t key_parts);

/* `key_parts`: a set bit n means that the key image has part n; the parts begin at 0 without
   gaps. */
PEREGRINE_CODE peregrine_search(peregrine_handle *handle, peregrine_session *session,
                                const uint8_t *key, uint64_t key_parts, uint32_t seek,
                                peregrine_target target);
PEREGRINE_CODE peregrine_next(peregrine_handle *handle, peregrine_session *session,
                              peregrine_target target);
PEREGRINE_CODE peregrine_previous(peregrine_handle *handle, peregrine_session *session,
                                  peregrine_target target);

/* Reads the next row if it starts with the key image of the last search. */
PEREGRINE_CODE peregrine_next_same(peregrine_handle *handle, peregrine_session *session,
                                   peregrine_target target);

/* Reads the next rows, at most `most`, into records that are `stride` bytes apart, from
   target.record on. `same`: only rows that start with the key image of the last search. `rows`
   receives their number. For targets without blobs. */
PEREGRINE_CODE peregrine_next_rows(peregrine_handle *handle, peregrine_session *session,
                                   peregrine_target target, size_t stride, size_t most,
                                   uint32_t same, size_t *rows);

/* Tuning constants of the plug-in (docs/knobs.md): bytes of the records that one call fills; rows
   of a join's outer table that are read before those of the inner table (at most
   PEREGRINE_MOST_KEYS); and the number of rows of an INSERT from which on its index entries are
   deferred. */
size_t peregrine_row_batch_bytes(void);
size_t peregrine_join_batch_rows(void);
uint64_t peregrine_bulk_insert_rows(void);

/* The most keys of one call of peregrine_multi_get. */
#define PEREGRINE_MOST_KEYS 512

/* Reads the rows of many keys together, by the key in use, which must be the clustered one. `keys`:
   `count` key images of all its parts, each of `key_length` bytes. `wanted`: a byte for each key.
   When it is not 0, the engine reads the row into the record `n * stride` bytes behind
   target.record, and sets the byte to 0 when there is no such row. For targets without blobs. */
PEREGRINE_CODE peregrine_multi_get(peregrine_handle *handle, peregrine_session *session,
                                   const uint8_t *keys, size_t key_length, size_t count,
                                   peregrine_target target, size_t stride, uint8_t *wanted);

/* Tells that the row last read does not match. Under READ COMMITTED the engine then releases its
   lock, unless the transaction held the row before that read, or has locked or written anything
   since. */
PEREGRINE_CODE peregrine_unlock_row(peregrine_handle *handle, peregrine_session *session);

/* Switches semi-consistent reads on, or off with 0; peregrine_handle_reset switches them off, too.
   Under READ COMMITTED, a locking scan or range of the clustered key then does not wait for a row
   that another transaction has locked. It gives the last committed version of the row without a
   lock, and peregrine_was_semi_consistent returns 1. The next step waits for the same row and gives
   its newest version; after peregrine_unlock_row it goes on to the next row instead. */
int peregrine_try_semi_consistent(peregrine_handle *handle, uint32_t tries);
int peregrine_was_semi_consistent(peregrine_handle *handle);

/* Writes the position of the row last read, peregrine_table_position_length() bytes. The memcmp
   order of a table's positions is the order of its clustered key. */
PEREGRINE_CODE peregrine_position(peregrine_handle *handle, uint8_t *position);

/* Writes the position of the row that caused this session's last PEREGRINE_DUPLICATE. */
PEREGRINE_CODE peregrine_duplicate_position(peregrine_handle *handle, peregrine_session *session,
                                            uint8_t *position);

/* Reads the row at a position. Later updates and deletes through the handle apply to that row. */
PEREGRINE_CODE peregrine_read_position(peregrine_handle *handle, peregrine_session *session,
                                       const uint8_t *position, uint32_t lock,
                                       peregrine_target target);

/* Inserts a row. `lock`, a peregrine_lock: how the engine locks a row with the same key before it
   returns PEREGRINE_DUPLICATE, for a caller that is about to change that row instead. */
PEREGRINE_CODE peregrine_insert(peregrine_handle *handle, peregrine_session *session,
                                const uint8_t *record, uint32_t lock);

/* Changes the row last read. Columns outside `changed` (a bitmap) whose bytes are the same in both
   records keep their value. Returns PEREGRINE_END when the row had all the values already. */
PEREGRINE_CODE peregrine_update(peregrine_handle *handle, peregrine_session *session,
                                const uint8_t *old_record, const uint8_t *new_record,
                                const uint64_t *changed);

/* Deletes the row last read. */
PEREGRINE_CODE peregrine_delete(peregrine_handle *handle, peregrine_session *session);

/* Begins a bulk insert into the handle's table. The engine defers index entries and inserts them in
   the order of their keys when the bulk insert ends, or before any operation that needs them. */
PEREGRINE_CODE peregrine_begin_bulk_insert(peregrine_handle *handle, peregrine_session *session);

/* Ends the transaction's bulk inserts. The caller must leave this out after the statement has
   failed: it would insert, and perhaps wait for, entries that the rollback then undoes. Entries
   that are still deferred go in before any operation that needs them, or are dropped with the
   statement. Fails like peregrine_insert, but with no duplicates. */
PEREGRINE_CODE peregrine_end_bulk_insert(peregrine_handle *handle, peregrine_session *session);

/* Makes the rows inserted from here on, until peregrine_end_fill, part of a table that is just
   being created and that belongs to one session: a rollback leaves them there. */
PEREGRINE_CODE peregrine_begin_fill(peregrine_handle *handle, peregrine_session *session);
PEREGRINE_CODE peregrine_end_fill(peregrine_handle *handle, peregrine_session *session);

/* About how many rows are between two key images; NULL is open. `*_inclusive`: rows that start with
   the image count. */
PEREGRINE_CODE peregrine_estimate_range(peregrine_handle *handle, uint32_t key, const uint8_t *low,
                                        uint64_t low_parts, uint32_t low_inclusive,
                                        const uint8_t *high, uint64_t high_parts,
                                        uint32_t high_inclusive, uint64_t *out);

/* Forgets the position and releases memory of large values. */
void peregrine_handle_reset(peregrine_handle *handle);

#ifdef __cplusplus
}

static_assert(sizeof(peregrine_options) == 88, "as in mariadb/capi/src/c_types.rs");
static_assert(sizeof(peregrine_sessions) == 32, "as in mariadb/capi/src/c_types.rs");
static_assert(sizeof(peregrine_counters) == 232, "as in mariadb/capi/src/c_types.rs");
static_assert(sizeof(peregrine_column) == 72, "as in mariadb/capi/src/c_types.rs");
static_assert(sizeof(peregrine_key_part) == 20, "as in mariadb/capi/src/c_types.rs");
static_assert(sizeof(peregrine_key) == 32, "as in mariadb/capi/src/c_types.rs");
static_assert(sizeof(peregrine_definition) == 56, "as in mariadb/capi/src/c_types.rs");
static_assert(sizeof(peregrine_table_stats) == 40, "as in mariadb/capi/src/c_types.rs");
static_assert(sizeof(peregrine_target) == 16, "as in mariadb/capi/src/c_types.rs");
#endif

#endif /* PEREGRINE_H */
