//! Very many tables on a server with a small cache.
//!
//! The test creates the tables, writes and reads each, restarts the server and reads each again. It does the same for
//! `InnoDB`, and compares start time and memory.

use std::fmt;
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;

use super::size::resident_bytes;
use peregrine_harness::engines::hosted::Hosted;
use peregrine_harness::engines::Engine;
use peregrine_harness::error::{HarnessError, Result, StatementContext};
use peregrine_harness::interrupt;

/// The number of tables in a schema.
const A_SCHEMA: u32 = 10_000;
/// The number of sessions.
const SESSIONS: u32 = 4;
/// The ratio to `InnoDB` that still counts as equal, for memory and for the start.
///
/// One measurement differs from the next by about as much.
const ABOUT: f64 = 1.15;
/// Starts shorter than this count as this long.
const START: Duration = Duration::from_secs(2);

/// A request to run the test.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// The number of tables.
    pub tables: u32,
}

/// The times and memory of one engine's server.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// The time to create the tables.
    pub create: Duration,
    /// The time to write and read each table.
    pub write: Duration,
    /// The time of the restart.
    pub start: Duration,
    /// The time to read each table after the restart.
    pub read: Duration,
    /// Resident memory after the writes, after the restart and after the reads, in bytes.
    pub memory: [u64; 3],
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "created in {:.0} s, written and read in {:.0} s, started in {:.1} s, read in {:.0} s; memory {} MB \
             after the writes, {} MB after the start, {} MB after the reads",
            self.create.as_secs_f64(),
            self.write.as_secs_f64(),
            self.start.as_secs_f64(),
            self.read.as_secs_f64(),
            self.memory[0] >> 20,
            self.memory[1] >> 20,
            self.memory[2] >> 20
        )
    }
}

/// The outcome of both engines.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The number of tables.
    pub tables: u32,
    /// The cache of each engine, in bytes.
    pub cache: u64,
    /// `InnoDB`'s figures.
    pub innodb: Figures,
    /// Peregrine's figures.
    pub peregrine: Figures,
}

impl Outcome {
    /// Returns whether Peregrine's restart and memory are as good as `InnoDB`'s or better.
    #[must_use]
    pub fn held(&self) -> bool {
        let (ours, theirs) = (&self.peregrine, &self.innodb);
        let as_much = |ours: u64, theirs: u64| ours as f64 <= theirs as f64 * ABOUT;
        ours.start.max(START).as_secs_f64() <= theirs.start.max(START).as_secs_f64() * ABOUT
            && ours
                .memory
                .iter()
                .zip(theirs.memory)
                .all(|(&ours, theirs)| as_much(ours, theirs))
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "many-tables: {} tables, cache {} MB: Peregrine {}; InnoDB {}: {}",
            self.tables,
            self.cache >> 20,
            self.peregrine,
            self.innodb,
            if self.held() { "held" } else { "NOT HELD" }
        )
    }
}

/// Returns a table's schema and full name.
fn name(table: u32) -> (String, String) {
    let schema = format!("many{}", table / A_SCHEMA);
    (schema.clone(), format!("{schema}.t{table}"))
}

fn memory(server: &Hosted) -> Result<u64> {
    Ok(resident_bytes(server.process()?).unwrap_or(0))
}

/// Does `work` for each table, in several sessions, and returns the time.
fn each(
    server: &Hosted,
    tables: u32,
    work: impl Fn(&mut mysql::Conn, u32) -> Result<()> + Sync,
) -> Result<Duration> {
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let sessions: Vec<_> = (0..SESSIONS)
            .map(|session| {
                let work = &work;
                scope.spawn(move || {
                    let mut connection = server.connect(None)?;
                    for table in (session..tables).step_by(SESSIONS as usize) {
                        if interrupt::requested() {
                            return Err(HarnessError::Interrupted);
                        }
                        work(&mut connection, table)?;
                    }
                    Ok(())
                })
            })
            .collect();
        sessions.into_iter().try_for_each(|session| {
            let panicked = |_| Err(HarnessError::Server("a session panicked".to_owned()));
            session.join().unwrap_or_else(panicked)
        })
    })?;
    Ok(begun.elapsed())
}

fn read(connection: &mut mysql::Conn, table: u32) -> Result<()> {
    let statement = format!("SELECT a, b FROM {} WHERE id = 1", name(table).1);
    let found: Option<(u32, u32)> = connection.query_first(&statement).running(&statement)?;
    match found {
        Some((a, b)) if a == table && b == table % 7 => Ok(()),
        other => Err(HarnessError::Server(format!(
            "{statement}: {other:?}, not ({table}, {})",
            table % 7
        ))),
    }
}

/// Reads the row by each secondary index, and the index entries alone.
fn read_by_indexes(connection: &mut mysql::Conn, table: u32) -> Result<()> {
    let (_, name) = name(table);
    for (index, value) in [("a", table), ("b", table % 7)] {
        let statement = format!(
            "SELECT id, a, b, (SELECT MIN({index}) FROM {name} FORCE INDEX ({index})) FROM {name} \
             FORCE INDEX ({index}) WHERE {index} = {value}"
        );
        let found: Vec<(u32, u32, u32, u32)> = connection.query(&statement).running(&statement)?;
        if found != [(1, table, table % 7, value)] {
            return Err(HarnessError::Server(format!("{statement}: {found:?}")));
        }
    }
    Ok(())
}

/// Runs the test for one engine, on a server of its own.
///
/// # Errors
/// When a statement fails or answers wrongly; [`HarnessError::Interrupted`].
pub fn measure(
    server: &mut Hosted,
    engine: Engine,
    request: &Request,
    told: impl Fn(&str),
) -> Result<Figures> {
    let tables = request.tables;
    let mut connection = server.connect(None)?;
    for first in (0..tables).step_by(A_SCHEMA as usize) {
        let statement = format!("CREATE DATABASE {}", name(first).0);
        connection.query_drop(&statement).running(&statement)?;
    }
    drop(connection);
    let mut figures = Figures {
        create: each(server, tables, |connection, table| {
            let statement = format!(
                "CREATE TABLE {} (id INT PRIMARY KEY, a INT, b INT, KEY (a), KEY (b)) ENGINE={}",
                name(table).1,
                engine.sql_name()
            );
            connection.query_drop(&statement).running(&statement)
        })?,
        ..Figures::default()
    };
    told(&format!("{}: tables are there", engine.title()));
    figures.write = each(server, tables, |connection, table| {
        let (_, name) = name(table);
        let statement = format!("INSERT INTO {name} VALUES (1, {table}, {})", table % 7);
        connection.query_drop(&statement).running(&statement)?;
        read(connection, table)
    })?;
    figures.memory[0] = memory(server)?;
    told(&format!("{}: tables are filled", engine.title()));
    server.stop()?;
    let begun = Instant::now();
    server.start_again()?;
    figures.start = begun.elapsed();
    figures.memory[1] = memory(server)?;
    figures.read = each(server, tables, read)?;
    figures.memory[2] = memory(server)?;
    // After the measurements: only checks that everything is there.
    each(server, tables, read_by_indexes)?;
    told(&format!("{}: {figures}", engine.title()));
    Ok(figures)
}
