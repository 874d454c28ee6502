//! Background load: transactions at a fixed rate, on sessions of their own, while others are measured.
//!
//! Every engine gets the same load by the clock, however fast it is. Each session has its own due times, at even
//! intervals, and waits for the next one. A session that is late begins at once. It skips the times that it has missed
//! except the last, so that a slow engine isn't flooded afterwards.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::load_generator::{Question, Tally, MOST_ERRORS};
use crate::workload::{Beside, Client, Workload};
use peregrine_harness::engines::{placement, Session};
use peregrine_harness::error::Result;

/// The background load that ran during some work.
#[derive(Debug, Default)]
pub struct Ran {
    /// For each transaction, by its number: how often it was done.
    pub done: BTreeMap<usize, u64>,
    /// Its errors, wrong answers and conflicts.
    pub tally: Tally,
}

/// The number of sessions that the background load needs.
#[must_use]
pub fn sessions(workload: &Workload) -> usize {
    let running = workload.running_beside();
    running.iter().map(|(_, how)| how.sessions as usize).sum()
}

/// Does `work` while the workload's background load runs on `sessions`; their number is that of [`sessions`].
///
/// # Errors
/// The errors of `work`, or when a session can't be prepared.
pub fn during<T>(
    sessions: &mut [Box<dyn Session>],
    question: &Question<'_>,
    work: impl FnOnce() -> Result<T>,
) -> Result<(T, Ran)> {
    let workload = question.workload;
    for session in sessions.iter_mut() {
        session.prepare(question.engine, question.protocol, &workload.statements)?;
        session.keep_on(&placement::processors())?;
    }
    let over = AtomicBool::new(false);
    let begun = Instant::now();
    let mut rest = sessions.iter_mut();
    let (worked, found) = std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for (transaction, how) in workload.running_beside() {
            for (number, session) in (0..how.sessions).zip(rest.by_ref()) {
                let mut client = Client::new(
                    workload,
                    question.counters,
                    None,
                    (question.seed, stream(question, transaction, number)),
                    (u64::from(number), u64::from(how.sessions)),
                );
                let times = Times::new(begun, how, number);
                let over = &over;
                let work = move || run(transaction, times, &mut client, session.as_mut(), over);
                threads.push((transaction, scope.spawn(work)));
            }
        }
        let worked = work();
        over.store(true, Ordering::Relaxed);
        for (_, thread) in &threads {
            thread.thread().unpark();
        }
        let found: Vec<_> = threads
            .into_iter()
            .map(|(transaction, thread)| (transaction, thread.join()))
            .collect();
        (worked, found)
    });
    let mut ran = Ran::default();
    for (transaction, tally) in found {
        let tally = tally.unwrap_or_else(|_| Tally {
            errors: 1,
            problem: Some("a thread beside failed".to_owned()),
            ..Tally::default()
        });
        *ran.done.entry(transaction).or_default() += tally.transactions;
        ran.tally.merge(tally);
    }
    Ok((worked?, ran))
}

/// The due times of a session's transactions.
#[derive(Debug, Clone, Copy)]
struct Times {
    due: Instant,
    apart: Duration,
}

impl Times {
    /// Creates the due times of the session with this number; the sessions take turns, and together keep the rate.
    fn new(begun: Instant, how: Beside, number: u32) -> Self {
        let apart_all = Duration::from_secs(1) / how.rate.max(1);
        Self {
            due: begun + apart_all * number,
            apart: apart_all * how.sessions,
        }
    }

    /// Sets the next due time, when it is `now`: skips missed times except the last.
    fn next(&mut self, now: Instant) {
        self.due += self.apart;
        let late = now.saturating_duration_since(self.due).as_nanos();
        let missed = late / self.apart.as_nanos().max(1);
        self.due += self.apart * u32::try_from(missed).unwrap_or(u32::MAX);
    }
}

fn run(
    transaction: usize,
    mut times: Times,
    client: &mut Client<'_>,
    session: &mut dyn Session,
    over: &AtomicBool,
) -> Tally {
    let mut tally = Tally::default();
    while wait_for(times.due, over) {
        match client.run(transaction, session) {
            Ok(done) => tally.add(done),
            Err(error) => {
                tally.errors += 1;
                tally
                    .problem
                    .get_or_insert_with(|| format!("beside: {error}"));
                if tally.errors >= MOST_ERRORS {
                    break;
                }
            }
        }
        if over.load(Ordering::Relaxed) {
            break;
        }
        times.next(Instant::now());
    }
    tally
}

