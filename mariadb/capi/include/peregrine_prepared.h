/* Two-phase commit in the C interface of Peregrine. As in peregrine.h, whose rules for errors and
   threads hold here too. */

#ifndef PEREGRINE_PREPARED_H
#define PEREGRINE_PREPARED_H

#include "peregrine.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The coordinator's name for a transaction (XID). Two names that differ in `format` alone are one
   where a transaction is looked for. */
typedef struct peregrine_xid {
  int64_t format;
  uint32_t global_length; /* at most 64 */
  uint32_t branch_length; /* at most 64 */
  uint8_t bytes[128];     /* the global part, then the branch */
} peregrine_xid;

/* Prepares the session's transaction: it survives whatever happens until it is committed or rolled
   back, by the session or by its name; with `sync` 0 the loss of power excepted. After an error it is
   to be rolled back. */
PEREGRINE_CODE peregrine_session_prepare(peregrine_session *session, const peregrine_xid *name,
                                         uint32_t sync);

/* The session gives its prepared transaction up, which is ended by its name from then on. The session
   goes on with another one. */
PEREGRINE_CODE peregrine_session_detach(peregrine_session *session);

/* The first half of a commit: others see it. Waits for nothing; any thread may call it while the
   session's own does not use the session. Errors are peregrine_session_commit's. */
PEREGRINE_CODE peregrine_session_commit_ordered(peregrine_session *session);

/* The names of prepared transactions without a session, sorted, those behind `after` (NULL: all),
   at most `capacity`. */
PEREGRINE_CODE peregrine_engine_prepared(peregrine_engine *engine, const peregrine_xid *after,
                                         peregrine_xid *out, size_t capacity, size_t *count);

/* Ends a prepared transaction by its name. Where a session has it, waits as long as for a row until that
   gives it up (PEREGRINE_BUSY: it does not). PEREGRINE_END: there is none. After an error it is still
   prepared. */
PEREGRINE_CODE peregrine_engine_commit_prepared(peregrine_engine *engine,
                                                const peregrine_xid *name);
PEREGRINE_CODE peregrine_engine_rollback_prepared(peregrine_engine *engine,
                                                  const peregrine_xid *name);

#ifdef __cplusplus
}

static_assert(sizeof(peregrine_xid) == 144, "as in mariadb/capi/src/c_types.rs");
#endif

#endif /* PEREGRINE_PREPARED_H */
