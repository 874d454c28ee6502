//! The load generator: one thread for each session.
//!
//! All begin together, and each asks at its [`Pace`].

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Barrier;
use std::thread::Thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use super::live_counters::{Counter, Glance, Steadiness};
use super::pace::{Arrivals, Pace};
use super::seconds::Seconds;
use crate::normal::Answers;
use crate::results::record::Second;
use crate::workload::client::Done;
use crate::workload::{Client, Counters, Workload};
use peregrine_harness::engines::{placement, Engine, Placement, Protocol, Session};
use peregrine_harness::error::{HarnessError, Result};

/// After this many failed transactions a thread ends its part of the run.
pub(in crate::runner) const MOST_ERRORS: u64 = 20;

/// How often the watcher looks at the clients' counters.
const LOOK: Duration = Duration::from_millis(100);

/// How clients ask and for how long.
pub struct Method<'a> {
    /// The length of the run; the maximum, if the run may end when the rate is steady.
    pub time: Duration,
    /// The test for a steady rate, if the run ends at a steady rate.
    pub until_steady: Option<Steadiness>,
    /// When clients ask.
    pub pace: Pace,
    /// Set when the user wants to stop.
    pub stop: &'a AtomicBool,
    /// Called several times a second with the clients' counters.
    pub look: &'a mut dyn FnMut(Glance),
}

/// The cell that clients ask in one run.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The workload.
    pub workload: &'a Workload,
    /// The transaction, or the mix of all.
    pub cell: &'a str,
    /// The workload's counters on this engine.
    pub counters: &'a Counters,
    /// The right answers, for workloads on table `normal`.
    pub answers: Option<&'a Answers>,
    /// The engine whose tables clients ask.
    pub engine: Engine,
    /// The protocol of the statements.
    pub protocol: Protocol,
    /// The seed of the parameters.
    pub seed: u64,
    /// The processors on which client and server threads run.
    pub placement: Placement,
    /// The number of the run.
    ///
    /// Each run has its own parameters, which are the same for every engine.
    pub run: u32,
}

/// The findings of a run.
#[derive(Debug, Clone)]
pub struct Measured {
    /// Wall-clock time from the common start to the last answer.
    pub time: Duration,
    /// The counts of the transactions.
    pub tally: Tally,
    /// The latencies of each transaction, by its number.
    ///
    /// Together they are all latencies.
    pub kinds: BTreeMap<usize, Latencies>,
    /// For each background transaction, by its number: how often it was done.
    pub beside: BTreeMap<usize, u64>,
    /// In an open loop: transactions that were due and did not begin, because all clients were busy.
    pub left: u64,
    /// Whether the run ended because the rate was steady.
    pub steady: bool,
    /// The transactions of each whole second.
    pub seconds: Vec<Second>,
}

/// Latencies in microseconds, until a transaction's last row.
///
/// They begin in a closed loop at its first statement, in an open loop when it is due.
pub type Latencies = Histogram<u64>;

/// The counts of transactions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// Transactions done, with right or wrong answers.
    pub transactions: u64,
    /// Their statements.
    pub statements: u64,
    /// Transactions that ended with an intended rollback.
    pub rolled_back: u64,
    /// Conflicts after which a client began a transaction again, by the server's error code.
    pub conflicts: BTreeMap<u16, u64>,
    /// Transactions that failed.
    pub errors: u64,
    /// Transactions with a wrong answer.
    pub wrong: u64,
    /// The first problem: a wrong answer or an error.
    pub problem: Option<String>,
}

impl Tally {
    pub(in crate::runner) fn add(&mut self, done: Done) {
        self.transactions += 1;
        self.statements += done.statements;
        self.rolled_back += u64::from(done.rolled_back);
        for (code, count) in done.conflicts {
            *self.conflicts.entry(code).or_default() += count;
        }
        if let Some(wrong) = done.wrong {
            self.wrong += 1;
            self.problem.get_or_insert(wrong);
        }
    }

    pub(in crate::runner) fn merge(&mut self, other: Self) {
        self.charge(&other);
        self.transactions += other.transactions;
        self.statements += other.statements;
        self.rolled_back += other.rolled_back;
        for (code, count) in other.conflicts {
            *self.conflicts.entry(code).or_default() += count;
        }
    }

    /// Adds the errors, wrong answers and first problem of other transactions.
    pub(in crate::runner) fn charge(&mut self, others: &Self) {
        self.errors += others.errors;
        self.wrong += others.wrong;
        if self.problem.is_none() {
            self.problem.clone_from(&others.problem);
        }
    }
}

