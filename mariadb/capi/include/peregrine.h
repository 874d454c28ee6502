/* The C interface of the Peregrine storage engine, as the MariaDB plug-in uses it.

   Every function returns a peregrine_code unless it says otherwise. After a code other than
   PEREGRINE_OK or PEREGRINE_END, peregrine_error_message() gives the text of what went wrong in
   the calling thread. No function lets a panic out: a panic becomes PEREGRINE_INTERNAL, and one
   that happened while data were being changed stops the engine (every later call returns
   PEREGRINE_STOPPED until the process restarts and recovers).

   Objects and threads: an engine and a table may be used by all threads at once; a session, and a
   handle, by one thread at a time (peregrine_session_kill excepted, which any thread may call).

   The layout of each struct is checked against its Rust twin by mariadb/capi/src/c_types.rs and by
   the static assertions at the end of this file. */

#ifndef PEREGRINE_H
#define PEREGRINE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What such a function returns is to be looked at: who drops a code drops an error. */
#ifdef __GNUC__
#define PEREGRINE_CODE __attribute__((warn_unused_result)) int
#else
#define PEREGRINE_CODE int
#endif

typedef struct peregrine_engine peregrine_engine;
typedef struct peregrine_session peregrine_session;
typedef struct peregrine_table peregrine_table;
typedef struct peregrine_handle peregrine_handle;

/* What a call came to. */
typedef enum peregrine_code {
  PEREGRINE_OK = 0,
  PEREGRINE_END = 1,            /* no such row, or no further row: not an error */
  PEREGRINE_DUPLICATE = 2,      /* peregrine_error_key() names the key */
  PEREGRINE_DEADLOCK = 3,       /* the whole transaction must roll back: all else fails so, too */
  PEREGRINE_LOCK_TIMEOUT = 4,   /* the statement must roll back */
  PEREGRINE_CONFLICT = 5,       /* changed after the snapshot; the transaction must roll back */
  PEREGRINE_INTERRUPTED = 6,    /* the statement was killed */
  PEREGRINE_NO_SUCH_TABLE = 7,
  PEREGRINE_TABLE_EXISTS = 8,
  PEREGRINE_BUSY = 9,           /* in use by open transactions */
  PEREGRINE_INVALID = 10,       /* a value, key or definition that cannot be taken */
  PEREGRINE_TOO_LARGE = 11,     /* a row or key beyond a limit; the text names it */
  PEREGRINE_NO_SPACE = 12,      /* the disk is full */
  PEREGRINE_IO = 13,            /* a system call failed */
  PEREGRINE_CORRUPT = 14,       /* bytes on disk are not what they must be */
  PEREGRINE_FORMAT = 15,        /* files of another version, or not ours */
  PEREGRINE_STOPPED = 16,       /* the engine has stopped; a restart recovers */
  PEREGRINE_INTERNAL = 17,      /* a bug in the engine */
  PEREGRINE_DEFINITION = 18,    /* the server's definition of a table differs from the engine's */
  PEREGRINE_LOCK_NOT_AVAILABLE = 19, /* locked, and the caller asked not to wait */
  PEREGRINE_ROW_CHANGED = 20, /* in use or changed by another, and the table's locking is
                                 optimistic: the statement must roll back */
  PEREGRINE_TABLE_NEWER = 21, /* created, copied or truncated after the transaction's snapshot */
  PEREGRINE_OUT_OF_MEMORY = 22, /* no memory for a large value, row or log record */
  PEREGRINE_LOG_LIMIT = 23 /* the log was kept for the transaction for as long as it may be: it must
                              roll back */
} peregrine_code;

/* Copies the text of this thread's last error, with an ending NUL, cut to `size` bytes. Returns
   its whole length in bytes without the NUL. */
size_t peregrine_error_message(char *buffer, size_t size);

/* The server's key number in the way at this thread's last PEREGRINE_DUPLICATE. */
uint32_t peregrine_error_key(void);

/* ---- The engine ------------------------------------------------------------------------- */

