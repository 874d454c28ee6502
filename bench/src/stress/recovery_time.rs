//! The time from a server's start to its first answer, after it was killed under full write load.
//!
//! It must be within the user's target.

use std::fmt;
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;

use super::load::write_load::{
    SCHEMA, {self},
};
use peregrine_harness::engines::hosted::{
    Hosted, {self},
};
use peregrine_harness::error::{HarnessError, Result, StatementContext};
use peregrine_harness::interrupt;

/// The interval at which the test asks the server for its log's length.
const LOOK: Duration = Duration::from_millis(200);

/// The test kills the server when the log since the last checkpoint reaches this part of its maximum.
///
/// The worst moment is right before the end of a checkpoint.
const NEARLY: f64 = 0.85;

/// The maximum factor by which the server's estimate may be wrong, after it has measured a recovery.
const MOST_WRONG: f64 = 3.0;

/// A request to run the test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Request {
    /// The value of `peregrine_recovery_target_seconds`.
    pub target: Duration,
    /// The number of rows of the table.
    pub rows: u32,
    /// The number of writers.
    pub writers: u32,
    /// The number of rows that one statement updates.
    pub rows_a_statement: u32,
    /// The maximum time for which they write before a kill.
    pub lifetime: Duration,
    /// The number of kills.
    pub kills: u32,
    /// The number of rows of another transaction, which is not committed when the server is killed.
    pub open_rows: u32,
}

/// One kill.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Round {
    /// Bytes logged since the last complete checkpoint, at the kill.
    pub log_bytes: u64,
    /// The maximum number of bytes between two checkpoints before the kill.
    pub longest_log: u64,
    /// The number of checkpoints completed before the kill.
    pub checkpoints: u64,
    /// The server's estimate of the recovery right before the kill, in seconds.
    pub expected_s: u64,
    /// Seconds from the start to the first answer.
    pub ready_s: f64,
}

impl Round {
    /// Returns whether recovery took about as long as the server had estimated; the estimate is rounded up to seconds.
    fn was_expected(&self) -> bool {
        let expected = self.expected_s as f64;
        self.ready_s <= expected * MOST_WRONG && expected - 1.0 <= self.ready_s * MOST_WRONG
    }
}

/// The outcome of the test.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The request.
    pub request: Request,
    /// The kills.
    pub rounds: Vec<Round>,
    /// Seconds of a start without recovery.
    pub plain_s: f64,
}

impl Outcome {
    /// The maximum time from start to first answer, in seconds.
    #[must_use]
    pub fn longest_s(&self) -> f64 {
        self.rounds.iter().map(|r| r.ready_s).fold(0.0, f64::max)
    }

    /// Returns whether the server answered in time after each kill, had something to recover, and estimated the time
    /// about right.
    #[must_use]
    pub fn held(&self) -> bool {
        !self.rounds.is_empty()
            && self.rounds.iter().all(|round| round.log_bytes > 0)
            && self.longest_s() <= self.request.target.as_secs_f64()
            && self.rounds.iter().skip(1).all(Round::was_expected)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let each: Vec<String> = self
            .rounds
            .iter()
            .map(|round| {
                format!(
                    "{:.1} s for {} MB of log (expected {} s)",
                    round.ready_s,
                    round.log_bytes >> 20,
                    round.expected_s
                )
            })
            .collect();
        write!(
            f,
            "{}: Peregrine, killed {} times under {} writers{}: ready after {} (target {:.0} s, a start with nothing to \
             recover takes {:.1} s); at most {} MB of log between checkpoints",
            if self.held() { "held" } else { "NOT HELD" },
            self.rounds.len(),
            self.request.writers,
            if self.request.open_rows > 0 {
                format!(" and a transaction of {} rows", self.request.open_rows)
            } else {
                String::new()
            },
            each.join(", "),
            self.request.target.as_secs_f64(),
            self.plain_s,
            self.rounds.iter().map(|r| r.longest_log).max().unwrap_or(0) >> 20,
        )
    }
}

/// Runs the test on a server that has just been started with the target.
///
/// # Errors
/// When the server returns an error; [`HarnessError::Interrupted`].
pub fn run(server: &mut Hosted, request: &Request, mut told: impl FnMut(&str)) -> Result<Outcome> {
    write_load::Server::create(server, request.rows, request.rows_a_statement)?;
    let mut outcome = Outcome {
        request: *request,
        rounds: Vec::new(),
        plain_s: 0.0,
    };
    for number in 1..=request.kills {
        let round = round(server, request, &mut told)?;
        told(&format!(
            "kill {number} of {}: {} MB of log since the last of {} checkpoints, {} s expected, ready after {:.2} s",
            request.kills,
            round.log_bytes >> 20,
            round.checkpoints,
            round.expected_s,
            round.ready_s
        ));
        outcome.rounds.push(round);
    }
    server.stop()?;
    let begun = Instant::now();
    server.start_again()?;
    outcome.plain_s = begun.elapsed().as_secs_f64();
    Ok(outcome)
}

