/* Aggregates in the C interface of Peregrine: worked out in the engine, without a row leaving it. As in
   peregrine.h, whose rules for errors and threads hold here too. */

#ifndef PEREGRINE_AGGREGATE_H
#define PEREGRINE_AGGREGATE_H

#include "peregrine.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum peregrine_aggregate_kind {
  PEREGRINE_AGGREGATE_ROWS = 0,  /* how many rows there are; the column does not count */
  PEREGRINE_AGGREGATE_COUNT = 1, /* in how many the column is not NULL */
  PEREGRINE_AGGREGATE_SUM = 2,   /* of a column of kind SIGNED or UNSIGNED */
  PEREGRINE_AGGREGATE_MIN = 3,   /* of such a column, or one of kind FIXED with up to 8 bytes: the */
  PEREGRINE_AGGREGATE_MAX = 4    /* least and the greatest as stored, so an ENUM's by its number */
} peregrine_aggregate_kind;

typedef struct peregrine_aggregate {
  uint32_t kind; /* peregrine_aggregate_kind */
  uint32_t column;
} peregrine_aggregate;

/* Whether peregrine_aggregate_range takes all of these, with the key and the lock that are in use
   (peregrine_use_key): the key has their columns, these are of the right kinds, nothing is to be
   locked, and no condition is set. PEREGRINE_END: no. */
PEREGRINE_CODE peregrine_can_aggregate(peregrine_handle *handle,
                                       const peregrine_aggregate *aggregates, size_t count);

typedef enum peregrine_operator {
  PEREGRINE_TEST_EQUAL = 0,
  PEREGRINE_TEST_NOT_EQUAL = 1,
  PEREGRINE_TEST_LESS = 2,
  PEREGRINE_TEST_LESS_OR_EQUAL = 3,
  PEREGRINE_TEST_GREATER = 4,
  PEREGRINE_TEST_GREATER_OR_EQUAL = 5,
  PEREGRINE_TEST_IS_NULL = 6, /* and the next: of columns of any kind */
  PEREGRINE_TEST_IS_NOT_NULL = 7
} peregrine_operator;

/* What must hold of a row: its column compared with a value. No comparison holds for NULL. */
typedef struct peregrine_test {
  uint32_t column;
  uint32_t op;          /* peregrine_operator */
  const uint8_t *value; /* comparisons: `length` bytes, as the column has them in a record */
} peregrine_test;

/* Lets the next peregrine_aggregate_range take in only those rows for which all tests hold, as stored
   values compare. PEREGRINE_END: they can't be decided with the key in use, for it lacks a column, or a
   comparison is of another column than PEREGRINE_AGGREGATE_MIN takes; nothing is set then. */
PEREGRINE_CODE peregrine_set_tests(peregrine_handle *handle, const peregrine_test *tests,
                                   size_t count);

/* Lets the next peregrine_aggregate_range group rows by a column of integers of at most two bytes.
   PEREGRINE_END: the key in use lacks it, or it is of another kind; nothing is set then. */
PEREGRINE_CODE peregrine_set_group(peregrine_handle *handle, uint32_t column);

/* Goes to the next group of the last peregrine_aggregate_range, in ascending order, NULL first: writes its
   value into the record; the next two calls then tell of its rows. PEREGRINE_END: there is none left. */
PEREGRINE_CODE peregrine_next_group(peregrine_handle *handle, uint8_t *record);

/* Works out aggregates over the rows from a key image on (`start` NULL: the first;
   `start_inclusive`: those that start with the image are within) to the end that
   peregrine_set_end has set; without one, to the last. PEREGRINE_INTERRUPTED as soon as the session is
   killed. Where rows are grouped, peregrine_next_group comes next. Forgets the row last read. */
PEREGRINE_CODE peregrine_aggregate_range(peregrine_handle *handle, peregrine_session *session,
                                         const uint8_t *start, uint64_t start_parts,
                                         uint32_t start_inclusive,
                                         const peregrine_aggregate *aggregates, size_t count);

/* What the aggregate number `n` of the last peregrine_aggregate_range came to. ROWS, COUNT and SUM:
   high * 2^64 + low, and of how many values that is the sum (ROWS, COUNT: the number itself). */
PEREGRINE_CODE peregrine_aggregate_number(peregrine_handle *handle, size_t n, int64_t *high,
                                          uint64_t *low, uint64_t *values);

/* MIN and MAX: writes the value into its column of a record, as reading a row would. PEREGRINE_END:
   there is none; the column is NULL then, if it can be. */
PEREGRINE_CODE peregrine_aggregate_value(peregrine_handle *handle, size_t n, uint8_t *record);

#ifdef __cplusplus
}

static_assert(sizeof(peregrine_aggregate) == 8, "as in mariadb/capi/src/c_types.rs");
static_assert(sizeof(peregrine_test) == 16, "as in mariadb/capi/src/c_types.rs");
#endif

#endif /* PEREGRINE_AGGREGATE_H */