/* Appends the sort key of a string to a buffer: writes at most `capacity` bytes to `out` and
   returns the sort key's whole length; when that is more than `capacity`, the call is repeated
   with a buffer large enough. Returns SIZE_MAX for an unknown collation, and
   PEREGRINE_NO_SORT_KEY_MEMORY where it has no memory to work in. `prefix_chars` cuts the value to
   that many characters first; UINT32_MAX takes it whole. */
#define PEREGRINE_NO_SORT_KEY_MEMORY (SIZE_MAX - 1)
typedef size_t (*peregrine_sort_key)(uint32_t collation, const uint8_t *value, size_t length,
                                     uint32_t prefix_chars, uint8_t *out, size_t capacity);

/* Of which waits of a session the server is told. */
typedef enum peregrine_told_waits {
  PEREGRINE_TOLD_NONE = 0,
  PEREGRINE_TOLD_FOR_HOLDERS = 1, /* for those who hold the row that it waits for */
  PEREGRINE_TOLD_IN_QUEUE = 2     /* also for those who will have the row before it; and of those
                                     who wait behind it, that they do */
} peregrine_told_waits;

/* What the server knows of its sessions, by the numbers of peregrine_session_new(). No function may
   wait for a session, or call the engine, but that told_waits may kill the session. */
typedef struct peregrine_sessions {
  /* Writes the text of the statement that a session is executing, in UTF-8, cut to `capacity`
     bytes; returns its length, or SIZE_MAX when it is not known. Called while the session waits for
     a row lock, by the thread that found a deadlock. */
  size_t (*statement)(uint64_t session, char *buffer, size_t capacity);
  /* A peregrine_told_waits. Called by the thread that is about to wait. */
  uint32_t (*told_waits)(uint64_t session);
  /* A session waits for a row that another one has, or will have before it. Returns whether the
     server is about to kill the other one's statement for that. Neither transaction ends during the
     call. A pair may be told more than once. */
  int (*waits_for)(uint64_t waiter, uint64_t holder);
  /* How a session waits for rows at this moment. May write the limit in seconds, which else is that of
     peregrine_statement_start(). Returns whether the session waits also in tables whose locking is
     optimistic. Called by the thread that has come to a row which another transaction has. */
  int (*waiting)(uint64_t session, uint32_t *seconds);
} peregrine_sessions;

typedef struct peregrine_options {
  const char *directory; /* NUL-terminated; made when it does not exist */
  uint64_t pool_bytes;
  uint64_t log_bytes;
  uint64_t checkpoint_seconds;
  uint64_t recovery_target_seconds; /* 0: however long log_bytes take */
  uint64_t longest_kept_log; /* bytes of log that are kept for a transaction that runs */
  uint32_t flush_log_at_commit; /* 1 sync at commit, 2 write at commit, 0 write each second */
  uint32_t lock_wait_seconds;
  peregrine_sort_key sort_key;
  const peregrine_sessions *sessions; /* good as long as the engine; NULL: nothing is known */
  const char *temporary_prefix; /* NUL-terminated; tables whose names begin so are dropped on
                                   opening. NULL: none */
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
  uint64_t lock_wait_us; /* of ended waits, all together */
  uint64_t longest_lock_wait_us;
  uint64_t lock_timeouts;
  uint64_t deadlocks;
  uint64_t locked_rows;
  uint64_t undo_pages;
  uint64_t purge_backlog;
  uint64_t file_bytes;
  uint64_t file_free_bytes;
  uint64_t transaction_status_bytes;
  uint64_t recovery_seconds; /* that an open would take now, rounded up */
} peregrine_counters;

PEREGRINE_CODE peregrine_engine_open(const peregrine_options *options, peregrine_engine **out);

/* Takes a last checkpoint and closes. The engine is gone whatever is returned. */
PEREGRINE_CODE peregrine_engine_close(peregrine_engine *engine);

/* Changes when commits are durable, from the next commit on. */
PEREGRINE_CODE peregrine_engine_set_flush(peregrine_engine *engine, uint32_t flush_log_at_commit);

/* Changes longest_kept_log, from the next checkpoint on. */
PEREGRINE_CODE peregrine_engine_set_longest_kept_log(peregrine_engine *engine, uint64_t bytes);

