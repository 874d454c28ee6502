/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see mariadb/handler/LICENSE). */

/* Two-phase commit: by the user's XA statements, and by the server when a transaction also uses
   another engine or the binary log. */

#ifndef PEREGRINE_TWO_PHASE_H
#define PEREGRINE_TWO_PHASE_H

#include "transactions/transactions.h"

namespace peregrine {

/* Returns whether the decision to commit the thread's prepared transaction is on disk, where the
   next start finds it. Then the engine's own commit record need not be synced at once. */
bool coordinator_remembers(THD *thd);

/* Ends the transaction that XA PREPARE has prepared in this connection. */
int commit_undecided(THD *thd, Connection *connection);
int rollback_undecided(THD *thd, Connection *connection);

/* coordinator_log.cc: after a crash, commits those transactions of several engines that the server
   had decided to commit. */
void commit_what_was_decided();

/* Returns whether the server has left decisions in tc.log, as it does at a crash. */
bool has_decisions();

/* Returns, once, true when such decisions must be carried out: the plug-in's start should then wait
   until the other engines have started. */
bool comes_before_other_engines();

/* Makes prepared transactions known to a server that was running before the engine was loaded. */
void tell_running_server();

/* Sets the functions that the server calls about two-phase commit. */
void set_two_phase_calls(handlerton *hton);

}  // namespace peregrine

#endif
