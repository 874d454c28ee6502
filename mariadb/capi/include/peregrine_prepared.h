/* Two-phase commit in the C interface of Peregrine. The rules of peregrine.h for errors and threads
   hold here too. */

#ifndef PEREGRINE_PREPARED_H
#define PEREGRINE_PREPARED_H

#include "peregrine.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The coordinator's name for a transaction (XID). Functions that look up a transaction by name
   ignore `format`. */
typedef struct peregrine_xid {
  int64_t format;
  uint32_t global_length; /* at most 64 */
  uint32_t branch_length; /* at most 64 */
  uint8_t bytes[128];     /* the global part, then the branch */
} peregrine_xid;

/* Prepares the session's transaction. It then survives a crash until the session commits it or
   rolls it back, or a caller does so by its name. With `sync` 0 it may not survive a loss of power.
   After an error the caller must roll it back. */
PEREGRINE_CODE peregrine_session_prepare(peregrine_session *session, const peregrine_xid *name,
                                         uint32_t sync);

/* Detaches the session from its prepared transaction, which is ended by its name from then on. The
   session's next statement begins another transaction. */
PEREGRINE_CODE peregrine_session_detach(peregrine_session *session);

/* The first half of a commit: makes it visible to others. Waits for nothing. Any thread may call it
   while the session's own thread does not use the session. peregrine_session_commit reports its
   errors. */
PEREGRINE_CODE peregrine_session_commit_ordered(peregrine_session *session);

/* The names of prepared transactions without a session, sorted, from the first one after `after` on
   (NULL: all), at most `capacity`. */
PEREGRINE_CODE peregrine_engine_prepared(peregrine_engine *engine, const peregrine_xid *after,
                                         peregrine_xid *out, size_t capacity, size_t *count);

/* Ends a prepared transaction by its name. While a session has the transaction, waits for it as
   long as for a row, and then returns PEREGRINE_BUSY. Returns PEREGRINE_END when there is no such
   transaction. After an error it is still prepared. */
PEREGRINE_CODE peregrine_engine_commit_prepared(peregrine_engine *engine,
                                                const peregrine_xid *name);
PEREGRINE_CODE peregrine_engine_rollback_prepared(peregrine_engine *engine,
                                                  const peregrine_xid *name);

#ifdef __cplusplus
}

static_assert(sizeof(peregrine_xid) == 144, "as in mariadb/capi/src/c_types.rs");
#endif

#endif /* PEREGRINE_PREPARED_H */
