//! One session: transactions of random statements on its own rows, beside the rows of others.
//!
//! A model holds the rows that the session must see.

use std::sync::Arc;
use std::time::Duration;

use peregrine::sync::thread;
use peregrine::{Database, Isolation, Result, Savepoint, Table, Transaction, Value, Xid};

use super::end::{wrong, Beside, End, Step};
use super::model::ledger::{Ledger, Moved, Rows};
use super::model::links::Link;
use super::model::now::Now;
use super::model::reading::Read;
use super::plan::{Ending, Plan, Role, OWNERS};
use super::power::Power;
use super::tables::{ACCOUNTS, OWN, SHARED};
use peregrine_harness::dice::Dice;

/// The longest wait between two statements is less than 2 to this power, in microseconds.
const LONGEST_THOUGHT: u32 = 15;

/// A statement.
#[derive(Clone, Copy, Debug)]
enum Statement {
    Insert,
    Update,
    Delete,
    Duplicate,
    ChangeShared,
    Transfer,
    Get,
    Scan,
    Count,
    Sum,
    Range,
    Upgrade,
    Many,
    Groups,
    Savepoint,
    BackToSavepoint,
    TakenBack,
}

impl Role {
    /// The statements of a role and their weights.
    fn weights(self) -> &'static [(Statement, u32)] {
        match self {
            Role::Mixed => &[
                (Statement::Insert, 5),
                (Statement::Update, 4),
                (Statement::Delete, 3),
                (Statement::Duplicate, 1),
                (Statement::ChangeShared, 5),
                (Statement::Transfer, 3),
                (Statement::Get, 1),
                (Statement::Scan, 3),
                (Statement::Count, 1),
                (Statement::Sum, 1),
                (Statement::Range, 3),
                (Statement::Many, 1),
                (Statement::Groups, 1),
                (Statement::Savepoint, 2),
                (Statement::BackToSavepoint, 2),
                (Statement::TakenBack, 2),
            ],
            Role::Reader => &[
                (Statement::Get, 1),
                (Statement::Scan, 4),
                (Statement::Count, 1),
                (Statement::Sum, 3),
                (Statement::Range, 2),
                (Statement::Many, 1),
                (Statement::Groups, 1),
            ],
            Role::Writer => &[
                (Statement::Insert, 3),
                (Statement::Update, 4),
                (Statement::Delete, 3),
                (Statement::ChangeShared, 6),
                (Statement::Transfer, 4),
                (Statement::Savepoint, 2),
                (Statement::BackToSavepoint, 2),
                (Statement::TakenBack, 3),
            ],
            Role::Locker => &[
                (Statement::Range, 8),
                (Statement::Upgrade, 6),
                (Statement::Update, 2),
                (Statement::Get, 1),
                (Statement::TakenBack, 1),
            ],
            Role::Replacer => &[
                (Statement::Delete, 6),
                (Statement::Update, 3),
                (Statement::Insert, 2),
                (Statement::ChangeShared, 2),
                (Statement::Range, 1),
                (Statement::TakenBack, 1),
            ],
        }
    }
}

/// A session.
pub struct Session<'a> {
    pub(super) plan: &'a Plan,
    pub(super) number: u64,
    pub(super) dice: Dice,
    /// The ledgers of all sessions.
    pub(super) ledgers: &'a [Ledger],
    ledger: &'a Ledger,
    power: &'a Power,
    /// The states of all sessions.
    pub(super) now: &'a [Now],
    pub(super) own: Arc<Table>,
    pub(super) accounts: Arc<Table>,
    pub(super) shared: Arc<Table>,
    db: &'a Database,
    pub(super) role: Role,
    /// The next code; no code is used twice.
    pub(super) next_code: u64,
}

