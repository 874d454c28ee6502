//! Runs histories: windows with fresh keys, each checked before the next one begins.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::check::{
    Found, Violation, {self},
};
use super::generator::{Author, Lists, Wish};
use super::history::{
    version, Clock, Deed, Ending, History, Keys, Operation, Span, Transaction, FIRST_LIST,
    FIRST_PLACE,
};
use super::outcome::Outcome;
use super::target::{Done, Session, Target, Trouble};
use peregrine_harness::dice::Dice;
use peregrine_harness::error::{HarnessError, Result};
use peregrine_harness::interrupt;
use peregrine_harness::level::Level;

/// The number of transactions in a window: enough for long dependencies, and few enough for a fast check.
pub const WINDOW: u64 = 20_000;

/// A request for histories.
#[derive(Debug, Clone)]
pub struct Request {
    /// The level.
    pub level: Level,
    /// The number of committed transactions; 0 for as many as the duration allows.
    pub transactions: u64,
    /// The longest time, if limited.
    pub duration: Option<Duration>,
    /// The seed.
    pub seed: u64,
    /// The number of threads.
    pub threads: u32,
    /// The number of transactions in a window.
    pub window: u64,
    /// On average, one in this many windows has a crash; 0 for none.
    pub crash_every: u32,
    /// Whether to stop at the first window with a violation.
    pub stop_when_found: bool,
}

impl Request {
    fn keys(&self) -> Keys {
        let lists = 4;
        Keys {
            registers: 16,
            places: 12,
            lists,
            // This is a quarter more than the lists that the dice append to on average.
            all_lists: u32::try_from(self.window / 60)
                .unwrap_or(u32::MAX)
                .clamp(lists, 7_000),
        }
    }
}

/// Runs histories against a target and checks them, and calls `told` after every window.
///
/// # Errors
/// When the target fails; [`HarnessError::Interrupted`].
pub fn run(
    request: &Request,
    name: &str,
    target: &mut dyn Target,
    mut told: impl FnMut(&Outcome),
) -> Result<Outcome> {
    interrupt::flag();
    let begun = Instant::now();
    let mut outcome = Outcome {
        target: name.to_owned(),
        level: request.level,
        seed: request.seed,
        threads: request.threads,
        windows: 0,
        aborted: 0,
        crashes: 0,
        conflicts: None,
        seconds: 0.0,
        found: Found::default(),
        asked: if request.duration.is_some() {
            0
        } else {
            request.transactions
        },
    };
    let over = |outcome: &Outcome| {
        let enough = request.transactions > 0 && outcome.found.committed >= request.transactions;
        let late = request
            .duration
            .is_some_and(|limit| begun.elapsed() >= limit);
        enough || late || (request.stop_when_found && !outcome.found.is_clean())
    };
    while outcome.windows == 0 || !over(&outcome) {
        let left = match request.transactions {
            0 => request.window,
            all => request
                .window
                .min(all.saturating_sub(outcome.found.committed)),
        };
        window(request, target, left.max(1), begun, &mut outcome)?;
        outcome.windows += 1;
        outcome.seconds = begun.elapsed().as_secs_f64();
        outcome.conflicts = target.conflicts();
        told(&outcome);
        if interrupt::requested() {
            return Err(HarnessError::Interrupted);
        }
    }
    Ok(outcome)
}

/// The state that the threads of a window share.
struct Shared {
    clock: Clock,
    /// The number of the next transaction.
    next: AtomicU32,
    committed: AtomicU64,
    wanted: u64,
    deadline: Option<Instant>,
    stop: AtomicBool,
}

impl Shared {
    fn over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
            || self.committed.load(Ordering::Relaxed) >= self.wanted
            || self
                .deadline
                .is_some_and(|deadline| Instant::now() >= deadline)
            || interrupt::requested()
    }
}

