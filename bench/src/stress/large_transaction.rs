//! A transaction many times larger than the cache that commits, and another that rolls back, while other sessions work.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;

use super::size::Size;
use peregrine_harness::dice::Dice;
use peregrine_harness::engines::hosted::{
    Hosted, {self},
};
use peregrine_harness::engines::Engine;
use peregrine_harness::error::{Result, StatementContext};

/// The number of rows of one INSERT.
const AT_ONCE: u64 = 100_000;

/// The number of rows that the other sessions update.
const OTHERS: u32 = 10_000;

/// The outcome of the test.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The engine.
    pub engine: Engine,
    /// The number of rows of each large transaction.
    pub rows: u64,
    /// The size of the cache, in bytes.
    pub cache_bytes: u64,
    /// The maximum memory of the server, in bytes.
    pub memory_limit: u64,
    /// Seconds to insert and commit.
    pub commit_s: f64,
    /// Seconds to insert and roll back.
    pub rollback_s: f64,
    /// Seconds of ROLLBACK alone.
    pub rollback_alone_s: f64,
    /// The number of rows after the commit.
    pub after_commit: u64,
    /// The number of rows after the rollback.
    pub after_rollback: u64,
    /// The server's peak resident memory, in bytes.
    pub peak_memory: u64,
    /// The server's size before the transactions.
    pub before: Size,
    /// The server's size at the end.
    pub after: Size,
    /// Updates a second of the other sessions: alone, during the transaction that commits, and during the one that
    /// rolls back.
    pub others_per_second: [f64; 3],
    /// The number of errors of the other sessions.
    pub others_refused: u64,
}

impl Outcome {
    /// Returns whether both transactions ended as they should, memory stayed within the limit, and the others
    /// continued.
    #[must_use]
    pub fn held(&self) -> bool {
        self.after_commit == self.rows
            && self.after_rollback == self.rows
            && self.peak_memory <= self.memory_limit
            && self.others_refused == 0
            && self.others_per_second.iter().all(|rate| *rate > 0.0)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [alone, commit, rollback] = self.others_per_second;
        write!(
            f,
            "{}: {}, cache of {} MB: a transaction of {} rows commits after {:.1} s ({} rows there), another rolls \
             back after {:.1} s ({:.1} s of that in ROLLBACK; {} rows there); peak memory {} MB ({} MB allowed), \
             before {}, after {}; other sessions' updates a second: {alone:.0} alone, {commit:.0} and {rollback:.0} \
             beside, {} refused",
            if self.held() { "held" } else { "NOT HELD" },
            self.engine.title(),
            self.cache_bytes >> 20,
            self.rows,
            self.commit_s,
            self.after_commit,
            self.rollback_s,
            self.rollback_alone_s,
            self.after_rollback,
            self.peak_memory >> 20,
            self.memory_limit >> 20,
            self.before.megabytes(),
            self.after.megabytes(),
            self.others_refused,
        )
    }
}

/// Runs both transactions on a server that has just been started.
///
/// # Errors
/// When the server returns an error.
pub fn run(
    server: &Hosted,
    engine: Engine,
    rows: u64,
    others: u32,
    memory_limit: u64,
    mut told: impl FnMut(&str),
) -> Result<Outcome> {
    let mut connection = server.connect(None)?;
    let name = engine.sql_name();
    hosted::run_all(
        &mut connection,
        &[
            "CREATE DATABASE stress".to_owned(),
            "USE stress".to_owned(),
            format!(
                "CREATE TABLE large (id bigint unsigned primary key, k int unsigned not null, \
                 pad varchar(60) not null, key by_k (k)) ENGINE={name}"
            ),
            format!("CREATE TABLE others (id int unsigned primary key, n bigint not null) ENGINE={name}"),
            format!("INSERT INTO others SELECT seq, 0 FROM seq_1_to_{OTHERS}"),
        ],
    )?;
    let before = Size::of(server, engine)?;
    let beside = Others::start(server, others)?;
    let alone = beside.rate_over(Duration::from_secs(3));
    told("inserting, to commit");
    let meter = beside.meter();
    let begun = Instant::now();
    insert(&mut connection, 0, rows)?;
    connection.query_drop("COMMIT").running("COMMIT")?;
    let commit_s = begun.elapsed().as_secs_f64();
    let beside_commit = meter.rate();
    told("counting");
    let after_commit = count(&mut connection)?;
    told("inserting, to roll back");
    let meter = beside.meter();
    let begun = Instant::now();
    insert(&mut connection, rows, rows)?;
    let rolling = Instant::now();
    connection.query_drop("ROLLBACK").running("ROLLBACK")?;
    let rollback_alone_s = rolling.elapsed().as_secs_f64();
    let rollback_s = begun.elapsed().as_secs_f64();
    let beside_rollback = meter.rate();
    let others_refused = beside.stop();
    let after_rollback = count(&mut connection)?;
    Ok(Outcome {
        engine,
        rows,
        cache_bytes: server.settings().cache_bytes,
        memory_limit,
        commit_s,
        rollback_s,
        rollback_alone_s,
        after_commit,
        after_rollback,
        peak_memory: server.process()?.peak_resident_bytes().unwrap_or(0),
        before,
        after: Size::of(server, engine)?,
        others_per_second: [alone, beside_commit, beside_rollback],
        others_refused,
    })
}