/// A transaction of a session.
pub(super) struct Work {
    pub(super) txn: Transaction,
    /// The session's rows, as the transaction sees them.
    pub(super) rows: Rows,
    savepoints: Vec<(Savepoint, Rows, [usize; 2])>,
    /// The changes of the shared rows.
    pub(super) links: Vec<Link>,
    /// The changes of amounts.
    pub(super) moved: Vec<Moved>,
    /// Whether entries of its own rows are deferred.
    pub(super) bulk: bool,
    /// Whether its commit has begun.
    commits: bool,
    /// Whether a statement failed because of a failed call, memory or frame.
    has_failed: bool,
    /// Whether it went back to a savepoint at which entries of a bulk insert could not be inserted.
    lacks_entries: bool,
    /// Its statements, for the text of a failure.
    pub(super) trail: String,
    /// The first rows of others that it read, where they must stay the same.
    pub(super) others: Option<Vec<Read>>,
    /// For each session, the last commit that was acknowledged before this transaction began.
    pub(super) seen: Vec<usize>,
    /// For each session, the last commit that was acknowledged before the current statement.
    pub(super) now: Vec<usize>,
    /// For each session, the commits that may be the last in the transaction's snapshot, according to its reads.
    pub(super) possible: Vec<Option<Vec<usize>>>,
    /// Rows of others that it has locked, each with its owner's last commit that was acknowledged before.
    pub(super) locked: Vec<(Read, usize)>,
    /// Keys of rows that its last scan with `skip_locked` did not find.
    pub(super) passed_over: Vec<u64>,
}

impl Work {
    /// Rolls back to a savepoint.
    pub(super) fn go_back(&mut self, savepoint: &Savepoint) -> Result<()> {
        self.txn.rollback_to(savepoint)?;
        self.locked.clear();
        self.lacks_entries = savepoint.missing_entries().is_some();
        Ok(())
    }
}

impl<'a> Session<'a> {
    /// Session `number` of the plan; `life` distinguishes the time before a crash from the time after.
    ///
    /// # Errors
    /// The engine's errors when tables are opened.
    pub fn new(
        plan: &'a Plan,
        number: u64,
        life: u64,
        db: &'a Database,
        ledgers: &'a [Ledger],
        power: &'a Power,
        now: &'a [Now],
    ) -> Result<Self> {
        Ok(Session {
            plan,
            number,
            dice: Dice::new(plan.seed, 1 + number + life * OWNERS),
            ledgers,
            ledger: &ledgers[number as usize],
            power,
            now,
            own: db.table(OWN)?,
            accounts: db.table(ACCOUNTS)?,
            shared: db.table(SHARED)?,
            db,
            role: plan.roles[number as usize % plan.roles.len()],
            next_code: 1 + ((number + life * OWNERS) << 32) + (life << 20),
        })
    }

    /// Runs this many transactions.
    ///
    /// # Errors
    /// Text that says what is wrong.
    pub fn run(&mut self, transactions: u32) -> std::result::Result<(), String> {
        let times = match self.role {
            Role::Mixed | Role::Locker | Role::Replacer => transactions,
            Role::Reader => transactions.min(2),
            Role::Writer => 3 * transactions,
        };
        for _ in 0..times {
            let isolation = self.plan.isolation.unwrap_or_else(|| {
                let all = [
                    Isolation::ReadCommitted,
                    Isolation::RepeatableRead,
                    Isolation::Serializable,
                ];
                all[self.dice.below(3) as usize]
            });
            let seen = self.acknowledged();
            let mut work = Work {
                now: seen.clone(),
                possible: vec![None; seen.len()],
                seen,
                txn: self.db.begin(isolation),
                rows: self.ledger.newest(),
                savepoints: Vec::new(),
                links: Vec::new(),
                moved: Vec::new(),
                bulk: false,
                commits: false,
                has_failed: false,
                lacks_entries: false,
                trail: String::new(),
                others: None,
                locked: Vec::new(),
                passed_over: Vec::new(),
            };
            let now = &self.now[self.number as usize];
            now.begins(work.txn.kill_handle());
            let fails = self.plan.ending == Ending::CallFails;
            let outcome = self.transaction(&mut work);
            let outcome = match outcome.map_err(|end| self.unless_unprovoked(end, isolation)) {
                Ok(()) => Ok(()),
                // It is unknown whether the commit took effect.
                Err(End::Failed(_)) if fails && work.commits => return Ok(()),
                Err(End::Failed(what)) if !fails => Err(what),
                Err(End::Refused(what)) if !work.has_failed && !work.lacks_entries => Err(what),
                Err(End::Wrong(what)) => Err(what),
                Err(
                    End::Conflict(_)
                    | End::TimedOut
                    | End::Interrupted
                    | End::Failed(_)
                    | End::Refused(_),
                ) => match self.roll_back(&mut work) {
                    // After a failed call the session can do nothing more.
                    Err(_) if fails => return Ok(()),
                    outcome => outcome.map_err(|error| format!("rolling back: {error}")),
                },
            };
            now.ends();
            outcome.map_err(|what| {
                let did = &work.trail;
                format!(
                    "session {}, {isolation:?}: {what}; it did:{did}",
                    self.number
                )
            })?;
        }
        Ok(())
    }

