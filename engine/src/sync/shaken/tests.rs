//! Properties of schedules: each order occurs, the same seed gives the same run, and no waiting thread goes unnoticed.

use std::sync::Arc;
use std::time::Duration;

use super::atomic::{AtomicU32, AtomicU64, Ordering};
use super::schedule::{run, Passed, Strategy};
use super::{futex, let_fail, let_pause, now, since, strikes, thread, Condvar, Mutex, RwLock};
use crate::sync::{thread_number, Fault, Pause};

fn start(work: impl FnOnce() + Send + 'static) -> thread::JoinHandle<()> {
    thread::Builder::new().spawn(work).unwrap()
}

/// Runs `body` with a hundred seeds; returns the outcomes.
fn with_seeds(
    body: impl Fn() + Clone + Send + 'static,
) -> impl Iterator<Item = Result<Passed, String>> {
    (0..100).map(move |seed| run(Strategy::drawn(seed), seed, body.clone()))
}

/// Two threads count to two; one of them in two steps, between which the other can run.
fn count_in_two_steps() {
    let number = Arc::new(AtomicU64::new(0));
    let other = Arc::clone(&number);
    let thread = start(move || {
        other.fetch_add(1, Ordering::Relaxed);
    });
    let read = number.load(Ordering::Relaxed);
    number.store(read + 1, Ordering::Relaxed);
    thread.join().unwrap();
    assert_eq!(number.load(Ordering::Relaxed), 2);
}

#[test]
fn what_can_happen_in_some_order_happens_in_one_of_them() {
    let failed = with_seeds(count_in_two_steps).filter(Result::is_err);
    assert!((1..100).contains(&failed.count()));
}

#[test]
fn the_same_seed_gives_the_same() {
    let first: Vec<_> = with_seeds(count_in_two_steps).collect();
    let again: Vec<_> = with_seeds(count_in_two_steps).collect();
    assert_eq!(first, again);
    assert!(first.iter().any(|outcome| *outcome != first[0]));
}

#[test]
fn a_mutex_keeps_others_out() {
    let mut outcomes = with_seeds(|| {
        let number = Arc::new(Mutex::new(0));
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let number = Arc::clone(&number);
                start(move || {
                    let mut number = number.lock();
                    let read = *number;
                    super::schedule::point();
                    *number = read + 1;
                })
            })
            .collect();
        threads.into_iter().for_each(|t| t.join().unwrap());
        assert_eq!(*number.lock(), 3);
    });
    assert!(outcomes.all(|outcome| outcome.is_ok()));
}

#[test]
fn two_locks_in_two_orders_are_found() {
    let outcomes = with_seeds(|| {
        let locks = Arc::new((Mutex::new(()), RwLock::new(())));
        let other = Arc::clone(&locks);
        let thread = start(move || {
            let _second = other.1.write();
            let _first = other.0.lock();
        });
        {
            let _first = locks.0.lock();
            let _second = locks.1.read();
        }
        thread.join().unwrap();
    });
    let failed: Vec<String> = outcomes.filter_map(Result::err).collect();
    assert!((1..100).contains(&failed.len()));
    assert!(failed.iter().all(|text| text.contains("waits for ever")));
    assert!(failed.iter().all(|text| text.contains("a mutex")));
}

#[test]
fn signals_wake_those_who_wait() {
    let mut outcomes = with_seeds(|| {
        let state = Arc::new((Mutex::new(false), Condvar::new(), AtomicU32::new(0)));
        let other = Arc::clone(&state);
        let parked = thread::current();
        let thread = start(move || {
            let mut told = other.0.lock();
            while !*told {
                other.1.wait(&mut told);
            }
            drop(told);
            other.2.store(1, Ordering::Release);
            futex::wake_all(&other.2);
            parked.unpark();
        });
        *state.0.lock() = true;
        state.1.notify_one();
        while state.2.load(Ordering::Acquire) == 0 {
            futex::wait(&state.2, 0);
        }
        thread::park();
        thread.join().unwrap();
    });
    assert!(outcomes.all(|outcome| outcome.is_ok()));
}

#[test]
fn time_passes_where_everybody_waits() {
    let mut outcomes = with_seeds(|| {
        let began = now();
        let (nobody, told) = (Condvar::new(), Mutex::new(()));
        let hour = Duration::from_secs(3_600);
        assert!(nobody.wait_for(&mut told.lock(), hour).timed_out());
        thread::sleep(hour);
        assert!(since(began) >= 2 * hour);
    });
    assert!(outcomes.all(|outcome| outcome.is_ok()));
}