/// Begins a transaction and inserts the rows; the second key is a multiplicative hash, so its order looks random.
fn insert(connection: &mut mysql::Conn, first: u64, rows: u64) -> Result<()> {
    connection.query_drop("BEGIN").running("BEGIN")?;
    let mut done = 0;
    while done < rows {
        let from = first + done + 1;
        let to = first + (done + AT_ONCE).min(rows);
        let statement = format!(
            "INSERT INTO large SELECT seq, (seq * 2654435761) & 0xffffff, concat('row number ', seq) \
             FROM seq_{from}_to_{to}"
        );
        connection.query_drop(&statement).running(&statement)?;
        done = to - first;
    }
    Ok(())
}

fn count(connection: &mut mysql::Conn) -> Result<u64> {
    let statement = "SELECT count(*) FROM large";
    Ok(connection
        .query_first(statement)
        .running(statement)?
        .unwrap_or(0))
}

/// Sessions that update rows of their own table, one row at a time.
struct Others {
    stop: std::sync::Arc<AtomicBool>,
    done: std::sync::Arc<AtomicU64>,
    refused: std::sync::Arc<AtomicU64>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

/// Measures the rate of updates from its creation on.
struct Meter<'a> {
    others: &'a Others,
    from: u64,
    begun: Instant,
}

impl Meter<'_> {
    fn rate(&self) -> f64 {
        let done = self.others.done.load(Ordering::Relaxed) - self.from;
        done as f64 / self.begun.elapsed().as_secs_f64().max(1e-3)
    }
}

impl Others {
    fn start(server: &Hosted, count: u32) -> Result<Self> {
        let mut others = Self {
            stop: std::sync::Arc::default(),
            done: std::sync::Arc::default(),
            refused: std::sync::Arc::default(),
            threads: Vec::new(),
        };
        for session in 0..count {
            let mut connection = server.connect(Some("stress"))?;
            let (stop, done, refused) = (
                others.stop.clone(),
                others.done.clone(),
                others.refused.clone(),
            );
            others.threads.push(std::thread::spawn(move || {
                let mut dice = Dice::new(1, u64::from(session));
                while !stop.load(Ordering::Relaxed) {
                    let id = 1 + dice.below(OTHERS);
                    let statement = format!("UPDATE others SET n = n + 1 WHERE id = {id}");
                    match connection.query_drop(statement) {
                        Ok(()) => done.fetch_add(1, Ordering::Relaxed),
                        Err(_) => refused.fetch_add(1, Ordering::Relaxed),
                    };
                }
            }));
        }
        Ok(others)
    }

    fn meter(&self) -> Meter<'_> {
        Meter {
            others: self,
            from: self.done.load(Ordering::Relaxed),
            begun: Instant::now(),
        }
    }

    fn rate_over(&self, time: Duration) -> f64 {
        let meter = self.meter();
        std::thread::sleep(time);
        meter.rate()
    }

    /// Ends the sessions and returns the number of their errors.
    fn stop(mut self) -> u64 {
        self.end();
        self.refused.load(Ordering::Relaxed)
    }

    fn end(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A thread that failed has reported that itself.
            let _ = thread.join();
        }
    }
}

impl Drop for Others {
    fn drop(&mut self) {
        self.end();
    }
}
