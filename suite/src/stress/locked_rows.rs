//! Very many rows locked without being changed, in one transaction: what the locks take beside the pool, and whether they
//! hold, Peregrine beside `InnoDB`.

use std::fmt;
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;
use mysql::Conn;

use super::size::resident_bytes;
use crate::engines::hosted::{
    Hosted, {self},
};
use crate::engines::Engine;
use crate::error::{Result, StatementContext, SuiteError};
use crate::runner::interrupt;

/// What the server may take more with the locks than without.
const MOST_BYTES: u64 = 64 << 20;
/// Rows that another session tries to lock, spread over the table.
const TRIED: u64 = 1_000;
/// "Lock wait timeout exceeded": what `NOWAIT` says of a locked row.
const LOCKED: u16 = 1205;

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Rows that are locked.
    pub rows: u64,
}

/// What one engine took.
#[derive(Clone, Copy, Debug, Default)]
pub struct Figures {
    took: Duration,
    /// Resident memory of the server, all rows read without locks, and then with them.
    before: u64,
    after: u64,
    /// Of the rows that were tried, those that another session could lock nevertheless.
    free: u64,
    /// And those that it could not lock when the transaction had ended.
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

/// Both engines.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    rows: u64,
    innodb: Figures,
    peregrine: Figures,
}

impl Outcome {
    /// Whether Peregrine's locks hold, and take no more than they may.
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

/// Reads all rows, and gives how many there are.
fn read_all(connection: &mut Conn, sql: &str) -> Result<u64> {
    let mut rows = 0;
    for row in connection.query_iter(sql).running(sql)? {
        row.running(sql)?;
        rows += 1;
    }
    Ok(rows)
}

/// How many of some rows can be locked.
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
        let unknown = || SuiteError::Server("the server's memory can't be read".to_owned());
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
        return Err(SuiteError::Interrupted);
    }
    let before = memory()?;
    told("locking all rows");
    hosted::run_all(&mut connection, &["BEGIN".to_owned()])?;
    let begun = Instant::now();
    let read = read_all(&mut connection, "SELECT id, v FROM t FOR UPDATE")?;
    let took = begun.elapsed();
    if read != rows {
        return Err(SuiteError::Server(format!("{name} locked {read} rows")));
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

/// Locks the rows of both engines on a server that has just been started.
///
/// # Errors
/// When the server does not answer; [`SuiteError::Interrupted`].
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