    fn transaction(&mut self, work: &mut Work) -> Step {
        if self.dice.below(6) == 0 {
            work.txn.begin_bulk_insert(&self.own);
            work.bulk = true;
            work.trail += " bulk;";
        }
        let most = match self.role {
            Role::Mixed | Role::Locker | Role::Replacer => self.plan.statements,
            Role::Reader => 4 * self.plan.statements,
            Role::Writer => self.plan.statements.min(4),
        };
        for _ in 0..1 + self.dice.below(most) {
            work.now = self.acknowledged();
            work.txn.start_statement();
            let outcome = self.statement(work);
            let isolation = work.txn.isolation();
            match outcome.map_err(|end| self.unless_unprovoked(end, isolation)) {
                Err(End::Failed(what)) => self.after_failed_call(work, what)?,
                Err(end @ (End::TimedOut | End::Interrupted)) => self.after_wait(work, end)?,
                other => other?,
            }
            work.txn.end_statement();
            if self.plan.thinks {
                self.think();
            }
        }
        self.locked_rows_stay(work)?;
        match self.dice.below(10) {
            0 => Ok(self.roll_back(work)?),
            1 => self.in_two_phases(work),
            _ => self.commit(work),
        }
    }

    pub(super) fn think(&mut self) {
        if self.dice.below(2) == 0 {
            thread::sleep(Duration::from_micros(1 << self.dice.below(LONGEST_THOUGHT)));
        }
    }

    /// Handles a failed call in a statement, which then has done nothing.
    ///
    /// The transaction ends, continues, or goes back to a savepoint. If the statement could not be undone as a whole,
    /// the transaction must refuse to continue.
    fn after_failed_call(&mut self, work: &mut Work, what: String) -> Step {
        work.has_failed = true;
        work.trail += " failed;";
        if self.plan.ending != Ending::CallFails {
            return Err(End::Failed(what));
        }
        match self.dice.below(3) {
            0 => Err(End::Failed(what)),
            1 => Ok(()),
            _ => {
                let n = self.dice.below(work.savepoints.len() as u32) as usize;
                self.back_to(work, n)
            }
        }
    }

    /// Handles a wait that timed out or was interrupted: the transaction ends, or continues without it.
    fn after_wait(&mut self, work: &mut Work, end: End) -> Step {
        work.trail += " not done;";
        work.txn.kill_handle().clear();
        match self.dice.below(2) {
            0 => Err(end),
            _ => Ok(()),
        }
    }

    fn unless_unprovoked(&self, end: End, isolation: Isolation) -> End {
        let beside = Beside {
            sessions: self.plan.sessions,
            is_optimistic: false,
        };
        end.unless_unprovoked(self.plan, isolation, beside)
    }

    /// Returns the state of the other sessions if none of them has a transaction.
    ///
    /// [`Session::were_idle`] later compares it, and so tells whether none had one in between. Returns `None` in a
    /// schedule in which calls fail, because an ended transaction may keep its locks there.
    pub(super) fn others_idle(&self) -> Option<Vec<u64>> {
        let others = (0..).zip(self.now);
        let others = others.filter(|(number, _)| *number != self.number);
        match self.plan.ending {
            Ending::CallFails => None,
            _ => others.map(|(_, now)| now.idle()).collect(),
        }
    }

    /// Returns whether no other session has had a transaction since: see [`Session::others_idle`].
    pub(super) fn were_idle(&self, before: &Option<Vec<u64>>) -> bool {
        before.is_some() && self.others_idle() == *before
    }

    fn roll_back(&self, work: &mut Work) -> Result<()> {
        self.now[self.number as usize].gives_back();
        work.txn.rollback()
    }

