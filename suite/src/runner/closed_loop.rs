//! The load generator: one thread per session, each asking its next question when it has the answer
//! to the last (a closed loop), all beginning together.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Barrier;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::error::{Result, SuiteError};
use crate::normal::Answers;
use crate::target::{placement, Engine, Placement, Protocol, Session};
use crate::workload::client::Done;
use crate::workload::{Client, Counters, Workload};

/// After this many failed queries a thread gives up for the rest of the run.
pub(super) const MOST_ERRORS: u64 = 20;

/// What is asked in one run.
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
    /// The engine whose tables are asked.
    pub engine: Engine,
    /// How statements travel.
    pub protocol: Protocol,
    /// The seed of the parameters.
    pub seed: u64,
    /// Where client and server threads run.
    pub placement: Placement,
    /// Which run of the cell: each has its own parameters, the same for every engine.
    pub run: u32,
}

/// What a run found.
#[derive(Debug, Clone)]
pub struct Measured {
    /// From the common start to the last answer, by the wall clock.
    pub time: Duration,
    /// What the transactions came to.
    pub tally: Tally,
    /// By the number of a transaction: its part. All together are the whole.
    pub kinds: BTreeMap<usize, Latencies>,
    /// By the number of a transaction that ran beside: how many were done.
    pub beside: BTreeMap<usize, u64>,
}

/// Latencies in microseconds, from a transaction's first statement to its last row.
pub type Latencies = Histogram<u64>;

/// What transactions came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// Transactions done, with right or wrong answers.
    pub transactions: u64,
    /// Their statements.
    pub statements: u64,
    /// Transactions that ended in a rollback, as they were meant to.
    pub rolled_back: u64,
    /// Conflicts after which a transaction was begun anew, by the server's error code.
    pub conflicts: BTreeMap<u16, u64>,
    /// Transactions that failed.
    pub errors: u64,
    /// Transactions with a wrong answer.
    pub wrong: u64,
    /// The first thing that was wrong or failed.
    pub problem: Option<String>,
}