/// After such a leap a wait would end at once, forever.
#[test]
fn time_does_not_leap_to_where_it_cannot_be_counted() {
    let mut outcomes = with_seeds(|| {
        let state = Arc::new((Mutex::new(false), Condvar::new()));
        let other = Arc::clone(&state);
        let thread = start(move || {
            let mut told = other.0.lock();
            if !*told {
                other.1.wait_for(&mut told, Duration::from_secs(1 << 34));
            }
        });
        // A thread that spins so often makes time leap.
        (0..3_000).for_each(|_| super::spin_loop());
        let (began, pause) = (now(), Duration::from_millis(1));
        thread::sleep(pause);
        assert!(since(began) >= pause);
        *state.0.lock() = true;
        state.1.notify_one();
        thread.join().unwrap();
    });
    assert!(outcomes.all(|outcome| outcome.is_ok()));
}

/// A schedule must not depend on earlier ones in the same process.
#[test]
fn threads_are_numbered_anew_in_each_schedule() {
    let mut outcomes = with_seeds(|| {
        assert_eq!(thread_number(), 0);
        start(|| assert_eq!(thread_number(), 1)).join().unwrap();
    });
    assert!(outcomes.all(|outcome| outcome.is_ok()));
}

#[test]
fn a_thread_that_looks_again_lets_others_go_on() {
    let mut outcomes = with_seeds(|| {
        let flag = Arc::new(AtomicU32::new(0));
        let other = Arc::clone(&flag);
        let thread = start(move || {
            thread::sleep(Duration::from_secs(1));
            other.store(1, Ordering::Release);
        });
        while flag.load(Ordering::Acquire) == 0 {
            super::spin_loop();
        }
        thread.join().unwrap();
    });
    assert!(outcomes.all(|outcome| outcome.is_ok()));
}

/// Two threads that pause for less time than the other works: together they always have work.
#[test]
fn who_pauses_and_works_again_keeps_nobody_away_for_ever() {
    let mut outcomes = with_seeds(|| {
        // By then all drawn changes of priorities have happened.
        (0..1 << 17).for_each(|_| super::schedule::point());
        let done = Arc::new(AtomicU64::new(0));
        let busy = [(); 2].map(|()| {
            let done = Arc::clone(&done);
            start(move || {
                while done.load(Ordering::Relaxed) == 0 {
                    (0..300).for_each(|_| super::schedule::point());
                    thread::sleep(Duration::from_micros(100));
                }
            })
        });
        let last = start(move || done.store(1, Ordering::Relaxed));
        busy.into_iter().for_each(|t| t.join().unwrap());
        last.join().unwrap();
    });
    assert!(outcomes.all(|outcome| outcome.is_ok()));
}

#[test]
fn helpers_of_a_scope_end_with_it() {
    let mut outcomes = with_seeds(|| {
        let number = AtomicU64::new(0);
        thread::scope(|scope| {
            for _ in 0..3 {
                let add = || number.fetch_add(1, Ordering::Relaxed);
                thread::Builder::new().spawn_scoped(scope, add).unwrap();
            }
        });
        assert_eq!(number.load(Ordering::Relaxed), 3);
    });
    assert!(outcomes.all(|outcome| outcome.is_ok()));
}

#[test]
fn what_is_asked_for_fails_by_the_seed_and_nothing_else() {
    let outcomes = || {
        with_seeds(|| {
            let times = |fault| (0..1_000).filter(|_| strikes(fault)).count();
            assert_eq!(times(Fault::NoMemory), 0);
            let_fail(Fault::NoMemory, 10);
            start(move || {
                assert!((1..300).contains(&times(Fault::NoMemory)));
                assert_eq!(times(Fault::NoFrame), 0);
            })
            .join()
            .unwrap();
            let_fail(Fault::NoMemory, 0);
            assert_eq!(times(Fault::NoMemory), 0);
        })
    };
    let struck = |passed: Result<Passed, String>| passed.unwrap().struck;
    let first: Vec<u64> = outcomes().map(struck).collect();
    assert!(first.iter().any(|times| *times != first[0]));
    assert_eq!(first, outcomes().map(struck).collect::<Vec<_>>());
    let_fail(Fault::Killed, 1);
    assert!(!strikes(Fault::Killed), "outside schedules");
}

#[test]
fn who_pauses_stays_away_and_keeps_what_it_has() {
    let mut outcomes = with_seeds(|| {
        let_pause(Pause::Held, 4);
        let began = now();
        let number = Arc::new(Mutex::new(0));
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let number = Arc::clone(&number);
                start(move || {
                    for _ in 0..10 {
                        let mut number = number.lock();
                        let read = *number;
                        super::pause(Pause::Held);
                        *number = read + 1;
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|t| t.join().unwrap());
        assert_eq!(*number.lock(), 30);
        assert!(since(began) < Duration::from_secs(10));
    });
    assert!(outcomes.all(|outcome| outcome.is_ok()));
}

#[test]
fn a_panic_is_told() {
    let outcome = run(Strategy::drawn(1), 1, || {
        let _ = start(|| panic!("broken")).join();
    });
    assert!(outcome.unwrap_err().contains("broken"));
}