    fn commit(&mut self, work: &mut Work) -> Step {
        work.trail += " commit;";
        work.commits = true;
        self.now[self.number as usize].gives_back();
        // A commit without changes writes nothing to the log, so it works even if the log has stopped.
        let changes = self.ledger.is_changed(&work.rows, &work.links, &work.moved);
        if changes {
            self.ledger.begins(&work.rows, &work.links, &work.moved);
        }
        match work.txn.commit().map_err(End::from) {
            Ok(()) if work.lacks_entries => wrong("commits rows that lack entries".to_owned()),
            Ok(()) => {
                if changes {
                    self.ledger.acknowledge();
                }
                self.power.acknowledged();
                Ok(())
            }
            Err(end) => {
                if changes && !matches!(end, End::Failed(_) | End::Wrong(_)) {
                    self.ledger.withdraw();
                }
                Err(match end {
                    End::Refused(what) => End::Refused(format!("commit: {what}")),
                    End::Failed(what) => End::Failed(format!("commit: {what}")),
                    End::Wrong(what) => End::Wrong(format!("commit: {what}")),
                    // Deferred entries of a bulk insert may conflict with other sessions.
                    end @ (End::Conflict(_) | End::TimedOut | End::Interrupted) => end,
                })
            }
        }
    }

    fn in_two_phases(&mut self, work: &mut Work) -> Step {
        self.next_code += 1;
        let xid = Xid::new(1, &self.next_code.to_le_bytes(), b"")?;
        work.trail += " prepare;";
        self.ledger
            .prepares(&xid, &work.rows, &work.links, &work.moved);
        work.txn.prepare(&xid)?;
        self.ledger.stands(true);
        // Power may be lost here.
        if self.plan.thinks {
            self.think();
        }
        self.ledger.stands(false);
        match self.dice.below(3) {
            0 => Ok(self.roll_back(work)?),
            _ => self.commit(work),
        }
    }

    fn statement(&mut self, work: &mut Work) -> Step {
        match self.choose() {
            Statement::Insert => self.insert(work),
            Statement::Update => self.update(work),
            Statement::Delete => self.delete(work),
            Statement::Duplicate => self.duplicate(work),
            Statement::ChangeShared => self.change_shared(work),
            Statement::Transfer => self.transfer(work),
            Statement::Get => self.get(work),
            Statement::Scan => self.scan(work),
            Statement::Count => self.count(work),
            Statement::Sum => self.sum(work),
            Statement::Range => self.range(work),
            Statement::Upgrade => self.upgrade(work),
            Statement::Many => self.many(work),
            Statement::Groups => self.groups(work),
            Statement::Savepoint => {
                self.set_savepoint(work);
                Ok(())
            }
            Statement::BackToSavepoint => {
                let n = self.dice.below(work.savepoints.len() as u32) as usize;
                self.back_to(work, n)
            }
            Statement::TakenBack => {
                self.set_savepoint(work);
                // Half of the time, most changes are on shared rows, which others may insert again at once.
                let kinds = [4, 8][self.dice.below(2) as usize];
                for _ in 0..1 + self.dice.below(3) {
                    match self.dice.below(kinds) {
                        0 => self.insert(work)?,
                        1 => self.update(work)?,
                        2 => self.delete(work)?,
                        _ => self.change_shared(work)?,
                    }
                }
                self.back_to(work, work.savepoints.len() - 1)
            }
        }
    }

    fn set_savepoint(&mut self, work: &mut Work) {
        work.trail += &format!(" savepoint {};", work.savepoints.len());
        let savepoint = work.txn.savepoint();
        let lengths = [work.links.len(), work.moved.len()];
        work.savepoints
            .push((savepoint, work.rows.clone(), lengths));
    }

    fn back_to(&mut self, work: &mut Work, n: usize) -> Step {
        if let Some((savepoint, rows, [links, moved])) = work.savepoints.get(n).cloned() {
            work.trail += &format!(" back to savepoint {n};");
            self.now[self.number as usize].gives_back();
            work.go_back(&savepoint)?;
            work.rows = rows;
            work.links.truncate(links);
            work.moved.truncate(moved);
            work.savepoints.truncate(n + 1);
        }
        Ok(())
    }

    fn choose(&mut self) -> Statement {
        let weights = self.role.weights();
        let mut left = self
            .dice
            .below(weights.iter().map(|(_, weight)| weight).sum());
        for (statement, weight) in weights {
            if left < *weight {
                return *statement;
            }
            left -= weight;
        }
        Statement::Scan
    }

    pub(super) fn key(&mut self) -> u64 {
        let n = u64::from(self.dice.below(self.plan.keys as u32));
        n * OWNERS + self.number
    }

    pub(super) fn existing(&mut self, rows: &Rows) -> Option<u64> {
        let n = self.dice.below(rows.len() as u32) as usize;
        rows.keys().nth(n).copied()
    }

    pub(super) fn encoded(&self, id: u64) -> Result<Vec<u8>> {
        self.own.encode_key(0, &[Value::UInt(id)])
    }
}