impl Measured {
    /// The latencies of all transactions together.
    ///
    /// # Errors
    /// When memory for them can't be allocated.
    pub fn latencies(&self) -> Result<Latencies> {
        let mut all = latencies()?;
        for kind in self.kinds.values() {
            all.add(kind).map_err(|_| thread_failed())?;
        }
        Ok(all)
    }
}

fn latencies() -> Result<Latencies> {
    // Three significant figures; the histogram extends its range itself.
    Histogram::new(3).map_err(|error| HarnessError::Server(error.to_string()))
}

fn thread_failed() -> HarnessError {
    HarnessError::Server("a client thread failed".to_owned())
}

/// One thread's part.
struct Part {
    begun: Instant,
    ended: Instant,
    tally: Tally,
    kinds: BTreeMap<usize, Latencies>,
    seconds: Seconds,
}

/// Returns the processors that threads are bound to, in turn; if empty, the scheduler chooses.
fn places(placement: Placement) -> Vec<Vec<usize>> {
    let processors = placement::processors();
    let mut places: Vec<Vec<usize>> = match placement {
        Placement::Paired => processors.chunks(1).map(<[usize]>::to_vec).collect(),
        Placement::Free => vec![processors],
    };
    places.retain(|place| !place.is_empty());
    places
}

/// Prepares the sessions for a question.
///
/// # Errors
/// When a session can't be prepared.
pub fn make_ready(sessions: &mut [Box<dyn Session>], question: &Question<'_>) -> Result<()> {
    let places = places(question.placement);
    for (at, session) in sessions.iter_mut().enumerate() {
        session.prepare(
            question.engine,
            question.protocol,
            &question.workload.statements,
        )?;
        if !places.is_empty() {
            session.keep_on(&places[at % places.len()])?;
        }
    }
    Ok(())
}

/// Asks `question` on all sessions at once, as `method` defines; the caller calls [`make_ready`] first.
///
/// Waits for transactions that have begun before the end, and counts them.
///
/// # Errors
/// When a thread fails; [`HarnessError::Interrupted`] when the user stops the run.
pub fn measure(
    sessions: &mut [Box<dyn Session>],
    question: &Question<'_>,
    mut method: Method<'_>,
) -> Result<Measured> {
    let places = places(question.placement);
    let threads = sessions.len() as u64;
    let barrier = Barrier::new(sessions.len());
    let arrivals = Arrivals::new(method.pace, method.time);
    let counters: Vec<Counter> = sessions.iter().map(|_| Counter::default()).collect();
    let over = AtomicBool::new(false);
    let (ended, watcher) = (AtomicUsize::new(0), std::thread::current());
    let run = Run {
        question,
        time: method.time,
        pace: method.pace,
        barrier: &barrier,
        arrivals: &arrivals,
        over: &over,
        stop: method.stop,
    };
    let (parts, steady) = std::thread::scope(|scope| {
        let workers: Vec<_> = sessions
            .iter_mut()
            .zip(&counters)
            .enumerate()
            .map(|(worker, (session, counter))| {
                let client = Client::new(
                    question.workload,
                    question.counters,
                    question.answers,
                    (question.seed, stream(question, threads, worker as u64)),
                    (worker as u64, threads),
                )
                .until(run.stop);
                let place = places.get(worker % places.len().max(1));
                let (run, ended, watcher) = (&run, &ended, &watcher);
                scope.spawn(move || {
                    // If binding is refused, the thread runs on any processor.
                    let _ = place.map(|place| placement::keep_on(None, place));
                    let _told = Ended(ended, watcher);
                    work(session.as_mut(), run, client, counter)
                })
            })
            .collect();
        let all_ended = || ended.load(Ordering::Acquire) == workers.len();
        let steady = watch(&mut method, &counters, &over, all_ended);
        let parts: Vec<Option<Part>> = workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or(None))
            .collect();
        (parts, steady)
    });
    if method.stop.load(Ordering::Relaxed) {
        return Err(HarnessError::Interrupted);
    }
    Ok(Measured {
        left: arrivals.left(),
        steady,
        ..merge(parts, method.time)?
    })
}

/// The state that all clients of a run share.
struct Run<'a> {
    question: &'a Question<'a>,
    time: Duration,
    pace: Pace,
    barrier: &'a Barrier,
    arrivals: &'a Arrivals,
    /// Set when the run must end before its time.
    over: &'a AtomicBool,
    stop: &'a AtomicBool,
}

/// Wakes the watching thread when a client ends, also when the client panics.
struct Ended<'a>(&'a AtomicUsize, &'a Thread);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Release);
        self.1.unpark();
    }
}

