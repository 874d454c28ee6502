/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see mariadb/handler/LICENSE). */

/* Two-phase commit: by the user's XA statements, and by the server where a transaction is also in
   another engine or in the binary log. */

#ifndef PEREGRINE_TWO_PHASE_H
#define PEREGRINE_TWO_PHASE_H

#include "transactions/transactions.h"

namespace peregrine {

/* Whether the decision to commit the thread's prepared transaction is on disk, where the next start
   looks for it: the engine's own record of it can wait then. */
bool coordinator_remembers(THD *thd);

/* Ends the transaction that XA PREPARE has prepared in this connection. */
int commit_undecided(THD *thd, Connection *connection);
int rollback_undecided(THD *thd, Connection *connection);

/* coordinator_log.cc: after a crash, commits the transactions in several engines that the server
   had decided to commit. */
void commit_what_was_decided();

/* Whether the server has left decisions in tc.log, as it does at a crash. */
bool has_decisions();

/* Whether that is to be done, and the plug-in's start should be put off until the other engines
   have started; says so once. */
bool comes_before_other_engines();

/* Makes prepared transactions known to a server that was running before the engine was loaded. */
void tell_running_server();

/* Fills in what the server calls about two-phase commit. */
void set_two_phase_calls(handlerton *hton);

}  // namespace peregrine

#endif
