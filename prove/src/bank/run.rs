//! Runs tellers and auditors, with kills and restarts in between.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;

use super::outcome::Outcome;
use super::teller::{
    Attempt, ALL, {self},
};
use peregrine_harness::dice::Dice;
use peregrine_harness::engines::hosted::{
    Hosted, {self},
};
use peregrine_harness::engines::Engine;
use peregrine_harness::error::{HarnessError, Result, StatementContext};
use peregrine_harness::interrupt;

/// Auditors beside the tellers.
const AUDITORS: u32 = 2;

/// A request for a bank test.
#[derive(Debug, Clone)]
pub struct Request {
    /// The number of tellers.
    pub threads: u32,
    /// The total duration.
    pub duration: Duration,
    /// Time between kills of the server, or `None` for no kills.
    pub kill_every: Option<Duration>,
    /// The seed.
    pub seed: u64,
    /// The engine of the tables.
    pub engine: Engine,
    /// Statements to run in every session.
    pub prepare: Vec<String>,
}

/// State that tellers and auditors share.
#[derive(Default)]
struct Day {
    over: AtomicBool,
    transfers: AtomicU64,
    refused: AtomicU64,
    right: AtomicU64,
    wrong: Mutex<Vec<String>>,
    failed: Mutex<Vec<String>>,
}

/// Runs the test on a server that has just been started.
///
/// # Errors
/// When the server can't be reached or restarted; [`HarnessError::Interrupted`].
pub fn run(request: &Request, server: &mut Hosted) -> Result<Outcome> {
    interrupt::flag();
    let mut connection = server.connect(None)?;
    let tables = teller::tables(request.engine.sql_name(), request.threads);
    hosted::run_all(&mut connection, &tables)?;
    drop(connection);
    let begun = Instant::now();
    let day = Day::default();
    let mut outcome = Outcome {
        engine: Some(request.engine),
        threads: request.threads,
        ..Outcome::default()
    };
    // For each teller, the last number that may be in its book and the last number acknowledged.
    let mut numbers = vec![(0_u64, 0_u64); request.threads as usize];
    let mut shift = 0_u64;
    while begun.elapsed() < request.duration && outcome.faults.is_empty() {
        if interrupt::requested() {
            return Err(HarnessError::Interrupted);
        }
        let left = request.duration.saturating_sub(begun.elapsed());
        let (length, kills) = match request.kill_every {
            Some(every) if every < left => (every, true),
            _ => (left, false),
        };
        let ended = work(request, server, &day, &numbers, shift, length, kills)?;
        shift += 1;
        if kills {
            outcome.kills += 1;
            let restart = Instant::now();
            server.start_again()?;
            outcome.longest_restart_s = outcome
                .longest_restart_s
                .max(restart.elapsed().as_secs_f64());
        }
        numbers = ended;
        check_books(server, &mut numbers, &mut outcome)?;
        let mut connection = server.connect(None)?;
        count(teller::audit(&mut connection), &day);
        for list in [&day.wrong, &day.failed] {
            if list.lock().map_or(true, |list| !list.is_empty()) {
                day.over.store(true, Ordering::Relaxed);
            }
        }
        if day.over.load(Ordering::Relaxed) {
            break;
        }
    }
    outcome.faults.extend(server.engine_errors());
    outcome.seconds = begun.elapsed().as_secs_f64();
    outcome.transfers = day.transfers.load(Ordering::Relaxed);
    outcome.refused = day.refused.load(Ordering::Relaxed);
    outcome.right = day.right.load(Ordering::Relaxed);
    outcome.wrong = day.wrong.into_inner().unwrap_or_default();
    outcome
        .faults
        .extend(day.failed.into_inner().unwrap_or_default());
    Ok(outcome)
}

/// Runs tellers and auditors for `length`, kills the server if `kills` is true, and returns every teller's numbers.
fn work(
    request: &Request,
    server: &mut Hosted,
    day: &Day,
    numbers: &[(u64, u64)],
    shift: u64,
    length: Duration,
    kills: bool,
) -> Result<Vec<(u64, u64)>> {
    let mut connections = Vec::new();
    for _ in 0..request.threads + AUDITORS {
        let mut connection = server.connect(None)?;
        let level = "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ";
        connection.query_drop(level).running(level)?;
        hosted::run_all(&mut connection, &request.prepare)?;
        connections.push(connection);
    }
    let stop = AtomicBool::new(false);
    let stop = &stop;
    let (ended, killed) = std::thread::scope(|scope| {
        let mut workers = Vec::new();
        for (worker, mut connection) in (0_u32..).zip(connections) {
            let before = numbers.get(worker as usize).copied();
            let mut dice = Dice::new(request.seed, (shift << 32) | u64::from(worker));
            workers.push(scope.spawn(move || match before {
                Some(before) => Some(tell(&mut connection, &mut dice, worker, before, day, stop)),
                None => {
                    while !stop.load(Ordering::Relaxed) {
                        if !count(teller::audit(&mut connection), day) {
                            break;
                        }
                    }
                    None
                }
            }));
        }
        let begun = Instant::now();
        while begun.elapsed() < length && !interrupt::requested() && !has_failed(day) {
            std::thread::sleep(Duration::from_millis(20).min(length));
        }
        // A worker that ends before `stop` is set has found a fault or has lost its connection.
        let early = workers.iter().any(|worker| worker.is_finished());
        if early && !has_failed(day) && !interrupt::requested() {
            note(&day.failed, "a connection went by itself".to_owned());
        }
        let killed = if kills { server.kill() } else { Ok(()) };
        stop.store(true, Ordering::Relaxed);
        let ended: Vec<_> = workers
            .into_iter()
            .map(|worker| worker.join().ok())
            .collect();
        (ended, killed)
    });
    killed?;
    let mut numbers = Vec::new();
    for worker in ended {
        match worker {
            Some(Some(ended)) => numbers.push(ended),
            Some(None) => {}
            None => return Err(HarnessError::Server("a thread failed".to_owned())),
        }
    }
    Ok(numbers)
}

