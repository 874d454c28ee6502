/* Aggregates in the C interface of Peregrine. The engine computes them and gives no row to the
   caller. The rules of peregrine.h for errors and threads hold here too. */

#ifndef PEREGRINE_AGGREGATE_H
#define PEREGRINE_AGGREGATE_H

#include "peregrine.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum peregrine_aggregate_kind {
  PEREGRINE_AGGREGATE_ROWS = 0,  /* the number of rows; the column is ignored */
  PEREGRINE_AGGREGATE_COUNT = 1, /* the number of rows in which the column is not NULL */
  PEREGRINE_AGGREGATE_SUM = 2,   /* the sum of a column of kind SIGNED or UNSIGNED */
  PEREGRINE_AGGREGATE_MIN = 3,   /* the least stored value of such a column, or of one of kind FIXED */
  PEREGRINE_AGGREGATE_MAX = 4    /* of up to 8 bytes; and the greatest. An ENUM counts by number */
} peregrine_aggregate_kind;

typedef struct peregrine_aggregate {
  uint32_t kind; /* peregrine_aggregate_kind */
  uint32_t column;
} peregrine_aggregate;

/* Returns PEREGRINE_OK when peregrine_aggregate_range takes all of these with the key and lock in
   use (peregrine_use_key): the key has their columns, these are of the right kinds, the lock is
   PEREGRINE_LOCK_NONE, and no condition is set. Otherwise returns PEREGRINE_END. */
PEREGRINE_CODE peregrine_can_aggregate(peregrine_handle *handle,
                                       const peregrine_aggregate *aggregates, size_t count);

typedef enum peregrine_operator {
  PEREGRINE_TEST_EQUAL = 0,
  PEREGRINE_TEST_NOT_EQUAL = 1,
  PEREGRINE_TEST_LESS = 2,
  PEREGRINE_TEST_LESS_OR_EQUAL = 3,
  PEREGRINE_TEST_GREATER = 4,
  PEREGRINE_TEST_GREATER_OR_EQUAL = 5,
  PEREGRINE_TEST_IS_NULL = 6, /* this and the next: for columns of any kind */
  PEREGRINE_TEST_IS_NOT_NULL = 7
} peregrine_operator;

/* A test of a row: its column compared with a value. No comparison holds for NULL. */
typedef struct peregrine_test {
  uint32_t column;
  uint32_t op;          /* peregrine_operator */
  const uint8_t *value; /* for comparisons: `length` bytes, in the form of the column in a record */
} peregrine_test;

/* Restricts the next peregrine_aggregate_range to rows for which all tests hold; stored values are
   compared. Returns PEREGRINE_END, and sets nothing, when the key in use can't decide the tests: it
   lacks a column, or the kind of a compared column is not one of PEREGRINE_AGGREGATE_MIN. */
PEREGRINE_CODE peregrine_set_tests(peregrine_handle *handle, const peregrine_test *tests,
                                   size_t count);

/* Groups the rows of the next peregrine_aggregate_range by a column of integers of at most two
   bytes. Returns PEREGRINE_END, and sets nothing, when the key in use lacks the column, or it is of
   another kind. */
PEREGRINE_CODE peregrine_set_group(peregrine_handle *handle, uint32_t column);

/* Goes to the next group of the last peregrine_aggregate_range, in ascending order, NULL first, and
   writes its value into the record. The next two functions then return the results of this group.
   Returns PEREGRINE_END when no group is left. */
PEREGRINE_CODE peregrine_next_group(peregrine_handle *handle, uint8_t *record);

/* Computes aggregates over the rows from a key image on, up to the end that peregrine_set_end has
   set, or to the last row. `start` NULL: from the first row; `start_inclusive`: rows that start
   with the image count. Returns PEREGRINE_INTERRUPTED as soon as the session is killed. For grouped
   rows, peregrine_next_group must follow. Forgets the row last read. */
PEREGRINE_CODE peregrine_aggregate_range(peregrine_handle *handle, peregrine_session *session,
                                         const uint8_t *start, uint64_t start_parts,
                                         uint32_t start_inclusive,
                                         const peregrine_aggregate *aggregates, size_t count);

/* The result of aggregate number `n` of the last peregrine_aggregate_range, for ROWS, COUNT and
   SUM: high * 2^64 + low. `values`: for SUM, the number of values in the sum; for ROWS and COUNT,
   the result itself. */
PEREGRINE_CODE peregrine_aggregate_number(peregrine_handle *handle, size_t n, int64_t *high,
                                          uint64_t *low, uint64_t *values);

/* The result of MIN and MAX: writes the value into its column of a record, as reading a row would.
   Returns PEREGRINE_END when there is none; the column is then set to NULL, if it can be. */
PEREGRINE_CODE peregrine_aggregate_value(peregrine_handle *handle, size_t n, uint8_t *record);

#ifdef __cplusplus
}

static_assert(sizeof(peregrine_aggregate) == 8, "as in mariadb/capi/src/c_types.rs");
static_assert(sizeof(peregrine_test) == 16, "as in mariadb/capi/src/c_types.rs");
#endif

#endif /* PEREGRINE_AGGREGATE_H */
