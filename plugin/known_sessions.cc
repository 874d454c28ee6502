/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see LICENSE-GPL). */

#include "known_sessions.h"
#include "information_schema.h"

#include <mutex>
#include <new>
#include <shared_mutex>
#include <unordered_map>

/* Of the server (sql_class.cc), which no header declares. */
extern "C" int thd_need_wait_reports(const MYSQL_THD thd);
extern "C" int thd_rpl_deadlock_check(MYSQL_THD thd, MYSQL_THD other_thd);

namespace peregrine {

/* Held by who looks up a session as long as it uses its thread: a prepared transaction outlives its
   connection. */
static std::shared_mutex mutex;
static std::unordered_map<uint64_t, THD *> threads;

bool know_session(THD *thd) {
  try {
    std::unique_lock<std::shared_mutex> lock(mutex);
    threads[thd_get_thread_id(thd)] = thd;
    return true;
  } catch (const std::bad_alloc &) {
    return false;
  }
}

void forget_session(THD *thd) {
  std::unique_lock<std::shared_mutex> lock(mutex);
  threads.erase(thd_get_thread_id(thd));
}

static THD *thread_of(uint64_t session) {
  auto found = threads.find(session);
  return found == threads.end() ? nullptr : found->second;
}

static uint32_t told_waits(uint64_t) {
  THD *thd = current_thd;
  if (!thd || !thd_need_wait_reports(thd)) return PEREGRINE_TOLD_NONE;
  return thd->rgi_slave ? PEREGRINE_TOLD_IN_QUEUE : PEREGRINE_TOLD_FOR_HOLDERS;
}

static int waits_for(uint64_t waiter, uint64_t holder) {
  std::shared_lock<std::shared_mutex> lock(mutex);
  THD *waiting = thread_of(waiter);
  THD *holding = thread_of(holder);
  return waiting && holding && thd_rpl_deadlock_check(waiting, holding);
}

const peregrine_sessions known_sessions = {peregrine_plugin_statement, told_waits, waits_for};

}  // namespace peregrine