fn has_failed(day: &Day) -> bool {
    [&day.wrong, &day.failed]
        .iter()
        .any(|list| list.lock().map_or(true, |list| !list.is_empty()))
}

fn tell(
    connection: &mut mysql::Conn,
    dice: &mut Dice,
    teller: u32,
    (mut used, mut acknowledged): (u64, u64),
    day: &Day,
    stop: &AtomicBool,
) -> (u64, u64) {
    let mut in_doubt = false;
    while !stop.load(Ordering::Relaxed) {
        used += 1;
        match teller::transfer(connection, dice, teller, used) {
            Attempt::Done(()) => {
                acknowledged = used;
                day.transfers.fetch_add(1, Ordering::Relaxed);
            }
            Attempt::Refused => {
                day.refused.fetch_add(1, Ordering::Relaxed);
            }
            Attempt::Gone(asked) => {
                in_doubt = asked;
                break;
            }
            Attempt::Failed(error) => {
                note(&day.failed, format!("teller {teller}: {error}"));
                break;
            }
        }
    }
    // A refused transfer, or one without a sent COMMIT, can't be in the book.
    (if in_doubt { used } else { acknowledged }, acknowledged)
}

/// Counts an audit; returns false if the auditor must stop.
fn count(audit: Attempt<i64>, day: &Day) -> bool {
    match audit {
        Attempt::Done(ALL) => {
            day.right.fetch_add(1, Ordering::Relaxed);
            true
        }
        Attempt::Done(other) => {
            note(&day.wrong, format!("{other} instead of {ALL}"));
            false
        }
        Attempt::Refused => true,
        Attempt::Gone(_) => false,
        Attempt::Failed(error) => {
            note(&day.failed, format!("audit: {error}"));
            false
        }
    }
}

fn note(list: &Mutex<Vec<String>>, text: String) {
    if let Ok(mut list) = list.lock() {
        list.push(text);
    }
}

/// Checks that each teller's book has the last acknowledged transfer, or the transfer that ran when the server was
/// killed.
fn check_books(server: &Hosted, numbers: &mut [(u64, u64)], outcome: &mut Outcome) -> Result<()> {
    let statement = "SELECT teller, transfers FROM bank_a.books ORDER BY teller";
    let books: Vec<(usize, u64)> = server.connect(None)?.query(statement).running(statement)?;
    outcome.faults.extend(compared(&books, numbers));
    Ok(())
}

/// Returns the faults in the books; each teller must have exactly one.
///
/// Takes the numbers in the books as the acknowledged ones for the next check.
fn compared(books: &[(usize, u64)], numbers: &mut [(u64, u64)]) -> Vec<String> {
    let tellers: Vec<usize> = books.iter().map(|(teller, _)| *teller).collect();
    if !tellers.iter().copied().eq(0..numbers.len()) {
        let count = numbers.len();
        return vec![format!(
            "there are books of tellers {tellers:?}, and {count} tellers"
        )];
    }
    let mut faults = Vec::new();
    for ((teller, found), (used, acknowledged)) in books.iter().zip(numbers) {
        if found != acknowledged && found != used {
            faults.push(format!(
                "teller {teller}'s book has transfer {found}, the last acknowledged is {acknowledged}"
            ));
        }
        *acknowledged = *found;
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_book_that_is_missing_is_a_fault() {
        let mut numbers = [(7, 6), (3, 3)];
        assert!(compared(&[(0, 7), (1, 3)], &mut numbers).is_empty());
        assert_eq!(numbers, [(7, 7), (3, 3)]);
        for books in [
            &[][..],
            &[(0, 7)],
            &[(0, 7), (2, 3)],
            &[(0, 7), (1, 3), (2, 0)],
        ] {
            assert_eq!(compared(books, &mut numbers).len(), 1, "{books:?}");
        }
        assert_eq!(compared(&[(0, 6), (1, 3)], &mut numbers).len(), 1);
    }
}
