//! The writing process, which its parent kills.

use std::convert::Infallible;
use std::io::Write;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::Path;

use peregrine::{Database, Error, Isolation, Table, Transaction};

use super::rows::{
    Change, Line, {self},
};
use peregrine_harness::dice::Dice;
use peregrine_harness::error::{HarnessError, Result};
use peregrine_harness::errors_told;

/// The exit status of a writing process that ends by itself.
const ENDED_BY_ITSELF: i32 = 3;

/// Commits transactions until it is killed, and reports them on the standard output.
///
/// # Errors
/// Those of the engine while it opens the database; only a kill should end the process.
pub fn write_until_killed(dir: &Path, threads: u32, seed: u64, round: u32) -> Result<()> {
    let failed = |error| HarnessError::Server(format!("the library: {error}"));
    // No call fails here, so the engine has no reason to report errors.
    errors_told::tell_to(|text| {
        say(&Line::Wrong(format!(
            "the engine tells of an error: {text}"
        )))
    });
    let db = Database::open(dir, rows::options()).map_err(failed)?;
    let table = rows::table(&db).map_err(failed)?;
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let mut writer = Writer {
                thread,
                threads,
                dice: Dice::new(seed, u64::from(round) << 32 | u64::from(thread)),
            };
            let (db, table) = (&db, &table);
            scope.spawn(move || {
                let outcome = catch_unwind(AssertUnwindSafe(|| writer.work(db, table)));
                ends(thread, &outcome)
            });
        }
    });
    Ok(())
}

/// Ends the process when a thread has ended; the other threads would otherwise run until the kill and hide the failure.
fn ends(thread: u32, outcome: &std::thread::Result<peregrine::Result<Infallible>>) -> ! {
    let what = match outcome {
        Ok(Err(error)) => format!("thread {thread}: {error}"),
        _ => format!("thread {thread} panicked"),
    };
    say(&Line::Wrong(what));
    std::process::exit(ENDED_BY_ITSELF)
}

struct Writer {
    thread: u32,
    threads: u32,
    dice: Dice,
}

impl Writer {
    /// Runs transactions until an error that is not [`is_provoked`].
    fn work(&mut self, db: &Database, table: &Table) -> peregrine::Result<Infallible> {
        let mut txn = db.begin(Isolation::RepeatableRead);
        loop {
            match self.transaction(&mut txn, table) {
                Err(error) if is_provoked(&error) => txn.rollback()?,
                outcome => outcome?,
            }
        }
    }

    fn transaction(&mut self, txn: &mut Transaction, table: &Table) -> peregrine::Result<()> {
        let mut changes = Vec::new();
        for _ in 0..1 + self.dice.below(8) {
            changes.extend(self.change(txn, table)?);
        }
        if self.dice.below(10) == 0 {
            return txn.rollback();
        }
        let thread = self.thread as usize;
        say(&Line::Begins(thread, changes));
        txn.commit()?;
        say(&Line::Acknowledged(thread));
        Ok(())
    }

    /// Changes one of the thread's own rows, which lie among those of the other threads.
    ///
    /// A thread knows the contents of its own rows, because no other thread changes them.
    fn change(
        &mut self,
        txn: &mut Transaction,
        table: &Table,
    ) -> peregrine::Result<Option<Change>> {
        let place = self.dice.below((rows::IDS / self.threads).max(1));
        let id = u64::from(place * self.threads + self.thread);
        let key = rows::key(table, id)?;
        let exists = txn.get(table, &key, |_| ())?.is_some();
        if exists && self.dice.below(10) < 3 {
            txn.delete(table, &key)?;
            return Ok(Some(Change::Delete(id)));
        }
        let token =
            u64::from(self.dice.below(1 << 31)) << 32 | u64::from(self.dice.below(u32::MAX));
        let text = rows::text(token);
        let values = rows::values(id, token, &text);
        let savepoint = txn.savepoint();
        if exists {
            txn.update(table, &key, &values)?;
        } else {
            txn.insert(table, &values)?;
        }
        if self.dice.below(10) == 0 {
            txn.rollback_to(&savepoint)?;
            return Ok(None);
        }
        Ok(Some(Change::Put(id, token)))
    }
}

/// Returns whether the error may come from another thread.
///
/// Each thread has its own rows, so threads do not conflict. If knobs are drawn, however, one range lock may replace
/// the locks of a few rows that are no longer written. Other threads' rows lie in such a range.
fn is_provoked(error: &Error) -> bool {
    peregrine::knobs::SHAKEN && matches!(error, Error::Deadlock | Error::LockWaitTimeout)
}

fn say(line: &Line) {
    let mut out = std::io::stdout().lock();
    let said = out
        .write_all(line.text().as_bytes())
        .and_then(|()| out.flush());
    if said.is_err() {
        // The reader of the pipe is gone.
        std::process::exit(0);
    }
}