fn window(
    request: &Request,
    target: &mut dyn Target,
    wanted: u64,
    begun: Instant,
    outcome: &mut Outcome,
) -> Result<()> {
    let number = outcome.windows;
    let keys = request.keys();
    target.prepare(number, keys)?;
    let lists = Lists::new(keys);
    let mut dice = Dice::new(request.seed ^ 0x0063_7261_7368, u64::from(number));
    let crashes = request.crash_every > 0 && dice.below(request.crash_every) == 0;
    // The number of commits at which the crash comes.
    let crash_at = crashes.then(|| wanted * u64::from(10 + dice.below(80)) / 100);
    let shared = Shared {
        clock: Clock::default(),
        next: AtomicU32::new(0),
        committed: AtomicU64::new(0),
        wanted,
        deadline: request.duration.map(|limit| begun + limit),
        stop: AtomicBool::new(false),
    };
    let mut all: Vec<(u32, Transaction)> = Vec::new();
    let mut wrong: Vec<String> = Vec::new();
    let parts: &[Option<u64>] = if crashes { &[crash_at, None] } else { &[None] };
    for (part, crash_at) in parts.iter().enumerate() {
        let mut sessions = Vec::new();
        for _ in 0..request.threads {
            sessions.push(target.session(number)?);
        }
        shared.stop.store(false, Ordering::Relaxed);
        let mut crashed: Option<(u64, Result<()>)> = None;
        let results: Vec<Option<Worked>> = std::thread::scope(|scope| {
            let workers: Vec<_> = sessions
                .into_iter()
                .zip(0_u32..)
                .map(|(session, thread)| {
                    let stream = thread + request.threads * u32::from(part > 0);
                    let author =
                        Author::new(request.seed, number, stream, request.level, keys, &lists);
                    let shared = &shared;
                    scope.spawn(move || work(session, author, shared))
                })
                .collect();
            if let Some(at) = crash_at {
                while shared.committed.load(Ordering::Relaxed) < *at && !shared.over() {
                    std::thread::sleep(Duration::from_millis(1));
                }
                // Commits acknowledged after this number of the clock may be lost.
                let at = shared.clock.tick();
                crashed = Some((at, target.crash()));
                shared.stop.store(true, Ordering::Relaxed);
            }
            workers
                .into_iter()
                .map(|worker| worker.join().ok())
                .collect()
        });
        for result in results {
            let Some(worked) = result else {
                return Err(HarnessError::Server("a thread failed".to_owned()));
            };
            all.extend(worked.transactions);
            wrong.extend(worked.wrong);
            if worked.gone && crashed.is_none() {
                return Err(HarnessError::Server(
                    "the target ended by itself".to_owned(),
                ));
            }
        }
        if let Some((at, done)) = crashed {
            done?;
            target.recover()?;
            outcome.crashes += 1;
            for (_, transaction) in &mut all {
                if transaction.ended > at && transaction.ending == Ending::Committed {
                    transaction.ending = Ending::Unknown;
                }
            }
        }
    }
    let mut session = target.session(number)?;
    let closing = close(&mut *session, keys, &shared.clock)?;
    drop(session);
    let history = arrange(all, closing);
    outcome.aborted += history
        .transactions
        .iter()
        .filter(|transaction| transaction.ending == Ending::Aborted && transaction.began > 0)
        .count() as u64;
    let mut found = check::check(&history, request.level);
    // The closing transaction belongs to the checker.
    found.committed = found.committed.saturating_sub(1);
    for text in wrong {
        found.add(Violation::Impossible, || text);
    }
    outcome.found.join(found);
    Ok(())
}

/// Puts every transaction at the index of its number, and the closing one at the end.
fn arrange(all: Vec<(u32, Transaction)>, closing: Transaction) -> History {
    let count = all
        .iter()
        .map(|(number, _)| *number as usize + 1)
        .max()
        .unwrap_or(0);
    let nothing = Transaction {
        began: 0,
        commit_asked: 0,
        ended: 0,
        ending: Ending::Aborted,
        operations: Vec::new(),
    };
    let mut transactions = vec![nothing; count];
    for (number, transaction) in all {
        transactions[number as usize] = transaction;
    }
    transactions.push(closing);
    History { transactions }
}

/// The work of a thread.
#[derive(Default)]
struct Worked {
    transactions: Vec<(u32, Transaction)>,
    wrong: Vec<String>,
    gone: bool,
}

