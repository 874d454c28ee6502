//! A mixed load on a server with a hard memory limit.
//!
//! The server must not be killed, its answers must be right, and where it lacks memory only the statement may fail.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;

use super::load::memory_load::{Role, Session, Sizes, Trouble, SCHEMA};
use super::size::resident_bytes;
use peregrine_harness::dice::Dice;
use peregrine_harness::engines::hosted::{
    Hosted, {self},
};
use peregrine_harness::error::{HarnessError, Result};
use peregrine_harness::interrupt;
use peregrine_harness::server::MemoryLimit;

/// Errors with which a statement may end: a lock not granted, a deadlock, no memory (for the statement or for sorting),
/// or a statement ended at the end of the test.
const ALLOWED: [u16; 8] = [1205, 1213, 1020, 1412, 1037, 1038, 1041, 1317];

/// The interval at which the server's memory is measured.
const LOOK: Duration = Duration::from_millis(100);

/// A request to run the test.
#[derive(Debug, Clone, Copy)]
pub struct Request {
    /// The length of the load.
    pub duration: Duration,
    /// The seed of all random choices.
    pub seed: u64,
    /// The server's memory without the engine, in bytes.
    pub bare: u64,
}

/// The outcome of the test.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// Seconds of load.
    pub seconds: f64,
    /// The engine's cache, in bytes.
    pub cache_bytes: u64,
    /// The server's memory without the engine, in bytes.
    pub bare: u64,
    /// The limit, in bytes.
    pub limit: u64,
    /// The server's peak resident memory, in bytes.
    pub peak: u64,
    /// Resident memory at the end, in bytes.
    pub last: u64,
    /// Processes killed because of the limit.
    pub kills: u64,
    /// The number of statements of all sessions.
    pub statements: u64,
    /// The number of complete rounds of each role: points, long values, sorts, large, definitions, snapshot.
    pub rounds: [u64; 6],
    /// The number of errors, by error code.
    pub errors: BTreeMap<u16, u64>,
    /// The faults.
    pub faults: Vec<String>,
}

impl Outcome {
    /// Returns whether the server survived within the limit and everything was right.
    ///
    /// A role without a complete round proves nothing, so each needs one.
    #[must_use]
    pub fn held(&self) -> bool {
        self.kills == 0
            && self.faults.is_empty()
            && self.peak <= self.limit
            && self.rounds.iter().all(|rounds| *rounds > 0)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mb = |bytes: u64| bytes >> 20;
        let [points, values, sorts, large, definitions, snapshots] = self.rounds;
        let errors: Vec<String> = self
            .errors
            .iter()
            .map(|(code, count)| format!("{count} of {code}"))
            .collect();
        write!(
            f,
            "{}: Peregrine, cache of {} MB, {:.0} s of mixed load: peak memory {} MB of {} MB (the server alone \
             takes {} MB), {} MB at the end, {} kills; {} statements: {points} rounds of points, {values} of long \
             values, {sorts} of sorts and scans, {large} of large transactions, {definitions} of definitions, \
             {snapshots} of snapshots; errors: {}; {} faults",
            if self.held() { "held" } else { "NOT HELD" },
            mb(self.cache_bytes),
            self.seconds,
            mb(self.peak),
            mb(self.limit),
            mb(self.bare),
            mb(self.last),
            self.kills,
            self.statements,
            if errors.is_empty() {
                "none".to_owned()
            } else {
                errors.join(", ")
            },
            self.faults.len(),
        )
    }
}

/// The state that the sessions share.
#[derive(Default)]
struct Shared {
    over: AtomicBool,
    statements: AtomicU64,
    rounds: [AtomicU64; 6],
    errors: Mutex<BTreeMap<u16, u64>>,
    faults: Mutex<Vec<String>>,
}