/// Watches until all clients have ended.
///
/// Ends the run at a steady rate, if the method asks for that; returns whether it did.
fn watch(
    method: &mut Method<'_>,
    counters: &[Counter],
    over: &AtomicBool,
    all_ended: impl Fn() -> bool,
) -> bool {
    let begun = Instant::now();
    let mut steady = false;
    while !all_ended() {
        std::thread::park_timeout(LOOK);
        let now = Glance::at(begun.elapsed(), counters);
        (method.look)(now);
        let until = method.until_steady.as_mut();
        if !steady && until.is_some_and(|until| until.is_reached(now)) {
            steady = true;
            over.store(true, Ordering::Relaxed);
        }
        if method.stop.load(Ordering::Relaxed) {
            over.store(true, Ordering::Relaxed);
        }
    }
    (method.look)(Glance::at(begun.elapsed(), counters));
    steady
}

fn work(
    session: &mut dyn Session,
    run: &Run<'_>,
    mut client: Client<'_>,
    counter: &Counter,
) -> Option<Part> {
    let among = run.question.workload.transactions_of(run.question.cell);
    let kinds: Result<BTreeMap<usize, Latencies>> =
        among.iter().map(|at| Ok((*at, latencies()?))).collect();
    run.barrier.wait();
    let begun = run.arrivals.begin();
    let deadline = begun + run.time;
    let mut part = Part {
        begun,
        ended: begun,
        tally: Tally::default(),
        kinds: kinds.ok()?,
        seconds: Seconds::default(),
    };
    while !run.stop.load(Ordering::Relaxed) {
        let Some(due) = run.arrivals.next(run.over) else {
            break;
        };
        let transaction = client.choose(&among);
        let result = client.run(transaction, session);
        part.ended = Instant::now();
        match result {
            Ok(done) => {
                let latency = part.ended.duration_since(due).as_micros();
                let latency = u64::try_from(latency).unwrap_or(u64::MAX);
                if let Some(kind) = part.kinds.get_mut(&transaction) {
                    // The histogram grows to hold the value, so this can't fail.
                    let _ = kind.record(latency);
                }
                counter.count(latency);
                part.seconds
                    .count(part.ended.duration_since(begun), latency);
                part.tally.add(done);
            }
            Err(error) => {
                part.tally.errors += 1;
                part.tally.problem.get_or_insert_with(|| error.to_string());
                if part.tally.errors >= MOST_ERRORS {
                    break;
                }
            }
        }
        if part.ended >= deadline {
            break;
        }
        // In an open loop the clock says when to ask, so there is no think time.
        let think = match run.pace {
            Pace::Closed => Duration::from_millis(client.think_ms(transaction)),
            Pace::Open { .. } => Duration::ZERO,
        };
        if !think.is_zero() {
            std::thread::sleep(think.min(deadline.duration_since(part.ended)));
            if Instant::now() >= deadline {
                break;
            }
        }
    }
    Some(part)
}

fn merge(parts: Vec<Option<Part>>, time: Duration) -> Result<Measured> {
    let mut merged: Option<Part> = None;
    for part in parts {
        let part = part.ok_or_else(thread_failed)?;
        merged = Some(match merged {
            None => part,
            Some(mut all) => {
                all.begun = all.begun.min(part.begun);
                all.ended = all.ended.max(part.ended);
                all.tally.merge(part.tally);
                all.seconds.merge(&part.seconds);
                for (kind, more) in part.kinds {
                    match all.kinds.get_mut(&kind) {
                        Some(known) => known.add(&more).map_err(|_| thread_failed())?,
                        None => {
                            all.kinds.insert(kind, more);
                        }
                    }
                }
                all
            }
        });
    }
    let all = merged.ok_or_else(thread_failed)?;
    Ok(Measured {
        time: all.ended.duration_since(all.begun),
        tally: all.tally,
        kinds: all.kinds,
        beside: BTreeMap::new(),
        left: 0,
        steady: false,
        seconds: all.seconds.whole(time),
    })
}

/// The stream of a thread's parameters: each cell, number of threads, run and thread has its own, the same on all
/// engines.
fn stream(question: &Question<'_>, threads: u64, worker: u64) -> u64 {
    let cell = question
        .workload
        .cells()
        .iter()
        .position(|cell| *cell == question.cell)
        .unwrap_or(0) as u64;
    (cell << 48) | (threads << 32) | (u64::from(question.run) << 16) | worker
}

#[cfg(test)]
mod tests;