fn work(mut session: Box<dyn Session>, mut author: Author<'_>, shared: &Shared) -> Worked {
    let mut worked = Worked::default();
    while !shared.over() {
        let number = shared.next.fetch_add(1, Ordering::Relaxed);
        let mut transaction = Transaction {
            began: shared.clock.tick(),
            commit_asked: 0,
            ended: 0,
            ending: Ending::Aborted,
            operations: Vec::new(),
        };
        let done = attempt(&mut *session, &mut author, shared, number, &mut transaction);
        let ended = match &done {
            Ok(()) => Ok(()),
            Err(Trouble::Gone) => Err(Trouble::Gone),
            Err(trouble) => {
                if let Trouble::Wrong(text) = trouble {
                    worked.wrong.push(format!("T{number}: {text}"));
                }
                session.rollback()
            }
        };
        transaction.ended = shared.clock.tick();
        if transaction.commit_asked > 0 {
            // The session rolls back a refused commit; a commit without an answer may be there.
            transaction.ending = match &done {
                Ok(()) => Ending::Committed,
                Err(Trouble::Gone) => Ending::Unknown,
                Err(_) => Ending::Aborted,
            };
        }
        if transaction.ending == Ending::Committed {
            shared.committed.fetch_add(1, Ordering::Relaxed);
        }
        worked.transactions.push((number, transaction));
        if ended == Err(Trouble::Gone) {
            worked.gone = true;
            break;
        }
    }
    worked
}

/// Runs one transaction.
fn attempt(
    session: &mut dyn Session,
    author: &mut Author<'_>,
    shared: &Shared,
    number: u32,
    transaction: &mut Transaction,
) -> Done<()> {
    session.begin()?;
    for (place, wish) in (0_u32..).zip(author.transaction()) {
        let from = shared.clock.tick();
        let deed = fulfil(session, wish, version(number, place))?;
        let to = shared.clock.tick();
        transaction.operations.push(Operation {
            deed,
            span: Span { from, to },
        });
        if author.pauses() {
            std::thread::yield_now();
        }
    }
    if author.gives_up() {
        return session.rollback();
    }
    transaction.commit_asked = shared.clock.tick();
    session.commit()
}

fn fulfil(session: &mut dyn Session, wish: Wish, written: u32) -> Done<Deed> {
    Ok(match wish {
        Wish::Read(key, lock) => Deed::Read {
            key,
            found: session.read(key, lock)?,
        },
        Wish::Write(key, blind) => Deed::Write {
            key,
            written,
            before: session.write(key, written, blind)?,
            state: None,
        },
        Wish::ReadList(key) => Deed::ReadList {
            key,
            found: session.read_list(key)?,
        },
        Wish::Append(key) => Deed::Append {
            key,
            written,
            before: session.append(key, written)?,
        },
        Wish::Place(key, state) => Deed::Write {
            key,
            written,
            before: session.place(key, written, state)?,
            state,
        },
        Wish::Scan(predicate) => Deed::Scan {
            predicate,
            found: session.scan(predicate)?,
        },
    })
}

/// Reads every key in one transaction, while no other session works.
fn close(session: &mut dyn Session, keys: Keys, clock: &Clock) -> Result<Transaction> {
    let mut transaction = Transaction {
        began: clock.tick(),
        commit_asked: 0,
        ended: 0,
        ending: Ending::Committed,
        operations: Vec::new(),
    };
    let mut read = || -> Done<()> {
        session.begin()?;
        let mut note = |deed: Deed| {
            let from = clock.tick();
            let to = clock.tick();
            transaction.operations.push(Operation {
                deed,
                span: Span { from, to },
            });
        };
        for key in 0..keys.registers {
            let found = session.read(key, false)?;
            note(Deed::Read { key, found });
        }
        for key in FIRST_PLACE..FIRST_PLACE + keys.places {
            let found = session.read_place(key)?;
            note(Deed::Read { key, found });
        }
        for key in FIRST_LIST..FIRST_LIST + keys.all_lists {
            let found = session.read_list(key)?;
            note(Deed::ReadList { key, found });
        }
        for predicate in all_predicates() {
            let found = session.scan(predicate)?;
            note(Deed::Scan { predicate, found });
        }
        session.commit()
    };
    read().map_err(|trouble| {
        HarnessError::Server(format!("reading every key at the end failed: {trouble:?}"))
    })?;
    transaction.commit_asked = clock.tick();
    transaction.ended = clock.tick();
    Ok(transaction)
}

fn all_predicates() -> impl Iterator<Item = super::history::Predicate> {
    use super::history::{Predicate, GROUPS};
    (0..GROUPS)
        .map(Predicate::In)
        .chain(std::iter::once(Predicate::Present))
}
