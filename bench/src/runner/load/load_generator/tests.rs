use super::*;
use crate::fake::{workload, Behaviour, FakeSession, SLOW};
use crate::normal::{Generator, Query};

fn ask_as(
    query: Query,
    threads: usize,
    behaviour: Behaviour,
    (time, until_steady, pace): (Duration, Option<Steadiness>, Pace),
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
    let mut looks = 0;
    let method = Method {
        time,
        until_steady,
        pace,
        stop,
        look: &mut |_| looks += 1,
    };
    let measured = measure(&mut sessions, &question, method);
    assert!(looks > 0, "somebody looked on");
    measured
}

fn ask(query: Query, threads: usize, behaviour: Behaviour, stop: &AtomicBool) -> Result<Measured> {
    let time = Duration::from_millis(30);
    let how = (time, None, Pace::Closed);
    ask_as(query, threads, behaviour, how, stop)
}

#[test]
fn right_answers_are_counted_and_timed() {
    for query in Query::ALL {
        let measured = ask(query, 3, Behaviour::Right, &AtomicBool::new(false)).expect("measured");
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
    // The histogram keeps three significant figures.
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
    assert!(matches!(result, Err(HarnessError::Interrupted)));
}

#[test]
fn in_an_open_loop_what_waits_for_a_slow_server_is_charged_with_waiting() {
    // One client, a transaction due every SLOW / 4, and each takes at least SLOW: they accumulate.
    let rate = 4.0 / SLOW.as_secs_f64();
    let time = SLOW * 4;
    let how = (time, None, Pace::Open { rate });
    let stop = AtomicBool::new(false);
    let measured = ask_as(Query::ReadFts, 1, Behaviour::Slow, how, &stop).expect("measured");
    let done = measured.tally.transactions;
    assert!((1..=4).contains(&done), "{done}");
    assert_eq!(done + measured.left, 16, "those due in that time");
    // The n-th was due at (n - 1) / 4, and ended at n or later, in units of SLOW.
    let last = (done - done.saturating_sub(1) / 4).saturating_sub(1);
    let latencies = measured.latencies().expect("latencies");
    let minimum = u64::try_from(SLOW.as_micros()).expect("a time") * last;
    assert!(
        latencies.max() >= minimum * 999 / 1_000,
        "{}",
        latencies.max()
    );
    assert_eq!(latencies.len(), done);
}

#[test]
fn in_an_open_loop_no_more_is_asked_than_is_due() {
    let how = (Duration::from_millis(100), None, Pace::Open { rate: 200.0 });
    let stop = AtomicBool::new(false);
    let measured = ask_as(Query::ReadPkPoint, 3, Behaviour::Right, how, &stop).expect("measured");
    assert_eq!(measured.tally.transactions + measured.left, 20);
}

#[test]
fn a_run_may_end_when_it_is_steady_and_else_in_its_time() {
    let hour = Duration::from_secs(3_600);
    // Within 100 %, every rate is steady after three windows.
    let how = (hour, Some(Steadiness::within(100.0)), Pace::Closed);
    let stop = AtomicBool::new(false);
    let measured = ask_as(Query::ReadPkPoint, 2, Behaviour::Right, how, &stop).expect("measured");
    assert!(measured.steady && measured.time < hour);
    assert_eq!(measured.seconds.len(), 3_600);
    let done: u64 = measured.seconds.iter().map(|second| second.done).sum();
    assert_eq!(done, measured.tally.transactions);
    let how = (
        Duration::from_millis(20),
        Some(Steadiness::within(100.0)),
        Pace::Closed,
    );
    let measured = ask_as(Query::ReadPkPoint, 2, Behaviour::Right, how, &stop).expect("measured");
    assert!(!measured.steady);
}
