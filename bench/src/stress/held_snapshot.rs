//! A reader's snapshot that is held while writers update the same rows again and again.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;

use super::refusal;
use super::size::Size;
use peregrine_harness::dice::Dice;
use peregrine_harness::engines::hosted::{
    Hosted, {self},
};
use peregrine_harness::engines::Engine;
use peregrine_harness::error::{HarnessError, Result, StatementContext};
use peregrine_harness::interrupt::sleep;

/// Growth that counts as none, in bytes.
const SMALL: u64 = 64 << 20;

/// The wait ends after this many measurements in a row without any memory or disk space given back.
const STILL: u32 = 8;

/// The outcome of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The engine.
    pub engine: Engine,
    /// The number of rows of the table.
    pub rows: u32,
    /// The number of writers.
    pub writers: u32,
    /// Seconds that the snapshot was held.
    pub held_s: f64,
    /// Updates a second in the first fifth of the time.
    pub first: f64,
    /// Updates a second in the last fifth of the time.
    pub last: f64,
    /// The number of refused updates.
    pub refused: u64,
    /// The reader's answer at the end, compared with that at the beginning.
    pub seen: Seen,
    /// Seconds of the reader's last query, beside the writers.
    pub look_s: f64,
    /// The server's size before the snapshot, with the writers at work.
    pub before: Size,
    /// The size at the end, with the snapshot still held.
    pub during: Size,
    /// The size some time after the writers have stopped and the snapshot has ended.
    pub after: Size,
    /// Seconds from then until the size stopped shrinking.
    pub settled_s: f64,
    /// The maximum growth of disk and memory, in bytes.
    pub growth_limit: u64,
}

/// The reader's answer at the end of its snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// The same as at the beginning.
    OneState,
    /// Another answer.
    Another,
    /// No answer: the query took longer than allowed.
    Nothing,
}

impl Outcome {
    /// The ratio of the last throughput to the first.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        self.last / self.first.max(1e-9)
    }

    /// Returns whether throughput stayed, growth was bounded and given back, and the reader always saw the same state.
    #[must_use]
    pub fn held(&self) -> bool {
        let bounded = |before: u64, during: u64| during <= before + self.growth_limit;
        let given_back = |before: u64, during: u64, after: u64| {
            let grown = during.saturating_sub(before);
            after <= before + SMALL.max(grown / 2)
        };
        self.seen == Seen::OneState
            && self.ratio() >= 0.8
            && bounded(self.before.memory, self.during.memory)
            && bounded(self.before.disk, self.during.disk)
            && given_back(self.before.memory, self.during.memory, self.after.memory)
            && given_back(self.before.disk, self.during.disk, self.after.disk)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {}, snapshot held {:.0} s beside {} writers on {} rows: {:.0} updates a second in the first fifth, \
             {:.0} in the last ({:.2}), {} refused; before {}, during {}, after {} ({:.0} s later); the reader {}",
            if self.held() { "held" } else { "NOT HELD" },
            self.engine.title(),
            self.held_s,
            self.writers,
            self.rows,
            self.first,
            self.last,
            self.ratio(),
            self.refused,
            self.before.megabytes(),
            self.during.megabytes(),
            self.after.megabytes(),
            self.settled_s,
            match self.seen {
                Seen::OneState => format!("saw one state, its last look took {:.1} s", self.look_s),
                Seen::Another => "saw MORE THAN ONE STATE".to_owned(),
                Seen::Nothing => format!("SAW NOTHING within {:.0} s", self.look_s),
            },
        )
    }
}

/// A request to run the test.
#[derive(Debug, Clone, Copy)]
pub struct Request {
    /// The engine.
    pub engine: Engine,
    /// The number of rows of the table.
    pub rows: u32,
    /// The number of writers.
    pub writers: u32,
    /// The time for which the snapshot is held.
    pub hold: Duration,
    /// The maximum growth of disk and memory, in bytes.
    pub growth_limit: u64,
    /// The maximum time of the reader's last query, and of the wait for space to be given back.
    pub patience: Duration,
}