fn round(server: &mut Hosted, request: &Request, told: &mut dyn FnMut(&str)) -> Result<Round> {
    let mut asking = server.connect(None)?;
    let mut connections = Vec::new();
    for _ in 0..request.writers {
        connections.push(server.connect(Some(SCHEMA))?);
    }
    let open = match request.open_rows {
        0 => None,
        rows => Some(open_transaction(server.connect(Some(SCHEMA))?, rows)?),
    };
    let (rows, many) = (request.rows, request.rows_a_statement);
    let mut found = std::thread::scope(|scope| {
        for (number, connection) in (0_u64..).zip(connections) {
            // The writers end with the server. An earlier error would show in the rate of the log.
            let mut write = write_load::updates(connection, number, rows, many);
            scope.spawn(move || while write().is_ok() {});
        }
        let found = longest_log(&mut asking, request.lifetime, told);
        server.kill()?;
        found
    })?;
    drop(open);
    let begun = Instant::now();
    server.start_again()?;
    found.ready_s = begun.elapsed().as_secs_f64();
    Ok(found)
}

/// Waits until the log is nearly as long as it gets between checkpoints, or until the time is over.
fn longest_log(
    asking: &mut mysql::Conn,
    lifetime: Duration,
    told: &mut dyn FnMut(&str),
) -> Result<Round> {
    let until = Instant::now() + lifetime;
    let [mut checkpoints, mut at, _] = counters(asking)?;
    let first = checkpoints;
    let mut longest = 0;
    loop {
        interrupt::sleep(LOOK)?;
        let [now, logged, expected_s] = counters(asking)?;
        if now > checkpoints {
            // The first checkpoint began before all writers were at work.
            if checkpoints > first {
                longest = longest.max(logged - at);
            }
            told(&format!(
                "checkpoint after {} MB of log",
                (logged - at) >> 20
            ));
            (checkpoints, at) = (now, logged);
        }
        let since = logged - at;
        let worst = longest > 0 && since as f64 >= longest as f64 * NEARLY;
        if worst || Instant::now() >= until {
            return Ok(Round {
                log_bytes: since,
                longest_log: longest.max(since),
                checkpoints: checkpoints - first,
                expected_s,
                ready_s: 0.0,
            });
        }
    }
}

/// Returns the completed checkpoints, the logged bytes, and the seconds that recovery would take.
fn counters(asking: &mut mysql::Conn) -> Result<[u64; 3]> {
    let statement = "SHOW GLOBAL STATUS WHERE Variable_name IN ('Peregrine_checkpoints', \
                     'Peregrine_log_bytes_written', 'Peregrine_recovery_seconds')";
    let rows: Vec<(String, u64)> = asking.query(statement).running(statement)?;
    let of = |wanted: &str| {
        let row = rows
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(wanted));
        row.map(|(_, value)| *value)
            .ok_or_else(|| HarnessError::Server(format!("the server has no counter {wanted}")))
    };
    Ok([
        of("Peregrine_checkpoints")?,
        of("Peregrine_log_bytes_written")?,
        of("Peregrine_recovery_seconds")?,
    ])
}

/// Returns the connection of a transaction that has inserted this many rows and stays open.
fn open_transaction(mut connection: mysql::Conn, rows: u32) -> Result<mysql::Conn> {
    hosted::run_all(
        &mut connection,
        &[
            "CREATE TABLE IF NOT EXISTS open_rows (id int unsigned primary key, text varchar(100) not null) \
             ENGINE=Peregrine"
                .to_owned(),
            "BEGIN".to_owned(),
            format!("INSERT INTO open_rows SELECT seq, repeat('z', 100) FROM seq_1_to_{rows}"),
        ],
    )?;
    Ok(connection)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_server_expects_is_about_right_or_the_run_does_not_hold() {
        let round = |expected_s, ready_s| Round {
            log_bytes: 1,
            longest_log: 1,
            checkpoints: 1,
            expected_s,
            ready_s,
        };
        let mut outcome = Outcome {
            request: Request {
                target: Duration::from_secs(10),
                rows: 1,
                writers: 1,
                rows_a_statement: 1,
                lifetime: Duration::ZERO,
                kills: 2,
                open_rows: 1,
            },
            // At the first kill the server has not measured a recovery yet.
            rounds: vec![round(9, 0.5), round(6, 2.0)],
            plain_s: 0.1,
        };
        assert!(outcome.held());
        for wrong in [round(1, 3.1), round(8, 2.0), round(9, 10.5)] {
            outcome.rounds[1] = wrong;
            assert!(!outcome.held(), "{wrong:?}");
        }
        // The server rounds a part of a second up.
        outcome.rounds[1] = round(1, 0.1);
        assert!(outcome.held());
    }
}