/* Returns when every commit so far is durable. */
PEREGRINE_CODE peregrine_engine_sync_log(peregrine_engine *engine);

/* How many threads work on one peregrine_aggregate_range, its caller's among them, where many pages
   must be read: 1 to 64; 0, as at the beginning: one for each processor. From the next one on. */
PEREGRINE_CODE peregrine_engine_set_scan_threads(peregrine_engine *engine, uint32_t threads);

PEREGRINE_CODE peregrine_engine_checkpoint(peregrine_engine *engine);
PEREGRINE_CODE peregrine_engine_counters(peregrine_engine *engine, peregrine_counters *out);

/* ---- Tables ----------------------------------------------------------------------------- */

/* How a column stands in the server's record buffer. */
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
  const char *type;      /* in SQL, UTF-8, not NUL-terminated; kept with the table for `peregrine dump` */
  const char *rest;      /* the same of what a CREATE TABLE has behind the type and NULL, DEFAULT and so on */
  uint32_t name_length;
  uint32_t type_length;  /* 0: not known */
  uint32_t rest_length;
  uint32_t kind;         /* peregrine_column_kind */
  uint32_t offset;       /* of the column's bytes in the record */
  uint32_t length;       /* see the kind; a blob's greatest length follows from length_bytes */
  uint32_t length_bytes;
  uint32_t null_offset;  /* byte of the record with the null bit */
  uint32_t null_bit;     /* the bit's mask; 0 when the column takes no NULL */
  uint32_t collation;    /* 0: memcmp; otherwise given to peregrine_sort_key */
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
  uint32_t part_count;   /* parts of the key itself, then those of the clustered key that the */
  uint32_t extra_count;  /* server appends to it in key images, in that order */
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
  const uint8_t *nulls;        /* a record with what stands in each column that is NULL */
  const char *rest;            /* what else a CREATE TABLE has, UTF-8, for `peregrine dump`: parts, a NUL between
                                  them. Three belong together: of which kind, of what, and the text. The kinds:
                                  "column", which the engine has not, by its number in the table; "line" beside
                                  columns and keys; "option" behind them; "key", by its name, what follows its
                                  parts; "overlaps", by the key's name, what stands for its last two parts;
                                  "comment" for who reads the dump */
  uint32_t rest_length;        /* 0: not known, nor that of the columns */
} peregrine_definition;

/* What happens where two transactions want the same row. */
typedef enum peregrine_locking {
  PEREGRINE_PESSIMISTIC = 0, /* the second waits */
  PEREGRINE_OPTIMISTIC = 1   /* the second fails at once: PEREGRINE_ROW_CHANGED */
} peregrine_locking;

/* `of_one_session`: the table is a session's own, which reads it whatever snapshot it has. The log has none of its
   rows: its name is to begin with the temporary prefix. */
PEREGRINE_CODE peregrine_table_create(peregrine_engine *engine, const char *name,
                                      size_t name_length, const peregrine_definition *definition,
                                      uint64_t auto_increment, uint32_t locking,
                                      uint32_t of_one_session);

/* `session`: whose transaction may have used the table, and goes on without it; or NULL. */
PEREGRINE_CODE peregrine_table_drop(peregrine_engine *engine, peregrine_session *session,
                                    const char *name, size_t name_length);

/* `as_new`: the table is a copy that takes the place of another one; snapshots older than now are
   not of it. */
PEREGRINE_CODE peregrine_table_rename(peregrine_engine *engine, const char *from,
                                      size_t from_length, const char *to, size_t to_length,
                                      uint32_t as_new);

/* Drops every table whose name starts with `prefix`. */
PEREGRINE_CODE peregrine_tables_drop(peregrine_engine *engine, const char *prefix,
                                     size_t prefix_length);

/* Opens a table under the server's definition of it. PEREGRINE_DEFINITION when they differ; names,
   and the order of keys other than the clustered one, may. */
PEREGRINE_CODE peregrine_table_open(peregrine_engine *engine, const char *name, size_t name_length,
                                    const peregrine_definition *definition, peregrine_table **out);
