/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see mariadb/handler/LICENSE). */

/* SHOW ENGINE PEREGRINE STATUS and SHOW STATUS LIKE 'peregrine_%'. */

#include "monitoring/counters.h"
#include "engine.h"
#include "monitoring/information_schema.h"

#include <tztime.h>

namespace peregrine {

static void append_number(String *text, ulonglong number) {
  text->append_ulonglong(number);
}

static void append_text(String *text, const char *from) {
  text->append(from, strlen(from));
}

/* Appends a time such as "2026-11-20 13:48:17", in the session's time zone. */
static void append_time(THD *thd, String *text, uint64_t micros) {
  MYSQL_TIME time;
  char buffer[MAX_DATE_STRING_REP_LENGTH];
  thd->variables.time_zone->gmt_sec_to_TIME(&time, static_cast<my_time_t>(micros / 1000000));
  text->append(buffer, static_cast<size_t>(my_datetime_to_str(&time, buffer, 0)));
}

static void append_member(String *text, const peregrine_deadlock_member &member, size_t number,
                          size_t next) {
  const std::string table = shown_table(member.row);
  append_text(text, "(");
  append_number(text, number);
  append_text(text, ") TRANSACTION ");
  append_number(text, member.id);
  append_text(text, ", thread ");
  append_number(text, member.session);
  append_text(text, ", undo records ");
  append_number(text, member.undo_records);
  append_text(text, "\n");
  if (member.statement) text->append(member.statement, member.statement_length);
  append_text(text, member.statement ? "\n" : "(the statement is not known)\n");
  append_text(text, "WAITS FOR a lock, mode ");
  append_text(text, member.mode == PEREGRINE_LOCK_SHARED ? "S" : "X");
  append_text(text, ", of index ");
  text->append(member.row.index, member.row.index_length);
  append_text(text, " of table ");
  text->append(table.data(), table.size());
  append_text(text, ", key ");
  text->append(member.row.key, member.row.key_length);
  append_text(text, ", HELD BY (");
  append_number(text, next);
  append_text(text, ")\n");
}

static void append_latest_deadlock(THD *thd, String *text) {
  peregrine_deadlock *deadlock = nullptr;
  peregrine_deadlock_info info{};
  if (peregrine_latest_deadlock(engine, &deadlock, &info) != PEREGRINE_OK) return;
  append_text(text, "LATEST DEADLOCK\n");
  append_time(thd, text, info.at_us);
  append_text(text, ", ");
  append_number(text, info.length);
  append_text(text, " transactions in a circle\n");
  for (size_t n = 0; n < info.member_count; n++)
    append_member(text, info.members[n], n + 1, (n + 1) % info.member_count + 1);
  append_text(text, "ROLLED BACK (");
  append_number(text, info.victim + 1);
  append_text(text, ")\n\n");
  peregrine_deadlock_free(deadlock);
}

bool show_engine_status(handlerton *, THD *thd, stat_print_fn *print, ha_stat_type type) {
  if (type != HA_ENGINE_STATUS) return false;
  peregrine_counters now{};
  StringBuffer<4096> text(system_charset_info);
  if (peregrine_engine_counters(engine, &now) != PEREGRINE_OK) {
    append_text(&text, "The engine has stopped; restart the server to recover.\n");
  }
  append_latest_deadlock(thd, &text);
  append_text(&text, "COUNTERS\n");
  for (const Counter &counter : kCounters) {
    char line[128];
    int length = snprintf(line, sizeof line, "%-28s %20llu\n", counter.name, counter.value(now));
    text.append(line, static_cast<size_t>(length));
  }
  return print(thd, STRING_WITH_LEN("PEREGRINE"), STRING_WITH_LEN(""), text.ptr(), text.length());
}

/* Set anew for each SHOW STATUS; the server reads the values under a lock of its own. */
static ulonglong shown[array_elements(kCounters) + 2];
static st_mysql_show_var variables[array_elements(kCounters) + 3];

static int show_counters(THD *, st_mysql_show_var *variable, void *, system_status_var *,
                         enum_var_type) {
  peregrine_counters now{};
  /* Shows zeros when the counters can't be read. */
  if (peregrine_engine_counters(engine, &now) != PEREGRINE_OK) now = peregrine_counters{};
  size_t n = 0;
  auto add = [&n](const char *name, ulonglong value) {
    shown[n] = value;
    variables[n] = {name, reinterpret_cast<char *>(&shown[n]), SHOW_LONGLONG};
    n++;
  };
  for (const Counter &counter : kCounters) add(counter.name, counter.value(now));
  const uint64_t ended = now.lock_waits - MY_MIN(now.lock_waits, now.lock_waits_now);
  add("row_lock_time_avg", ended ? now.lock_wait_us / ended / 1000 : 0);
  /* The old name of mini_page_reads, kept until the next release. */
  add("narrow_reads", now.mini_page_reads);
  variables[n] = {nullptr, nullptr, SHOW_UNDEF};
  variable->type = SHOW_ARRAY;
  variable->value = variables;
  return 0;
}

st_mysql_show_var status_variables[] = {
    {"Peregrine", (char *)show_counters, SHOW_FUNC},
    {nullptr, nullptr, SHOW_UNDEF},
};

}  // namespace peregrine