impl Tally {
    pub(super) fn add(&mut self, done: Done) {
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

    pub(super) fn merge(&mut self, other: Self) {
        self.charge(&other);
        self.transactions += other.transactions;
        self.statements += other.statements;
        self.rolled_back += other.rolled_back;
        for (code, count) in other.conflicts {
            *self.conflicts.entry(code).or_default() += count;
        }
    }

    /// Counts what was wrong with others as wrong with these.
    pub(super) fn charge(&mut self, others: &Self) {
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
    /// When there is no memory for them.
    pub fn latencies(&self) -> Result<Latencies> {
        let mut all = latencies()?;
        for kind in self.kinds.values() {
            all.add(kind).map_err(|_| thread_failed())?;
        }
        Ok(all)
    }
}

fn latencies() -> Result<Latencies> {
    // Three significant figures; the range grows by itself.
    Histogram::new(3).map_err(|error| SuiteError::Server(error.to_string()))
}

fn thread_failed() -> SuiteError {
    SuiteError::Server("a client thread failed".to_owned())
}

/// One thread's part.
struct Part {
    begun: Instant,
    ended: Instant,
    tally: Tally,
    kinds: BTreeMap<usize, Latencies>,
}

/// The processors that threads are kept on, by turns; none: wherever the scheduler likes.
fn places(placement: Placement) -> Vec<Vec<usize>> {
    let processors = placement::processors();
    let mut places: Vec<Vec<usize>> = match placement {
        Placement::Paired => processors.chunks(1).map(<[usize]>::to_vec).collect(),
        Placement::Free => vec![processors],
    };
    places.retain(|place| !place.is_empty());
    places
}

/// Makes sessions ready to be asked.
///
/// # Errors
/// When one can't be made ready.
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

/// Asks `question` on every session at once for `time`, when [`make_ready`] has been called; a query that
/// has begun when the time is over is waited for and counted.
///
/// # Errors
/// When a thread fails; [`SuiteError::Interrupted`] when `stop` was set meanwhile.
pub fn measure(
    sessions: &mut [Box<dyn Session>],
    question: &Question<'_>,
    time: Duration,
    stop: &AtomicBool,
) -> Result<Measured> {
    let places = places(question.placement);
    let threads = sessions.len() as u64;
    let barrier = Barrier::new(sessions.len());
    let parts: Vec<Option<Part>> = std::thread::scope(|scope| {
        let workers: Vec<_> = sessions
            .iter_mut()
            .enumerate()
            .map(|(worker, session)| {
                let barrier = &barrier;
                let client = Client::new(
                    question.workload,
                    question.counters,
                    question.answers,
                    (question.seed, stream(question, threads, worker as u64)),
                    (worker as u64, threads),
                );
                let place = places.get(worker % places.len().max(1));
                scope.spawn(move || {
                    // Where that is refused the thread runs anywhere, as it would without.
                    let _ = place.map(|place| placement::keep_on(None, place));
                    work(session.as_mut(), question, client, time, barrier, stop)
                })
            })
            .collect();
        workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or(None))
            .collect()
    });
    if stop.load(Ordering::Relaxed) {
        return Err(SuiteError::Interrupted);
    }
    merge(parts)
}

fn work(
    session: &mut dyn Session,
    question: &Question<'_>,
    mut client: Client<'_>,
    time: Duration,
    barrier: &Barrier,
    stop: &AtomicBool,
) -> Option<Part> {
    let among = question.workload.transactions_of(question.cell);
    let kinds: Result<BTreeMap<usize, Latencies>> =
        among.iter().map(|at| Ok((*at, latencies()?))).collect();
    barrier.wait();
    let begun = Instant::now();
    let deadline = begun + time;
    let mut part = Part {
        begun,
        ended: begun,
        tally: Tally::default(),
        kinds: kinds.ok()?,
    };
    while !stop.load(Ordering::Relaxed) {
        let transaction = client.choose(&among);
        let asked = Instant::now();
        let result = client.run(transaction, session);
        part.ended = Instant::now();
        match result {
            Ok(done) => {
                let latency = part.ended.duration_since(asked).as_micros();
                if let Some(kind) = part.kinds.get_mut(&transaction) {
                    // The histogram grows to hold it, so this can't fail.
                    let _ = kind.record(u64::try_from(latency).unwrap_or(u64::MAX));
                }
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
        let think = Duration::from_millis(client.think_ms(transaction));
        if !think.is_zero() {
            std::thread::sleep(think.min(deadline.duration_since(part.ended)));
            if Instant::now() >= deadline {
                break;
            }
        }
    }
    Some(part)
}

fn merge(parts: Vec<Option<Part>>) -> Result<Measured> {
    let mut merged: Option<Part> = None;
    for part in parts {
        let part = part.ok_or_else(thread_failed)?;
        merged = Some(match merged {
            None => part,
            Some(mut all) => {
                all.begun = all.begun.min(part.begun);
                all.ended = all.ended.max(part.ended);
                all.tally.merge(part.tally);
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
    })
}

/// The stream of a thread's parameters: every cell, ladder step, run and thread has its own, and no
/// engine has.
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
mod tests {
    use super::*;
    use crate::normal::{Generator, Query};
    use crate::target::fake::{workload, Behaviour, FakeSession, SLOW};

    fn ask(
        query: Query,
        threads: usize,
        behaviour: Behaviour,
        stop: &AtomicBool,
    ) -> Result<Measured> {
        let generator = Generator::new(2, 300);
        let answers = Answers::compute(&generator, |_| ());
        let mut sessions: Vec<Box<dyn Session>> = (0..threads)
            .map(|_| -> Box<dyn Session> { Box::new(FakeSession::new(&generator, behaviour)) })
            .collect();
        let workload = workload(300);
        let question = Question {
            workload: &workload,
            cell: query.name(),
            counters: &Counters::default(),
            answers: Some(&answers),
            engine: Engine::InnoDb,
            protocol: Protocol::Text,
            placement: Placement::Paired,
            seed: 3,
            run: 1,
        };
        make_ready(&mut sessions, &question)?;
        measure(&mut sessions, &question, Duration::from_millis(30), stop)
    }

    #[test]
    fn right_answers_are_counted_and_timed() {
        for query in Query::ALL {
            let measured =
                ask(query, 3, Behaviour::Right, &AtomicBool::new(false)).expect("measured");
            assert_eq!(
                (measured.tally.errors, measured.tally.wrong),
                (0, 0),
                "{:?}",
                measured.tally.problem
            );
            assert!(measured.tally.transactions >= 3);
            let latencies = measured.latencies().expect("latencies");
            assert_eq!(latencies.len(), measured.tally.transactions);
            assert!(measured.time >= Duration::from_millis(30));
            assert_eq!(measured.tally.statements, measured.tally.transactions);
        }
    }

    #[test]
    fn latencies_are_those_of_the_answers_however_long() {
        let measured =
            ask(Query::ReadFts, 2, Behaviour::Slow, &AtomicBool::new(false)).expect("measured");
        let latencies = measured.latencies().expect("latencies");
        let slept = u64::try_from(SLOW.as_micros()).expect("a time");
        // Three significant figures are kept.
        assert!(latencies.min() >= slept * 999 / 1_000);
        let whole = u64::try_from(measured.time.as_micros()).expect("a time");
        assert!(latencies.max() <= whole * 1_001 / 1_000 + 1);
    }

    #[test]
    fn every_injected_wrong_answer_is_reported() {
        for query in Query::ALL {
            for behaviour in [
                Behaviour::OneRowLess,
                Behaviour::OneRowMore,
                Behaviour::OneValueOff,
            ] {
                let measured = ask(query, 2, behaviour, &AtomicBool::new(false)).expect("measured");
                assert_eq!(
                    measured.tally.wrong, measured.tally.transactions,
                    "{query:?} {behaviour:?}"
                );
                let problem = measured.tally.problem.expect("told");
                assert!(problem.contains(query.name()), "{problem}");
            }
        }
    }

    #[test]
    fn failing_queries_are_counted_and_do_not_go_on_for_ever() {
        let measured = ask(
            Query::ReadPkPoint,
            2,
            Behaviour::Fails,
            &AtomicBool::new(false),
        )
        .expect("measured");
        assert_eq!(measured.tally.transactions, 0);
        assert_eq!(measured.tally.errors, 2 * MOST_ERRORS);
        assert!(measured.tally.problem.expect("told").contains("as asked"));
    }

    #[test]
    fn an_interrupted_run_is_no_result() {
        let result = ask(
            Query::ReadPkPoint,
            2,
            Behaviour::Right,
            &AtomicBool::new(true),
        );
        assert!(matches!(result, Err(SuiteError::Interrupted)));
    }
}