void peregrine_table_close(peregrine_table *table);

/* Removes all rows, sets the auto-increment counter to 1. No other handle may be open. */
PEREGRINE_CODE peregrine_table_truncate(peregrine_table *table);

/* The same of a table that can't be opened, since it is damaged. PEREGRINE_BUSY as below. */
PEREGRINE_CODE peregrine_table_truncate_damaged(peregrine_engine *engine, const char *name,
                                                size_t name_length);

/* PEREGRINE_BUSY where a prepared transaction that waits for its decision has used the table, or a
   partition of the table that this one is a partition of. */
PEREGRINE_CODE peregrine_table_undecided(peregrine_table *table);

typedef struct peregrine_table_stats {
  uint64_t rows;
  uint64_t data_bytes;
  uint64_t index_bytes;
  uint64_t next_auto_increment;
  /* Not 0: pages can't be read, so that some bytes are guessed. Said once for each table, with the
     reason in peregrine_error_message. */
  uint64_t told_guessed;
} peregrine_table_stats;

PEREGRINE_CODE peregrine_table_statistics(peregrine_table *table, peregrine_table_stats *out);

/* About how many rows have equal values in the first n + 1 parts of a key: `out[n]`, for
   `count` values of n. */
PEREGRINE_CODE peregrine_table_rows_per_key(peregrine_table *table, uint32_t key, uint64_t *out,
                                            uint32_t count);

/* Samples the table's indexes anew. */
PEREGRINE_CODE peregrine_table_analyze(peregrine_table *table);

/* Takes note of something that is wrong in a table: a text in UTF-8, not NUL-terminated. */
typedef void (*peregrine_problem)(void *context, const char *text, size_t length);

/* Verifies a table's trees, rows and index entries as of now, while others use it. `interrupted` is
   asked at every page whether to stop (not 0: PEREGRINE_INTERRUPTED); `problem` is called for
   each problem at the end. PEREGRINE_END: there were some. */
PEREGRINE_CODE peregrine_table_check(peregrine_table *table, int (*interrupted)(void *context),
                                     peregrine_problem problem, void *context);

/* Takes `count` values of the form offset + k * increment, none above `max`. */
PEREGRINE_CODE peregrine_table_reserve_auto_increment(peregrine_table *table, uint64_t count,
                                                      uint64_t increment, uint64_t offset,
                                                      uint64_t max, uint64_t *first);
/* Gives back values that were reserved and not used, where nobody has reserved more since: the
   counter goes from `reserved_end` back to `next`. */
PEREGRINE_CODE peregrine_table_return_auto_increment(peregrine_table *table, uint64_t next,
                                                     uint64_t reserved_end);
PEREGRINE_CODE peregrine_table_raise_auto_increment(peregrine_table *table, uint64_t next);

/* As peregrine_table_raise_auto_increment, durable when it returns. */
PEREGRINE_CODE peregrine_table_set_auto_increment(peregrine_table *table, uint64_t next);

/* Changes what a conflict does, from the next one on. */
PEREGRINE_CODE peregrine_table_set_locking(peregrine_table *table, uint32_t locking);

/* Gives the engine's columns and keys the names and SQL types of a definition that is the table's
   else: PEREGRINE_DEFINITION where it is not. Inspections, checks and dumps have them. */
PEREGRINE_CODE peregrine_table_set_description(peregrine_table *table,
                                               const peregrine_definition *definition);

/* The greatest length of a row's position in bytes, ending length included. */
uint32_t peregrine_table_position_length(const peregrine_table *table);

/* ---- Sessions: one per connection, with at most one transaction at a time ------------------ */

typedef enum peregrine_isolation {
  PEREGRINE_READ_COMMITTED = 0,
  PEREGRINE_REPEATABLE_READ = 1,
  PEREGRINE_SERIALIZABLE = 2
} peregrine_isolation;

/* `number` is the session's in peregrine_inspect. */
PEREGRINE_CODE peregrine_session_new(peregrine_engine *engine, uint64_t number,
                                     peregrine_session **out);

/* Rolls back what is open, and frees the session. A prepared transaction goes on without it. */
void peregrine_session_free(peregrine_session *session);