impl Shared {
    fn stops(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    fn fault(&self, text: String) {
        if let Ok(mut faults) = self.faults.lock() {
            faults.push(text);
        }
        self.over.store(true, Ordering::Relaxed);
    }

    fn count(&self, code: u16) {
        if let Ok(mut errors) = self.errors.lock() {
            *errors.entry(code).or_default() += 1;
        }
    }

    /// Counts an error; returns false when the session can't continue.
    fn trouble(&self, role: Role, trouble: Trouble) -> bool {
        match trouble {
            Trouble::Sql(mysql::Error::MySqlError(error)) if ALLOWED.contains(&error.code) => {
                self.count(error.code);
                true
            }
            other => {
                self.fault(format!("{role:?}: {other}"));
                false
            }
        }
    }
}

/// Runs the load on a server that has just been started within `limit`.
///
/// # Errors
/// When the server refuses to create the tables; [`HarnessError::Interrupted`].
pub fn run(
    server: &Hosted,
    limit: &MemoryLimit,
    request: &Request,
    mut told: impl FnMut(&str),
) -> Result<Outcome> {
    interrupt::flag();
    let cache_bytes = server.settings().cache_bytes;
    let sizes = Sizes::for_cache(cache_bytes);
    told("filling the tables");
    hosted::run_all(&mut server.connect(None)?, &sizes.tables())?;
    let mut sessions = Vec::new();
    for (number, role) in (0_u64..).zip(Role::SESSIONS) {
        sessions.push(Session {
            connection: server.connect(Some(SCHEMA))?,
            role,
            dice: Dice::new(request.seed, number),
            sizes,
            statements: 0,
            hold_s: (request.duration.as_secs_f64() / 10.0).min(60.0),
        });
    }
    let shared = Shared::default();
    let begun = Instant::now();
    let ended = std::thread::scope(|scope| {
        let shared = &shared;
        for session in sessions {
            scope.spawn(move || work(session, shared));
        }
        let watched = watch(server, limit, request, shared, &mut told);
        shared.over.store(true, Ordering::Relaxed);
        watched
    });
    ended?;
    let mut outcome = Outcome {
        seconds: begun.elapsed().as_secs_f64(),
        cache_bytes,
        bare: request.bare,
        limit: limit.bytes,
        ..Outcome::default()
    };
    if server.process()?.is_alive() {
        told("a last look at everything");
        let mut last = Session {
            connection: server.connect(Some(SCHEMA))?,
            role: Role::Sorts,
            dice: Dice::new(request.seed, u64::MAX),
            sizes,
            statements: 0,
            hold_s: 0.0,
        };
        if let Err(trouble) = last.final_look() {
            shared.fault(format!("at the end: {trouble}"));
        }
        let process = server.process()?;
        outcome.peak = process.peak_resident_bytes().unwrap_or(0);
        outcome.last = resident_bytes(process).unwrap_or(0);
    } else {
        shared.fault("the server has ended".to_owned());
    }
    outcome.kills = limit.kills();
    outcome.statements = shared.statements.load(Ordering::Relaxed);
    outcome.rounds = std::array::from_fn(|role| shared.rounds[role].load(Ordering::Relaxed));
    outcome.errors = shared.errors.into_inner().unwrap_or_default();
    outcome.faults = shared.faults.into_inner().unwrap_or_default();
    Ok(outcome)
}

/// Runs one session's rounds until the test is over; every session completes at least one.
fn work(mut session: Session, shared: &Shared) {
    let stop = || shared.stops();
    let mut first = true;
    while first || !stop() {
        let before = session.statements;
        let result = session.round(&stop);
        shared
            .statements
            .fetch_add(session.statements - before, Ordering::Relaxed);
        match result {
            Ok(()) => {
                first = false;
                shared.rounds[place(session.role)].fetch_add(1, Ordering::Relaxed);
            }
            Err(trouble) => {
                if !shared.trouble(session.role, trouble) {
                    return;
                }
                // Rolls back the transaction of the failed round.
                if let Err(error) = session.connection.query_drop("ROLLBACK") {
                    return shared.fault(format!("{:?}: ROLLBACK: {error}", session.role));
                }
            }
        }
        if shared.faults.lock().is_ok_and(|faults| !faults.is_empty()) {
            return;
        }
    }
}

fn place(role: Role) -> usize {
    match role {
        Role::Points => 0,
        Role::LongValues => 1,
        Role::Sorts => 2,
        Role::Large => 3,
        Role::Definitions => 4,
        Role::Snapshot => 5,
    }
}

/// Waits for the end of the load, and reports the server's memory at intervals.
fn watch(
    server: &Hosted,
    limit: &MemoryLimit,
    request: &Request,
    shared: &Shared,
    told: &mut dyn FnMut(&str),
) -> Result<()> {
    let begun = Instant::now();
    let between = Duration::from_secs(10).max(request.duration / 60);
    let mut next = between;
    while begun.elapsed() < request.duration && !shared.stops() {
        if interrupt::requested() {
            return Err(HarnessError::Interrupted);
        }
        std::thread::sleep(LOOK);
        let process = server.process()?;
        if !process.is_alive() {
            shared.fault("the server has ended".to_owned());
            break;
        }
        if begun.elapsed() >= next {
            next += between;
            let resident = resident_bytes(process).unwrap_or(0);
            told(&format!(
                "{:.0} s: {} MB resident, peak {} MB of {} MB; {} statements",
                begun.elapsed().as_secs_f64(),
                resident >> 20,
                process.peak_resident_bytes().unwrap_or(0) >> 20,
                limit.bytes >> 20,
                shared.statements.load(Ordering::Relaxed)
            ));
        }
    }
    Ok(())
}
