//! The load generator: one thread per session, each asking its next question when it has the answer
//! to the last (a closed loop), all beginning together.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Barrier;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::error::{Result, SuiteError};
use crate::normal::queries::Dice;
use crate::normal::{Answers, Check, Query};
use crate::target::{placement, Engine, Placement, Protocol, Session};

/// After this many failed queries a thread gives up for the rest of the run.
const MOST_ERRORS: u64 = 20;

/// What is asked in one run.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The right answers.
    pub answers: &'a Answers,
    /// The query.
    pub query: Query,
    /// The engine whose table is asked.
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
    /// Queries answered, rightly or wrongly.
    pub queries: u64,
    /// Queries that failed.
    pub errors: u64,
    /// Answers that were wrong.
    pub wrong: u64,
    /// The first thing that was wrong or failed.
    pub problem: Option<String>,
    /// Latencies in microseconds, from sending the statement to the last row.
    pub latencies: Histogram<u64>,
}

impl Measured {
    /// Queries per second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        let seconds = self.time.as_secs_f64();
        if seconds > 0.0 {
            let queries = self.queries as f64;
            queries / seconds
        } else {
            0.0
        }
    }
}

/// One thread's part.
struct Part {
    begun: Instant,
    ended: Instant,
    queries: u64,
    errors: u64,
    wrong: u64,
    problem: Option<String>,
    latencies: Histogram<u64>,
}

