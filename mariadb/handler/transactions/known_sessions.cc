/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see mariadb/handler/LICENSE). */

#include "transactions/known_sessions.h"
#include "monitoring/information_schema.h"
#include "transactions/transactions.h"

#include <mutex>
#include <new>
#include <shared_mutex>
#include <unordered_map>

/* Functions of the server (sql_class.cc) that no header declares. */
extern "C" int thd_need_wait_reports(const MYSQL_THD thd);
extern "C" int thd_rpl_deadlock_check(MYSQL_THD thd, MYSQL_THD other_thd);

namespace peregrine {

/* A thread that looks up a session holds the mutex as long as it uses the session's THD: a prepared
   transaction outlives its connection, so the connection may end meanwhile. */
static std::shared_mutex mutex;

/* A thread has several sessions while the server, in the middle of a statement, reads its own
   tables in a nested transaction. */
struct Known {
  THD *thd = nullptr;
  uint sessions = 0;
};

static std::unordered_map<uint64_t, Known> threads;

bool know_session(THD *thd) {
  try {
    std::unique_lock<std::shared_mutex> lock(mutex);
    Known &known = threads[thd_get_thread_id(thd)];
    known.thd = thd;
    known.sessions++;
    return true;
  } catch (const std::bad_alloc &) {
    return false;
  }
}

void forget_session(THD *thd) {
  std::unique_lock<std::shared_mutex> lock(mutex);
  auto found = threads.find(thd_get_thread_id(thd));
  if (found != threads.end() && --found->second.sessions == 0) threads.erase(found);
}

static THD *thread_of(uint64_t session) {
  auto found = threads.find(session);
  return found == threads.end() ? nullptr : found->second.thd;
}

/* Passes a KILL on to the thread's present session. A KILL reaches the session that the thread has
   at that moment, which may be that of a nested transaction; the session that continues afterwards
   learns of the kill here. (ABORT_QUERY is not a KILL: the statement has examined as many rows as
   it may.) */
static void pass_kill_on(THD *thd) {
  if (likely(thd->killed == NOT_KILLED || thd->killed == ABORT_QUERY)) return;
  const Connection *connection = existing_connection(thd);
  if (connection) peregrine_session_kill(connection->session);
}

static uint32_t told_waits(uint64_t) {
  THD *thd = current_thd;
  if (!thd) return PEREGRINE_TOLD_NONE;
  pass_kill_on(thd);
  if (!thd_need_wait_reports(thd)) return PEREGRINE_TOLD_NONE;
  return thd->rgi_slave ? PEREGRINE_TOLD_IN_QUEUE : PEREGRINE_TOLD_FOR_HOLDERS;
}

static int waits_for(uint64_t waiter, uint64_t holder) {
  std::shared_lock<std::shared_mutex> lock(mutex);
  THD *waiting = thread_of(waiter);
  THD *holding = thread_of(holder);
  return waiting && holding && thd_rpl_deadlock_check(waiting, holding);
}

/* A function or a trigger has statements of its own inside the calling statement, and sets limits
   for them. So the limit is read when it is needed, as in InnoDB. */
static int waiting(uint64_t, uint32_t *seconds) {
  THD *thd = current_thd;
  if (!thd) return false;
  *seconds = lock_wait_seconds(thd);
  return applies_events(thd);
}

const peregrine_sessions known_sessions = {peregrine_plugin_statement, told_waits, waits_for,
                                           waiting};

}  // namespace peregrine