/* Begins a statement, and a transaction where none is open. `now_us`: the time, in microseconds
   since 1970, for peregrine_inspect. `keeps_log`: whether the log is kept for the transaction however
   long (peregrine_engine_set_longest_kept_log). */
PEREGRINE_CODE peregrine_statement_start(peregrine_session *session, uint32_t isolation,
                                         uint32_t lock_wait_seconds, uint64_t now_us,
                                         int32_t keeps_log);

/* Ends the statement; its changes stay part of the transaction. Fails where that can only be rolled back
   (PEREGRINE_DEADLOCK and PEREGRINE_CONFLICT), whoever has dropped the error that said so. */
PEREGRINE_CODE peregrine_statement_end(peregrine_session *session);

/* Undoes what the statement changed; where the transaction can only be rolled back, that does it. What a bulk
   insert has deferred of the statement's rows is forgotten with them. */
PEREGRINE_CODE peregrine_statement_rollback(peregrine_session *session);

/* Commits, or finishes what peregrine_session_commit_ordered has begun; then it returns, with `wait`
   0, before the commit is durable. After an error a prepared transaction may still be prepared; it goes
   on without the session. */
PEREGRINE_CODE peregrine_session_commit(peregrine_session *session, uint32_t wait);
PEREGRINE_CODE peregrine_session_rollback(peregrine_session *session);

/* Savepoints; `*out` is the number for the other two. A rollback releases those that were set later; a release
   with `later` not 0 does so, too. Those that are set in a statement, by functions, go with it. */
PEREGRINE_CODE peregrine_savepoint_set(peregrine_session *session, uint64_t *out);
PEREGRINE_CODE peregrine_savepoint_rollback(peregrine_session *session, uint64_t savepoint);
PEREGRINE_CODE peregrine_savepoint_release(peregrine_session *session, uint64_t savepoint,
                                           uint32_t later);

/* Takes the transaction's snapshot now. */
PEREGRINE_CODE peregrine_session_snapshot(peregrine_session *session, uint32_t isolation,
                                          uint32_t lock_wait_seconds, uint64_t now_us);

/* Locks a table's auto-increment counter against other sessions that lock it, until it is unlocked
   or the transaction ends: the values reserved meanwhile then follow one another. */
PEREGRINE_CODE peregrine_auto_increment_lock(peregrine_session *session, peregrine_table *table);
PEREGRINE_CODE peregrine_auto_increment_unlock(peregrine_session *session, peregrine_table *table);

/* Interrupts the session's lock waits until its next statement. Any thread may call it. */
void peregrine_session_kill(peregrine_session *session);

/* ---- Handles: reading and changing rows of one table -------------------------------------- */

typedef enum peregrine_lock {
  PEREGRINE_LOCK_NONE = 0, /* snapshot read */
  PEREGRINE_LOCK_SHARED = 1,
  PEREGRINE_LOCK_EXCLUSIVE = 2,
  PEREGRINE_SKIP_LOCKED = 4, /* beside one of the two: rows locked by others are passed over */
  PEREGRINE_NEWEST = 8       /* beside EXCLUSIVE: the newest rows, whatever the snapshot is, and those
                                that others write are waited for; for checks of all rows */
} peregrine_lock;

/* Where a search goes, from a key image k. Rows "start with k" when they equal it in the parts
   that it has. */
typedef enum peregrine_seek {
  PEREGRINE_EXACT = 0,        /* the first row that starts with k */
  PEREGRINE_AT_OR_AFTER = 1,  /* … or the first greater one */
  PEREGRINE_AFTER = 2,        /* the first greater than all that start with k */
  PEREGRINE_AT_OR_BEFORE = 3, /* the last that starts with k, or the last smaller one */
  PEREGRINE_BEFORE = 4,       /* the last smaller than all that start with k */
  PEREGRINE_FIRST = 5,
  PEREGRINE_LAST = 6,
  PEREGRINE_EXACT_LAST = 7    /* the last row that starts with k */
} peregrine_seek;