/// Waits until a transaction is due; returns `false` when the work ends before that.
fn wait_for(due: Instant, over: &AtomicBool) -> bool {
    loop {
        let left = due.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        if over.load(Ordering::Relaxed) {
            return false;
        }
        std::thread::park_timeout(left);
    }
}

/// The stream of a session's random numbers: different from those of measured clients, and the same for every engine.
fn stream(question: &Question<'_>, transaction: usize, number: u32) -> u64 {
    let transaction = 0x8000 | transaction as u64;
    (transaction << 48) | (u64::from(question.run) << 16) | u64::from(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{workload_with, Behaviour, FakeSession};
    use crate::normal::Generator;
    use crate::workload::Counters;
    use peregrine_harness::engines::{Engine, Placement, Protocol};
    use peregrine_harness::error::HarnessError;

    /// Runs the toggles of `normal` on this many sessions at this rate, until `work` returns.
    fn beside<T>(
        writers: i64,
        writes: i64,
        behaviour: Behaviour,
        work: impl FnOnce() -> Result<T>,
    ) -> Result<(T, Ran)> {
        let generator = Generator::new(1, 100);
        let workload = workload_with(100, &[("writers", writers), ("writes", writes)]);
        let counters = Counters::default();
        let question = Question {
            workload: &workload,
            cell: "READ_FTS",
            counters: &counters,
            answers: None,
            engine: Engine::InnoDb,
            protocol: Protocol::Text,
            placement: Placement::Free,
            seed: 1,
            run: 1,
        };
        let mut sessions: Vec<Box<dyn Session>> = (0..sessions(&workload))
            .map(|_| -> Box<dyn Session> { Box::new(FakeSession::new(&generator, behaviour)) })
            .collect();
        during(&mut sessions, &question, work)
    }

    #[test]
    fn the_load_goes_on_until_the_work_is_done() {
        let time = Duration::from_millis(100);
        let begun = Instant::now();
        let ((), ran) = beside(3, 1_000, Behaviour::Right, || {
            std::thread::sleep(time);
            Ok(())
        })
        .expect("done");
        // Even on a slow machine: no more than the schedule has, and at least the first of each session.
        let most = begun.elapsed().as_millis() + 3;
        let done: u64 = ran.done.values().sum();
        assert!((3..=most).contains(&u128::from(done)), "{done} of {most}");
        assert_eq!((ran.tally.errors, ran.tally.wrong), (0, 0));
        assert_eq!(ran.tally.statements, 4 * done);
    }

    #[test]
    fn without_sessions_nothing_runs() {
        let (worked, ran) = beside(0, 1_000, Behaviour::Fails, || Ok(7)).expect("done");
        assert_eq!(worked, 7);
        assert!(ran.done.is_empty());
        assert_eq!(ran.tally, Tally::default());
    }

    #[test]
    fn errors_are_counted_and_do_not_go_on_for_ever() {
        let gave_up = Duration::from_millis(200);
        let ((), ran) = beside(2, 1_000_000, Behaviour::Fails, || {
            std::thread::sleep(gave_up);
            Ok(())
        })
        .expect("done");
        assert!((1..=2 * MOST_ERRORS).contains(&ran.tally.errors));
        let problem = ran.tally.problem.expect("told");
        assert!(problem.contains("beside") && problem.contains("as asked"));
    }

    #[test]
    fn the_works_own_error_comes_through() {
        let result = beside(2, 10, Behaviour::Right, || -> Result<()> {
            Err(HarnessError::Interrupted)
        });
        assert!(matches!(result, Err(HarnessError::Interrupted)));
    }

    #[test]
    fn who_is_late_catches_up_by_one() {
        let begun = Instant::now();
        let ms = Duration::from_millis;
        let how = Beside {
            sessions: 2,
            rate: 100,
        };
        let mut times = Times::new(begun, how, 1);
        assert_eq!((times.due, times.apart), (begun + ms(10), ms(20)));
        times.next(begun + ms(12));
        assert_eq!(times.due, begun + ms(30), "in time");
        times.next(begun + ms(51));
        assert_eq!(times.due, begun + ms(50), "late by less than one: at once");
        times.next(begun + ms(135));
        assert_eq!(times.due, begun + ms(130), "70, 90 and 110 are left out");
        times.next(begun + ms(136));
        assert_eq!(times.due, begun + ms(150), "and then as planned");
    }
}
