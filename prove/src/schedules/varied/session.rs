//! One session on the table of many kinds of keys: its transactions and their ends.

use std::sync::Arc;

use peregrine::{Database, Isolation, Result, Savepoint, Table, Transaction};

use super::counted::{Given, COUNTED};
use super::reading::own_rows;
use super::rows::{for_ledger, Rows, VARIED};
use crate::schedules::end::{wrong, Beside, End, Step};
use crate::schedules::model::ledger::Ledger;
use crate::schedules::plan::{Ending, Plan, OWNERS};
use crate::schedules::power::Power;
use peregrine_harness::dice::Dice;

/// A session.
pub struct Varied<'a> {
    pub(super) plan: &'a Plan,
    pub(super) number: u64,
    pub(super) dice: Dice,
    pub(super) db: &'a Database,
    pub(super) table: Arc<Table>,
    pub(super) counted: Arc<Table>,
    pub(super) given: &'a Given,
    pub(super) next_name: u64,
    ledger: &'a Ledger,
    power: &'a Power,
    /// Its rows after its last commit.
    rows: Rows,
}

/// A transaction of a session.
pub(super) struct Work {
    pub txn: Transaction,
    /// The session's rows, as the transaction sees them.
    pub rows: Rows,
    pub savepoints: Vec<(Savepoint, Rows)>,
    /// Its statements, for the text of a failure.
    pub trail: String,
    /// Whether its commit has begun.
    commits: bool,
}

impl<'a> Varied<'a> {
    /// Session `number` of the plan; `life` distinguishes the time before a crash from the time after.
    ///
    /// # Errors
    /// The engine's errors.
    pub fn new(
        plan: &'a Plan,
        number: u64,
        life: u64,
        db: &'a Database,
        given: &'a Given,
        ledger: &'a Ledger,
        power: &'a Power,
    ) -> Result<Self> {
        // A point may kill this read, too.
        let rows = loop {
            match own_rows(db, number) {
                Err(peregrine::Error::Interrupted) => {}
                rows => break rows?,
            }
        };
        Ok(Varied {
            plan,
            number,
            dice: Dice::new(plan.seed, OWNERS * (9 + life) + number),
            db,
            table: db.table(VARIED)?,
            counted: db.table(COUNTED)?,
            given,
            next_name: life << 32,
            ledger,
            power,
            rows,
        })
    }

    /// Runs its transactions.
    ///
    /// # Errors
    /// Text that says what is wrong.
    pub fn run(&mut self, transactions: u32) -> std::result::Result<(), String> {
        for _ in 0..transactions {
            let isolations = [
                Isolation::ReadCommitted,
                Isolation::RepeatableRead,
                Isolation::Serializable,
            ];
            let drawn = isolations[self.dice.below(3) as usize];
            let isolation = self.plan.isolation.unwrap_or(drawn);
            let mut work = Work {
                txn: self.db.begin(isolation),
                rows: self.rows.clone(),
                savepoints: Vec::new(),
                trail: String::new(),
                commits: false,
            };
            let fails = self.plan.ending == Ending::CallFails;
            // `set_locking` takes effect at once, outside of the session's transaction.
            let beside = Beside {
                sessions: self.plan.varied,
                is_optimistic: true,
            };
            let ended = self.transaction(&mut work);
            let ended = ended.map_err(|end| end.unless_unprovoked(self.plan, isolation, beside));
            let outcome = match ended {
                Ok(()) => Ok(()),
                Err(End::Wrong(what)) => Err(what),
                Err(End::Failed(what) | End::Refused(what)) if !fails => Err(what),
                // It is unknown whether the commit took effect.
                Err(End::Failed(_)) if work.commits => return Ok(()),
                Err(_) => match work.txn.rollback() {
                    // After a failed call the session can do nothing more.
                    Err(_) if fails => return Ok(()),
                    outcome => outcome.map_err(|error| format!("rolling back: {error}")),
                },
            };
            outcome.map_err(|what| {
                let (number, did) = (self.number, &work.trail);
                format!("varied session {number}, {isolation:?}: {what}; it did:{did}")
            })?;
        }
        Ok(())
    }

    fn transaction(&mut self, work: &mut Work) -> Step {
        for _ in 0..1 + self.dice.below(8) {
            work.txn.start_statement();
            self.statement(work)?;
            work.txn.end_statement();
        }
        match self.dice.below(6) {
            0 => Ok(work.txn.rollback()?),
            n => self.commit(work, n),
        }
    }

    fn statement(&mut self, work: &mut Work) -> Step {
        match self.dice.below(24) {
            0..=8 => self.change(work),
            9 | 10 => self.scan(work),
            11 => self.filtered(work),
            12 => self.entries(work),
            13 | 14 => self.aggregates(work),
            15 => self.rows_of_snapshot(work),
            16 | 17 => self.kept_cursor(work),
            18 => self.semi_consistent(work),
            19 => {
                self.set_savepoint(work);
                Ok(())
            }
            20 => {
                let n = self.dice.below(work.savepoints.len() as u32) as usize;
                self.back_to(work, n)
            }
            21 => self.count(work),
            22 if self.number == 0 && self.dice.below(2) == 0 => self.set_names(work),
            22 => self.set_locking(work),
            _ => self.own_table(work),
        }
    }

    /// Commits at once; or in two steps; or in two steps of which the second does not wait, and then syncs the log.
    fn commit(&mut self, work: &mut Work, how: u32) -> Step {
        work.trail += " commit;";
        work.commits = true;
        self.ledger.begins(&for_ledger(&work.rows), &[], &[]);
        let outcome = match how {
            1 | 2 => work.txn.commit_visibly(),
            _ => work.txn.commit(),
        };
        match outcome.map_err(End::from) {
            Ok(()) => {}
            Err(End::Failed(what)) => return Err(End::Failed(format!("commit: {what}"))),
            Err(End::Wrong(what)) => return wrong(format!("commit: {what}")),
            // The commit was rolled back.
            Err(end) => {
                self.ledger.withdraw();
                return Err(end);
            }
        }
        self.rows = work.rows.clone();
        let finished = match how {
            1 => work.txn.finish_commit(true),
            2 => {
                let finished = work.txn.finish_commit(false);
                finished.and_then(|()| self.db.sync_log())
            }
            _ => Ok(()),
        };
        match finished.map_err(End::from) {
            Ok(()) => {}
            Err(End::Failed(what)) => return Err(End::Failed(format!("commit: {what}"))),
            Err(_) => return wrong("the second half of a commit does not end".to_owned()),
        }
        self.ledger.acknowledge();
        if how == 2 {
            self.ledger.is_durable(self.ledger.position().1);
        }
        self.power.acknowledged();
        Ok(())
    }
}