/// Asks `question` on every session at once for `time`; a query that has begun when the time is over
/// is waited for and counted.
///
/// # Errors
/// When a session can't be made ready; [`SuiteError::Interrupted`] when `stop` was set meanwhile.
pub fn measure(
    sessions: &mut [Box<dyn Session>],
    question: &Question<'_>,
    time: Duration,
    stop: &AtomicBool,
) -> Result<Measured> {
    let processors = placement::processors();
    let mut places: Vec<&[usize]> = match question.placement {
        Placement::Paired => processors.chunks(1).collect(),
        Placement::Free => vec![&processors],
    };
    places.retain(|place| !place.is_empty());
    for (at, session) in sessions.iter_mut().enumerate() {
        session.prepare(
            question.engine,
            question.protocol,
            question.query.statement(),
        )?;
        if !places.is_empty() {
            session.keep_on(places[at % places.len()])?;
        }
    }
    let threads = sessions.len() as u64;
    let barrier = Barrier::new(sessions.len());
    let parts: Vec<Option<Part>> = std::thread::scope(|scope| {
        let workers: Vec<_> = sessions
            .iter_mut()
            .enumerate()
            .map(|(worker, session)| {
                let barrier = &barrier;
                let stream = stream(question, threads, worker as u64);
                let place = places.get(worker % places.len().max(1)).copied();
                scope.spawn(move || {
                    // Where that is refused the thread runs anywhere, as it would without.
                    let _ = place.map(|place| placement::keep_on(None, place));
                    work(session.as_mut(), question, stream, time, barrier, stop)
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
    stream: u64,
    time: Duration,
    barrier: &Barrier,
    stop: &AtomicBool,
) -> Option<Part> {
    let mut dice = Dice::new(question.seed, stream);
    let mut check = Check::new(question.answers, question.query);
    // Three significant figures; the range grows by itself. Making it can't fail for 3.
    let latencies = Histogram::<u64>::new(3).ok();
    barrier.wait();
    let mut latencies = latencies?;
    let begun = Instant::now();
    let deadline = begun + time;
    let mut part = Part {
        begun,
        ended: begun,
        queries: 0,
        errors: 0,
        wrong: 0,
        problem: None,
        latencies: Histogram::new_from(&latencies),
    };
    while !stop.load(Ordering::Relaxed) {
        let parameters = question.query.draw(&mut dice, question.answers.rows());
        check.begin();
        let asked = Instant::now();
        let result = session.execute(&parameters, &mut check);
        part.ended = Instant::now();
        match result {
            Ok(()) => {
                part.queries += 1;
                let latency = part.ended.duration_since(asked).as_micros();
                // The histogram grows to hold it, so this can't fail.
                let _ = latencies.record(u64::try_from(latency).unwrap_or(u64::MAX));
                if let Err(what) = check.verdict(&parameters) {
                    part.wrong += 1;
                    part.problem.get_or_insert_with(|| {
                        format!(
                            "wrong answer to {} with {:?}: {what}",
                            question.query.name(),
                            parameters.values()
                        )
                    });
                }
            }
            Err(error) => {
                part.errors += 1;
                part.problem.get_or_insert_with(|| error.to_string());
                if part.errors >= MOST_ERRORS {
                    break;
                }
            }
        }
        if part.ended >= deadline {
            break;
        }
    }
    part.latencies = latencies;
    Some(part)
}

fn merge(parts: Vec<Option<Part>>) -> Result<Measured> {
    let failed = || SuiteError::Server("a client thread failed".to_owned());
    let mut merged: Option<Part> = None;
    for part in parts {
        let part = part.ok_or_else(failed)?;
        merged = Some(match merged {
            None => part,
            Some(mut all) => {
                all.begun = all.begun.min(part.begun);
                all.ended = all.ended.max(part.ended);
                all.queries += part.queries;
                all.errors += part.errors;
                all.wrong += part.wrong;
                all.problem = all.problem.or(part.problem);
                all.latencies.add(&part.latencies).map_err(|_| failed())?;
                all
            }
        });
    }
    let all = merged.ok_or_else(failed)?;
    Ok(Measured {
        time: all.ended.duration_since(all.begun),
        queries: all.queries,
        errors: all.errors,
        wrong: all.wrong,
        problem: all.problem,
        latencies: all.latencies,
    })
}

/// The stream of a thread's parameters: every query, ladder step, run and thread has its own, and no
/// engine has.
fn stream(question: &Question<'_>, threads: u64, worker: u64) -> u64 {
    let query = Query::ALL
        .iter()
        .position(|query| *query == question.query)
        .unwrap_or(0) as u64;
    (query << 48) | (threads << 32) | (u64::from(question.run) << 16) | worker
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::normal::Generator;
    use crate::target::fake::{Behaviour, FakeSession, SLOW};

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
        let question = Question {
            answers: &answers,
            query,
            engine: Engine::InnoDb,
            protocol: Protocol::Text,
            placement: Placement::Paired,
            seed: 3,
            run: 1,
        };
        measure(&mut sessions, &question, Duration::from_millis(30), stop)
    }

    #[test]
    fn right_answers_are_counted_and_timed() {
        for query in Query::ALL {
            let measured =
                ask(query, 3, Behaviour::Right, &AtomicBool::new(false)).expect("measured");
            assert_eq!(
                (measured.errors, measured.wrong),
                (0, 0),
                "{:?}",
                measured.problem
            );
            assert!(measured.queries >= 3);
            assert_eq!(measured.latencies.len(), measured.queries);
            assert!(measured.time >= Duration::from_millis(30));
            assert!(measured.rate() > 0.0);
        }
    }

    #[test]
    fn latencies_are_those_of_the_answers_however_long() {
        let measured =
            ask(Query::ReadFts, 2, Behaviour::Slow, &AtomicBool::new(false)).expect("measured");
        let slept = u64::try_from(SLOW.as_micros()).expect("a time");
        // Three significant figures are kept.
        assert!(measured.latencies.min() >= slept * 999 / 1_000);
        let whole = u64::try_from(measured.time.as_micros()).expect("a time");
        assert!(measured.latencies.max() <= whole * 1_001 / 1_000 + 1);
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
                assert_eq!(measured.wrong, measured.queries, "{query:?} {behaviour:?}");
                let problem = measured.problem.expect("told");
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
        assert_eq!(measured.queries, 0);
        assert_eq!(measured.errors, 2 * MOST_ERRORS);
        assert!(measured.problem.expect("told").contains("as asked"));
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