/* How rows are read: the record buffer that they go to, and the columns wanted, as the server's
   bitmap (bit n % 64 of word n / 64). Only these columns are written to the record. */
typedef struct peregrine_target {
  uint8_t *record;
  const uint64_t *columns;
} peregrine_target;

PEREGRINE_CODE peregrine_handle_open(peregrine_table *table, peregrine_handle **out);
void peregrine_handle_close(peregrine_handle *handle);

/* Uses the server's key `key` (UINT32_MAX: the order of the table) for the searches that follow.
   Rows are not fetched where the key has the columns wanted. */
PEREGRINE_CODE peregrine_use_key(peregrine_handle *handle, uint32_t key, uint32_t lock);

/* Whether entries of the server's key `key` give back the values of all its columns and of those of
   the primary key: not those of parts that are prefixes or descending, nor floating-point numbers,
   nor words of the primary key, of which an entry has the sort key. */
PEREGRINE_CODE peregrine_key_gives_back(peregrine_handle *handle, uint32_t key);

/* Decides from the columns of a key, written to the record of a target, what is done with an index
   entry: 0 its row is fetched, 1 it is passed over, 2 the scan ends, 3 the statement was killed. */
typedef int (*peregrine_check)(void *context);

/* Uses a condition for the searches that follow in the present key, which gives its columns back;
   `check` NULL takes it back.
   Rows are then fetched in any case, and only where the condition holds. */
PEREGRINE_CODE peregrine_set_condition(peregrine_handle *handle, peregrine_check check,
                                       void *context, peregrine_target target);

/* Ends forward scans after the rows that start with (`inclusive`) or before those that are not
   less than a key image; `key` NULL takes the end back. */
PEREGRINE_CODE peregrine_set_end(peregrine_handle *handle, const uint8_t *key, uint64_t key_parts,
                                 uint32_t inclusive);

/* Keeps out others who guard the same values of a key, or of its first parts, until the session's
   transaction has inserted or updated a row, or has ended. Before a search with PEREGRINE_NEWEST for
   rows that the caller's own rule keeps out. */
PEREGRINE_CODE peregrine_guard(peregrine_handle *handle, peregrine_session *session,
                               const uint8_t *key, uint64_t key_parts);

/* `key_parts`: bit n set: part n is in the key image; parts from the first on. */
PEREGRINE_CODE peregrine_search(peregrine_handle *handle, peregrine_session *session,
                                const uint8_t *key, uint64_t key_parts, uint32_t seek,
                                peregrine_target target);
PEREGRINE_CODE peregrine_next(peregrine_handle *handle, peregrine_session *session,
                              peregrine_target target);
PEREGRINE_CODE peregrine_previous(peregrine_handle *handle, peregrine_session *session,
                                  peregrine_target target);

/* The next row if it starts with the key image of the last search. */
PEREGRINE_CODE peregrine_next_same(peregrine_handle *handle, peregrine_session *session,
                                   peregrine_target target);

/* The next rows, at most `most` of them, each `stride` bytes behind the one before it, from
   target.record on; `same`: only those that start with the key image of the last search. `rows`
   tells how many there were. For targets without blobs. */
PEREGRINE_CODE peregrine_next_rows(peregrine_handle *handle, peregrine_session *session,
                                   peregrine_target target, size_t stride, size_t most,
                                   uint32_t same, size_t *rows);

/* Tuning constants of the plug-in, which stand with the engine's (docs/knobs.md): bytes of the records that are
   filled in one call, rows of a join's outer table that are read before those of the inner one (at most
   PEREGRINE_MOST_KEYS), and rows of an INSERT from which on entries are deferred. */
size_t peregrine_row_batch_bytes(void);
size_t peregrine_join_batch_rows(void);
uint64_t peregrine_bulk_insert_rows(void);

/* Keys of one call of peregrine_multi_get, at most. */
#define PEREGRINE_MOST_KEYS 512

/* Reads the rows of many keys together, by the key in use, which must be the clustered one. `keys`:
   `count` key images of all its parts, each of `key_length` bytes. `wanted`: a byte for each; where
   it is not 0 on the way in, the row is read into the record `n * stride` bytes behind
   target.record, and 0 on the way out says that there is none. For targets without blobs. */
