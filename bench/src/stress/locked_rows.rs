//! Very many rows locked without changes, in one transaction.
//!
//! The test measures the memory of the locks outside the pool, and checks that the locks hold, on Peregrine and
//! `InnoDB`.

use std::fmt;
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;
use mysql::Conn;

use super::size::resident_bytes;
use peregrine_harness::engines::hosted::{
    Hosted, {self},
};
use peregrine_harness::engines::Engine;
use peregrine_harness::error::{HarnessError, Result, StatementContext};
use peregrine_harness::interrupt;

/// The maximum growth of the server's memory because of the locks, in bytes.
const MOST_BYTES: u64 = 64 << 20;
/// The number of rows, spread over the table, that another session tries to lock.
const TRIED: u64 = 1_000;
/// "Lock wait timeout exceeded": the error of `NOWAIT` for a locked row.
const LOCKED: u16 = 1205;

/// A request to run the test.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// The number of rows to lock.
    pub rows: u64,
}

/// The figures of one engine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Figures {
    took: Duration,
    /// Resident memory of the server after all rows were read without locks, and then with locks.
    before: u64,
    after: u64,
    /// The number of tried rows that another session could lock during the transaction.
    free: u64,
    /// The number of tried rows that it could not lock after the transaction.
    stuck: u64,
}

impl Figures {
    fn grew(&self) -> u64 {
        self.after.saturating_sub(self.before)
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:.1} s, {} MB more, of {TRIED} rows {} free before the end and {} locked after it",
            self.took.as_secs_f64(),
            self.grew() >> 20,
            self.free,
            self.stuck
        )
    }
}

/// The outcome of both engines.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    rows: u64,
    innodb: Figures,
    peregrine: Figures,
}

impl Outcome {
    /// Returns whether Peregrine's locks hold and take no more memory than allowed.
    #[must_use]
    pub fn held(&self) -> bool {
        let Figures { free, stuck, .. } = self.peregrine;
        (free, stuck) == (0, 0) && self.peregrine.grew() <= MOST_BYTES
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: locked-rows: {} rows FOR UPDATE: Peregrine {}; InnoDB {}",
            if self.held() { "held" } else { "NOT HELD" },
            self.rows,
            self.peregrine,
            self.innodb
        )
    }
}

/// Reads all rows and returns their number.
fn read_all(connection: &mut Conn, sql: &str) -> Result<u64> {
    let mut rows = 0;
    for row in connection.query_iter(sql).running(sql)? {
        row.running(sql)?;
        rows += 1;
    }
    Ok(rows)
}

/// Returns how many of the tried rows can be locked.
fn lockable(connection: &mut Conn, rows: u64) -> Result<u64> {
    let mut locked = 0;
    for n in 0..TRIED {
        let id = 1 + n * (rows - 1) / (TRIED - 1);
        let sql = format!("SELECT id FROM t WHERE id = {id} FOR UPDATE NOWAIT");
        match connection.query_first::<u64, _>(&sql) {
            Ok(_) => locked += 1,
            Err(mysql::Error::MySqlError(error)) if error.code == LOCKED => {}
            other => drop(other.running(&sql)?),
        }
    }
    Ok(locked)
}

fn measure(
    server: &Hosted,
    engine: Engine,
    rows: u64,
    told: &mut impl FnMut(&str),
) -> Result<Figures> {
    let name = engine.name();
    let schema = format!("locked_{name}");
    let mut connection = server.connect(None)?;
    let memory = || {
        let unknown = || HarnessError::Server("the server's memory can't be read".to_owned());
        resident_bytes(server.process()?).ok_or_else(unknown)
    };
    told(&format!("filling the table of {name}"));
    hosted::run_all(
        &mut connection,
        &[
            format!("CREATE DATABASE {schema}"),
            format!("USE {schema}"),
            format!("CREATE TABLE t (id INT PRIMARY KEY, v INT NOT NULL) ENGINE={name}"),
            format!("INSERT INTO t SELECT seq, seq FROM seq_1_to_{rows}"),
        ],
    )?;
    told("reading all rows");
    read_all(&mut connection, "SELECT id, v FROM t")?;
    if interrupt::requested() {
        return Err(HarnessError::Interrupted);
    }
    let before = memory()?;
    told("locking all rows");
    hosted::run_all(&mut connection, &["BEGIN".to_owned()])?;
    let begun = Instant::now();
    let read = read_all(&mut connection, "SELECT id, v FROM t FOR UPDATE")?;
    let took = begun.elapsed();
    if read != rows {
        return Err(HarnessError::Server(format!("{name} locked {read} rows")));
    }
    let after = memory()?;
    let mut other = server.connect(None)?;
    let settings = [format!("USE {schema}"), "BEGIN".to_owned()];
    hosted::run_all(&mut other, &settings)?;
    let free = lockable(&mut other, rows)?;
    hosted::run_all(&mut connection, &["COMMIT".to_owned()])?;
    let stuck = TRIED - lockable(&mut other, rows)?;
    Ok(Figures {
        took,
        before,
        after,
        free,
        stuck,
    })
}

/// Locks the rows on both engines, on a server that has just been started.
///
/// # Errors
/// When the server does not answer; [`HarnessError::Interrupted`].
pub fn run(request: &Request, server: &Hosted, mut told: impl FnMut(&str)) -> Result<Outcome> {
    interrupt::flag();
    Ok(Outcome {
        rows: request.rows,
        innodb: measure(server, Engine::InnoDb, request.rows, &mut told)?,
        peregrine: measure(server, Engine::Peregrine, request.rows, &mut told)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_must_hold_and_take_little() {
        let outcome = |megabytes: u64, free, stuck| Outcome {
            rows: 1,
            innodb: Figures::default(),
            peregrine: Figures {
                before: 1 << 30,
                after: (1 << 30) + (megabytes << 20),
                free,
                stuck,
                ..Figures::default()
            },
        };
        assert!(outcome(64, 0, 0).held());
        assert!(!outcome(65, 0, 0).held());
        assert!(!outcome(1, 1, 0).held());
        assert!(!outcome(1, 0, 1).held());
    }
}