/// Runs the test on a server that has just been started.
///
/// # Errors
/// When the server returns an error.
pub fn run(server: &Hosted, request: &Request, mut told: impl FnMut(&str)) -> Result<Outcome> {
    let mut reader = server.connect(None)?;
    hosted::run_all(
        &mut reader,
        &[
            "CREATE DATABASE stress".to_owned(),
            "USE stress".to_owned(),
            format!(
                "CREATE TABLE held (id int unsigned primary key, n bigint not null, pad varchar(100) not null) \
                 ENGINE={}",
                request.engine.sql_name()
            ),
            format!(
                "INSERT INTO held SELECT seq, 0, repeat('x', 80) FROM seq_1_to_{}",
                request.rows
            ),
        ],
    )?;
    let mut connections = Vec::new();
    for _ in 0..request.writers {
        connections.push(server.connect(Some("stress"))?);
    }
    let stop = AtomicBool::new(false);
    let (done, refused) = (AtomicU64::new(0), AtomicU64::new(0));
    let failed = Mutex::new(None);
    let (stop_in, done_in, refused_in, failed_in) = (&stop, &done, &refused, &failed);
    let mut outcome = std::thread::scope(|scope| {
        for (writer, mut connection) in (0_u64..).zip(connections) {
            scope.spawn(move || {
                let mut dice = Dice::new(1, writer);
                while !stop_in.load(Ordering::Relaxed) {
                    let id = 1 + dice.below(request.rows);
                    let statement = format!("UPDATE held SET n = n + 1 WHERE id = {id}");
                    match connection.query_drop(statement) {
                        Ok(()) => done_in.fetch_add(1, Ordering::Relaxed),
                        Err(error) => match refusal::fault(&error) {
                            None => refused_in.fetch_add(1, Ordering::Relaxed),
                            Some(fault) => return note(failed_in, fault),
                        },
                    };
                }
            });
        }
        let held = hold(server, request, &mut reader, &done, &mut told);
        stop.store(true, Ordering::Relaxed);
        held
    })?;
    outcome.refused = refused.load(Ordering::Relaxed);
    if let Some(fault) = failed.into_inner().unwrap_or_default() {
        return Err(HarnessError::Server(fault));
    }
    told("waiting for what was kept for the reader to go");
    (outcome.after, outcome.settled_s) = settled(server, request, &mut told)?;
    Ok(outcome)
}

/// Keeps the first fault.
fn note(failed: &Mutex<Option<String>>, fault: String) {
    if let Ok(mut failed) = failed.lock() {
        failed.get_or_insert(fault);
    }
}

/// Holds the snapshot.
fn hold(
    server: &Hosted,
    request: &Request,
    reader: &mut mysql::Conn,
    done: &AtomicU64,
    told: &mut dyn FnMut(&str),
) -> Result<Outcome> {
    // First let caches and files reach their usual size.
    sleep(request.hold / 10)?;
    let before = Size::of(server, request.engine)?;
    told(&format!("holding the snapshot; {}", before.megabytes()));
    hosted::run_all(
        reader,
        &[
            "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ".to_owned(),
            "START TRANSACTION WITH CONSISTENT SNAPSHOT".to_owned(),
            // Reading the old versions of all rows can take too long to wait for.
            format!(
                "SET SESSION max_statement_time = {}",
                request.patience.as_secs_f64()
            ),
        ],
    )?;
    let seen = sum(reader)?;
    let fifth = request.hold / 5;
    let mut rate = |time: Duration| -> Result<f64> {
        let (from, begun) = (done.load(Ordering::Relaxed), Instant::now());
        sleep(time)?;
        let rate = (done.load(Ordering::Relaxed) - from) as f64 / begun.elapsed().as_secs_f64();
        let size = Size::of(server, request.engine)?;
        told(&format!("{rate:.0} updates a second; {}", size.megabytes()));
        Ok(rate)
    };
    let begun = Instant::now();
    let first = rate(fifth)?;
    for _ in 0..3 {
        rate(fifth)?;
    }
    let last = rate(fifth)?;
    let during = Size::of(server, request.engine)?;
    let held_s = begun.elapsed().as_secs_f64();
    told("the reader looks again");
    let look = Instant::now();
    let seen = match sum(reader) {
        Ok(now) if now == seen => Seen::OneState,
        Ok(_) => Seen::Another,
        Err(HarnessError::Sql { source, .. }) if is_timeout(&source) => Seen::Nothing,
        Err(error) => return Err(error),
    };
    let look_s = look.elapsed().as_secs_f64();
    reader.query_drop("COMMIT").running("COMMIT")?;
    Ok(Outcome {
        engine: request.engine,
        rows: request.rows,
        writers: request.writers,
        held_s,
        first,
        last,
        refused: 0,
        seen,
        look_s,
        before,
        during,
        after: Size::default(),
        settled_s: 0.0,
        growth_limit: request.growth_limit,
    })
}

fn sum(reader: &mut mysql::Conn) -> Result<Option<(u64, u64)>> {
    let statement = "SELECT count(*), cast(sum(n) AS unsigned) FROM held";
    reader.query_first(statement).running(statement)
}

/// Returns whether the statement ended because of its time limit.
fn is_timeout(error: &mysql::Error) -> bool {
    const STATEMENT_TIMEOUT: u16 = 1969;
    matches!(error, mysql::Error::MySqlError(error) if error.code == STATEMENT_TIMEOUT)
}

/// Waits until the server's size stops shrinking or the time is over, and returns the size and the seconds until then.
fn settled(server: &Hosted, request: &Request, told: &mut dyn FnMut(&str)) -> Result<(Size, f64)> {
    let step = Duration::from_secs(2).max(request.hold / 30);
    let begun = Instant::now();
    let mut minimum = Size::of(server, request.engine)?;
    let (mut still, mut settled_s) = (0, 0.0);
    while still < STILL && begun.elapsed() < request.patience {
        sleep(step)?;
        let now = Size::of(server, request.engine)?;
        still += 1;
        if now.disk < minimum.disk || now.memory < minimum.memory {
            (still, settled_s) = (0, begun.elapsed().as_secs_f64());
            told(&now.megabytes());
        }
        minimum = now.or_less(minimum);
    }
    Ok((minimum, settled_s))
}
