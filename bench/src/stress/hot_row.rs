//! One row that many sessions update.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Barrier, Mutex};
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;

use super::refusal;
use peregrine_harness::engines::hosted::{
    Hosted, {self},
};
use peregrine_harness::engines::Engine;
use peregrine_harness::error::{HarnessError, Result, StatementContext};

/// The throughput of one engine at one number of sessions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Throughput {
    /// The engine.
    pub engine: Engine,
    /// The number of sessions.
    pub sessions: u32,
    /// Updates acknowledged per second.
    pub per_second: f64,
    /// Updates refused (deadlock, lock wait timeout, conflict).
    pub refused: u64,
    /// Whether the row's value equals the number of acknowledged updates.
    pub right: bool,
}

/// Measures every engine at every number of sessions, `rounds` times, with the engines in turn.
///
/// The best run of each counts.
///
/// # Errors
/// When the server returns an error.
pub fn measure(
    server: &Hosted,
    engines: &[Engine],
    sessions: &[u32],
    run: Duration,
    rounds: u32,
    mut told: impl FnMut(&Throughput),
) -> Result<Vec<Throughput>> {
    let mut best: Vec<Throughput> = Vec::new();
    for _ in 0..rounds {
        for count in sessions {
            for engine in engines {
                let found = once(server, *engine, *count, run)?;
                told(&found);
                match best
                    .iter_mut()
                    .find(|b| b.engine == *engine && b.sessions == *count)
                {
                    None => best.push(found),
                    Some(before) => {
                        let right = before.right && found.right;
                        if found.per_second > before.per_second {
                            *before = found;
                        }
                        before.right = right;
                    }
                }
            }
        }
    }
    Ok(best)
}

fn once(server: &Hosted, engine: Engine, count: u32, run: Duration) -> Result<Throughput> {
    let mut connection = server.connect(None)?;
    hosted::run_all(
        &mut connection,
        &[
            "CREATE DATABASE IF NOT EXISTS stress".to_owned(),
            format!(
                "CREATE OR REPLACE TABLE stress.hot (id int primary key, n bigint not null) ENGINE={}",
                engine.sql_name()
            ),
            "INSERT INTO stress.hot VALUES (1, 0)".to_owned(),
        ],
    )?;
    let mut connections = Vec::new();
    for _ in 0..count {
        connections.push(server.connect(Some("stress"))?);
    }
    let begin = Barrier::new(count as usize + 1);
    let stop = AtomicBool::new(false);
    let (done, refused) = (AtomicU64::new(0), AtomicU64::new(0));
    let failed = Mutex::new(None);
    let (begin, stop, done_in, refused_in, failed_in) = (&begin, &stop, &done, &refused, &failed);
    let elapsed = std::thread::scope(|scope| {
        for mut connection in connections {
            scope.spawn(move || {
                begin.wait();
                while !stop.load(Ordering::Relaxed) {
                    match connection.query_drop("UPDATE hot SET n = n + 1 WHERE id = 1") {
                        Ok(()) => done_in.fetch_add(1, Ordering::Relaxed),
                        Err(error) => match refusal::fault(&error) {
                            None => refused_in.fetch_add(1, Ordering::Relaxed),
                            Some(fault) => {
                                if let Ok(mut failed) = failed_in.lock() {
                                    failed.get_or_insert(fault);
                                }
                                return;
                            }
                        },
                    };
                }
            });
        }
        begin.wait();
        let begun = Instant::now();
        std::thread::sleep(run);
        let counted = done.load(Ordering::Relaxed);
        let elapsed = begun.elapsed();
        stop.store(true, Ordering::Relaxed);
        (counted, elapsed)
    });
    if let Some(fault) = failed.into_inner().unwrap_or_default() {
        return Err(HarnessError::Server(fault));
    }
    let statement = "SELECT n FROM stress.hot";
    let value: Option<u64> = connection.query_first(statement).running(statement)?;
    let value = value.ok_or_else(|| HarnessError::Server("the hot row is gone".to_owned()))?;
    Ok(Throughput {
        engine,
        sessions: count,
        per_second: elapsed.0 as f64 / elapsed.1.as_secs_f64(),
        refused: refused.load(Ordering::Relaxed),
        right: value == done.load(Ordering::Relaxed),
    })
}

/// The throughput of an engine at a number of sessions.
#[must_use]
pub fn of(found: &[Throughput], engine: Engine, sessions: u32) -> Option<f64> {
    found
        .iter()
        .find(|one| one.engine == engine && one.sessions == sessions)
        .map(|one| one.per_second)
}