PEREGRINE_CODE peregrine_multi_get(peregrine_handle *handle, peregrine_session *session,
                                   const uint8_t *keys, size_t key_length, size_t count,
                                   peregrine_target target, size_t stride, uint8_t *wanted);

/* The row last read is not what was looked for: under READ COMMITTED its lock is given back, unless
   the transaction held the row before that read, or has locked or written anything since. */
PEREGRINE_CODE peregrine_unlock_row(peregrine_handle *handle, peregrine_session *session);

/* From the next row on, a scan or a range of the clustered key that locks does not wait, under READ
   COMMITTED, for a row that another transaction has locked: it gives what was committed of it last,
   without a lock. After such a row peregrine_was_semi_consistent is 1, and the next step waits for
   the same row, and gives the newest there is; or, after peregrine_unlock_row, goes on. 0 takes that
   back, as peregrine_handle_reset does. */
int peregrine_try_semi_consistent(peregrine_handle *handle, uint32_t tries);
int peregrine_was_semi_consistent(peregrine_handle *handle);

/* Writes the position of the row last read, peregrine_table_position_length() bytes. Positions
   of a table compare by memcmp in the order of the clustered key. */
PEREGRINE_CODE peregrine_position(peregrine_handle *handle, uint8_t *position);

/* Writes the position of the row that stood in the way at this session's last
   PEREGRINE_DUPLICATE. */
PEREGRINE_CODE peregrine_duplicate_position(peregrine_handle *handle, peregrine_session *session,
                                            uint8_t *position);

/* Reads the row at a position; later updates and deletes through the handle mean that row. */
PEREGRINE_CODE peregrine_read_position(peregrine_handle *handle, peregrine_session *session,
                                       const uint8_t *position, uint32_t lock,
                                       peregrine_target target);

/* Inserts a row. `lock`, a peregrine_lock: how a row in the way is locked before PEREGRINE_DUPLICATE
   is given, for who is about to change it instead. */
PEREGRINE_CODE peregrine_insert(peregrine_handle *handle, peregrine_session *session,
                                const uint8_t *record, uint32_t lock);

/* Changes the row last read. Columns outside `changed` (a bitmap) whose bytes are the same in
   both records keep their value. PEREGRINE_END: the row had all the values already. */
PEREGRINE_CODE peregrine_update(peregrine_handle *handle, peregrine_session *session,
                                const uint8_t *old_record, const uint8_t *new_record,
                                const uint64_t *changed);

/* Deletes the row last read. */
PEREGRINE_CODE peregrine_delete(peregrine_handle *handle, peregrine_session *session);

/* Begins a bulk insert into the handle's table: index entries are deferred and put in in the order of
   their keys, at its end, or before whatever needs them. */
PEREGRINE_CODE peregrine_begin_bulk_insert(peregrine_handle *handle, peregrine_session *session);

/* Ends the transaction's bulk inserts. To be left out where the statement has failed: it would put in what its
   rollback undoes, and wait for it. What is deferred then goes in before whatever needs it, or goes with the
   statement. Fails as peregrine_insert does, but for duplicates. */
PEREGRINE_CODE peregrine_end_bulk_insert(peregrine_handle *handle, peregrine_session *session);

/* From here on rows that are inserted are part of a table that is just being made, and that one session
   has for itself: a rollback leaves them there. Until peregrine_end_fill. */
PEREGRINE_CODE peregrine_begin_fill(peregrine_handle *handle, peregrine_session *session);
PEREGRINE_CODE peregrine_end_fill(peregrine_handle *handle, peregrine_session *session);

/* About how many rows lie between two key images; NULL is open. `*_inclusive`: rows that start
   with the image are inside. */
PEREGRINE_CODE peregrine_estimate_range(peregrine_handle *handle, uint32_t key, const uint8_t *low,
                                        uint64_t low_parts, uint32_t low_inclusive,
                                        const uint8_t *high, uint64_t high_parts,
                                        uint32_t high_inclusive, uint64_t *out);

/* Forgets the position and gives memory for large values back. */
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
