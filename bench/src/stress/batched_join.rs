//! A join that finds its rows through a secondary key, in data larger than the cache.
//!
//! It runs row by row and by batches of keys (MariaDB's batched key access over multi-range reads), on Peregrine and on
//! `InnoDB`.
//!
//! The server runs the join, and both engines bypass the system's page cache.

use std::fmt;
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;
use mysql::Conn;

use peregrine_harness::engines::hosted::{
    Hosted, {self},
};
use peregrine_harness::engines::Engine;
use peregrine_harness::error::{HarnessError, Result, StatementContext};
use peregrine_harness::interrupt;

/// Batches must be at least this many times as fast as single rows.
const LEAST_GAIN: f64 = 2.0;
/// The number of joins by batches; the fastest counts.
///
/// Joins row by row take too long to run more than once.
const RUNS: u32 = 3;
/// A prime whose multiples scatter the keys over the table.
const SCATTER: u64 = 7_368_787;
/// Settings for joins row by row.
const SINGLE: &str =
    "SET optimizer_switch = 'mrr=off', join_cache_level = 0, peregrine_pushdown = OFF";
/// Settings for joins by batches of keys, which read rows in the order of the clustered key.
const BATCHED: &str =
    "SET optimizer_switch = 'mrr=on,mrr_cost_based=off,mrr_sort_keys=on,join_cache_bka=on', join_cache_level = 6, \
     join_buffer_size = 4194304, join_buffer_space_limit = 16777216, mrr_buffer_size = 4194304, peregrine_pushdown = OFF";

/// A request to run the joins.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// The number of rows of each of the two tables.
    pub rows: u64,
}

/// The times of one engine's joins.
#[derive(Clone, Copy, Debug, Default)]
pub struct Figures {
    single: Duration,
    batched: Duration,
}

/// The outcome of both engines.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    rows: u64,
    cache: u64,
    innodb: Figures,
    peregrine: Figures,
}

impl Outcome {
    /// Returns whether batches are fast enough, relative to single rows and to `InnoDB`'s batches.
    #[must_use]
    pub fn held(&self) -> bool {
        let Figures { single, batched } = self.peregrine;
        single.as_secs_f64() >= LEAST_GAIN * batched.as_secs_f64() && batched <= self.innodb.batched
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let told = |figures: Figures| {
            let (single, batched) = (figures.single.as_secs_f64(), figures.batched.as_secs_f64());
            format!("{single:.1} s row by row, {batched:.1} s by batches")
        };
        write!(
            f,
            "{}: batched-join: {} rows by a secondary key, cache {} MB: Peregrine {}; InnoDB {}",
            if self.held() { "held" } else { "NOT HELD" },
            self.rows,
            self.cache >> 20,
            told(self.peregrine),
            told(self.innodb)
        )
    }
}

/// Creates and fills an engine's tables.
fn fill(connection: &mut Conn, engine: Engine, rows: u64) -> Result<()> {
    let name = engine.name();
    hosted::run_all(
        connection,
        &[
            format!("CREATE DATABASE batched_{name}"),
            format!("USE batched_{name}"),
            format!(
                "CREATE TABLE found (id INT PRIMARY KEY, k INT NOT NULL, pad CHAR(80) NOT NULL) ENGINE={name}"
            ),
            format!("CREATE TABLE asked (n INT PRIMARY KEY, k INT NOT NULL) ENGINE={name}"),
            format!(
                "INSERT INTO found SELECT seq, seq * {SCATTER} % {rows}, SHA2(seq, 256) FROM seq_1_to_{rows}"
            ),
            "ALTER TABLE found ADD KEY k (k)".to_owned(),
            format!("INSERT INTO asked SELECT seq, seq * 48271 % {rows} FROM seq_1_to_{rows}"),
            "ANALYZE TABLE found, asked".to_owned(),
        ],
    )
}

/// Runs the join with the session's settings, and returns its answer and its time.
fn join(connection: &mut Conn) -> Result<((u64, u64, String), Duration)> {
    let sql = "SELECT COUNT(*), SUM(id), MAX(pad) FROM asked STRAIGHT_JOIN found FORCE INDEX (k) \
               ON found.k = asked.k AND found.pad <> asked.n";
    if interrupt::requested() {
        return Err(HarnessError::Interrupted);
    }
    let begun = Instant::now();
    let answer = connection.query_first(sql).running(sql)?;
    let took = begun.elapsed();
    let answer =
        answer.ok_or_else(|| HarnessError::Server("a join without an answer".to_owned()))?;
    Ok((answer, took))
}

fn set(connection: &mut Conn, settings: &str) -> Result<()> {
    hosted::run_all(connection, &[settings.to_owned()])
}

/// Measures one engine, and returns its answer too.
fn measure(
    server: &Hosted,
    engine: Engine,
    rows: u64,
    told: &mut impl FnMut(&str),
) -> Result<((u64, u64, String), Figures)> {
    let mut connection = server.connect(None)?;
    told(&format!("filling the tables of {}", engine.name()));
    fill(&mut connection, engine, rows)?;
    told("joining row by row");
    set(&mut connection, SINGLE)?;
    let (answer, single) = join(&mut connection)?;
    told("joining by batches");
    set(&mut connection, BATCHED)?;
    let mut batched = Duration::MAX;
    for _ in 0..RUNS {
        let (again, took) = join(&mut connection)?;
        if again != answer {
            let both = format!("{again:?} by batches, {answer:?} row by row");
            return Err(HarnessError::Server(format!(
                "{} answers {both}",
                engine.name()
            )));
        }
        batched = batched.min(took);
    }
    Ok((answer, Figures { single, batched }))
}

/// Runs the joins of both engines on a server that has just been started.
///
/// # Errors
/// When the server does not answer, or two answers differ; [`HarnessError::Interrupted`].
pub fn run(request: &Request, server: &Hosted, mut told: impl FnMut(&str)) -> Result<Outcome> {
    interrupt::flag();
    let (wanted, innodb) = measure(server, Engine::InnoDb, request.rows, &mut told)?;
    let (got, peregrine) = measure(server, Engine::Peregrine, request.rows, &mut told)?;
    if got != wanted || wanted.0 == 0 {
        return Err(HarnessError::Server(format!(
            "InnoDB answers {wanted:?}, Peregrine {got:?}"
        )));
    }
    Ok(Outcome {
        rows: request.rows,
        cache: server.settings().cache_bytes,
        innodb,
        peregrine,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_must_be_faster_than_rows_and_than_innodb() {
        let figures = |single, batched| Figures {
            single: Duration::from_secs(single),
            batched: Duration::from_secs(batched),
        };
        let outcome = |innodb, peregrine| Outcome {
            rows: 1,
            cache: 0,
            innodb,
            peregrine,
        };
        assert!(outcome(figures(50, 7), figures(14, 7)).held());
        assert!(!outcome(figures(50, 7), figures(13, 7)).held());
        assert!(!outcome(figures(50, 6), figures(14, 7)).held());
    }
}
