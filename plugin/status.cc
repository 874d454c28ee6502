/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see LICENSE-GPL). */

/* SHOW ENGINE PEREGRINE STATUS and SHOW STATUS LIKE 'peregrine_%'. */

#include "engine.h"

namespace peregrine {

struct CounterName {
  const char *name;
  uint64_t peregrine_counters::*counter;
};

/* In the order in which SHOW ENGINE PEREGRINE STATUS prints them. */
static const CounterName kCounters[] = {
    {"Buffer pool pages in use", &peregrine_counters::pool_pages_used},
    {"Buffer pool pages in all", &peregrine_counters::pool_pages_total},
    {"Buffer pool pages dirty", &peregrine_counters::pool_pages_dirty},
    {"Pages read", &peregrine_counters::pages_read},
    {"Pages written", &peregrine_counters::pages_written},
    {"Pages evicted", &peregrine_counters::pages_evicted},
    {"Data file bytes", &peregrine_counters::file_bytes},
    {"Log bytes appended", &peregrine_counters::log_bytes},
    {"Log syncs", &peregrine_counters::log_syncs},
    {"Checkpoints", &peregrine_counters::checkpoints},
    {"Commits of changes", &peregrine_counters::commits},
    {"Rollbacks of changes", &peregrine_counters::rollbacks},
    {"Transactions to purge", &peregrine_counters::purge_backlog},
    {"Rows read", &peregrine_counters::rows_read},
    {"Rows inserted", &peregrine_counters::rows_inserted},
    {"Rows updated", &peregrine_counters::rows_updated},
    {"Rows deleted", &peregrine_counters::rows_deleted},
    {"Row lock waits", &peregrine_counters::lock_waits},
    {"Deadlocks", &peregrine_counters::deadlocks},
};

bool show_engine_status(handlerton *, THD *thd, stat_print_fn *print, ha_stat_type type) {
  if (type != HA_ENGINE_STATUS) return false;
  peregrine_counters now{};
  StringBuffer<2048> text;
  if (peregrine_engine_counters(engine, &now) != PEREGRINE_OK) {
    text.append(STRING_WITH_LEN("The engine has stopped; restart the server to recover.\n"));
  }
  for (const CounterName &counter : kCounters) {
    char line[128];
    int length = snprintf(line, sizeof line, "%-28s %20llu\n", counter.name,
                          static_cast<ulonglong>(now.*counter.counter));
    text.append(line, static_cast<size_t>(length));
  }
  return print(thd, STRING_WITH_LEN("PEREGRINE"), STRING_WITH_LEN(""), text.ptr(), text.length());
}

/* Filled anew for each SHOW STATUS; the server reads the values under a lock of its own. */
static peregrine_counters shown;

#define PEREGRINE_COUNTER(name, member) \
  { name, (char *)&shown.member, SHOW_LONGLONG }

static st_mysql_show_var counters[] = {
    PEREGRINE_COUNTER("buffer_pool_pages_dirty", pool_pages_dirty),
    PEREGRINE_COUNTER("buffer_pool_pages_total", pool_pages_total),
    PEREGRINE_COUNTER("buffer_pool_pages_used", pool_pages_used),
    PEREGRINE_COUNTER("checkpoints", checkpoints),
    PEREGRINE_COUNTER("commits", commits),
    PEREGRINE_COUNTER("data_file_bytes", file_bytes),
    PEREGRINE_COUNTER("deadlocks", deadlocks),
    PEREGRINE_COUNTER("log_bytes_written", log_bytes),
    PEREGRINE_COUNTER("log_syncs", log_syncs),
    PEREGRINE_COUNTER("pages_evicted", pages_evicted),
    PEREGRINE_COUNTER("pages_read", pages_read),
    PEREGRINE_COUNTER("pages_written", pages_written),
    PEREGRINE_COUNTER("purge_backlog", purge_backlog),
    PEREGRINE_COUNTER("rollbacks", rollbacks),
    PEREGRINE_COUNTER("row_lock_waits", lock_waits),
    PEREGRINE_COUNTER("rows_deleted", rows_deleted),
    PEREGRINE_COUNTER("rows_inserted", rows_inserted),
    PEREGRINE_COUNTER("rows_read", rows_read),
    PEREGRINE_COUNTER("rows_updated", rows_updated),
    {nullptr, nullptr, SHOW_UNDEF},
};

static int show_counters(THD *, st_mysql_show_var *variable, void *, system_status_var *,
                         enum_var_type) {
  peregrine_engine_counters(engine, &shown);
  variable->type = SHOW_ARRAY;
  variable->value = counters;
  return 0;
}

st_mysql_show_var status_variables[] = {
    {"Peregrine", (char *)show_counters, SHOW_FUNC},
    {nullptr, nullptr, SHOW_UNDEF},
};

}  // namespace peregrine
