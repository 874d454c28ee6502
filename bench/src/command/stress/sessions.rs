//! `peregrine bench contention`, `large-transaction` and `held-snapshot`: servers under stress.

use std::process::ExitCode;
use std::time::Duration;

use peregrine_bench::stress::{held_snapshot, hot_row, large_transaction, ring};
use peregrine_harness::command::exit::status;
use peregrine_harness::engines::Engine;
use peregrine_harness::error::Result;

use crate::command::arguments::{
    ContentionArguments, HeldSnapshotArguments, LargeTransactionArguments,
};
use crate::command::run::parsed;
use peregrine_harness::command::host;

/// The least share of the throughput with few sessions that many sessions must keep.
const KEPT: f64 = 0.8;

/// The most milliseconds until the victim of a closed ring gets its error.
const AT_ONCE_MS: f64 = 1_000.0;

fn word(held: bool) -> &'static str {
    if held {
        "held"
    } else {
        "NOT HELD"
    }
}

/// Measures a hot row and closes a ring; exit status 1 when Peregrine is worse than required.
///
/// # Errors
/// Any error of the action; the caller prints it.
pub fn contention(arguments: &ContentionArguments) -> Result<ExitCode> {
    let usual = [Engine::InnoDb, Engine::Peregrine];
    let engines = parsed(&arguments.engines, Engine::parse, &usual)?;
    let (few, many) = (arguments.few, arguments.many);
    let most = few.max(many).max(arguments.ring);
    let server = host::start(&arguments.host, &engines, most, "contention", Vec::new())?;
    let found = hot_row::measure(
        &server,
        &engines,
        &[few, many],
        Duration::from_secs_f64(arguments.duration),
        arguments.rounds,
        |one| {
            eprintln!(
                "{}, {} sessions: {:.0} updates a second, {} refused",
                one.engine.title(),
                one.sessions,
                one.per_second,
                one.refused
            );
        },
    )?;
    let mut held = true;
    for engine in &engines {
        let rates = [few, many].map(|n| hot_row::of(&found, *engine, n).unwrap_or(0.0));
        let kept = rates[1] / rates[0].max(1e-9);
        let right = found
            .iter()
            .filter(|f| f.engine == *engine)
            .all(|f| f.right);
        let beside = hot_row::of(&found, Engine::InnoDb, many);
        let ours = *engine == Engine::Peregrine;
        let good = right && (!ours || (kept >= KEPT && beside.is_none_or(|b| rates[1] >= b)));
        held &= good;
        println!(
            "{}: {}, hot row: {:.0} updates a second by {few} sessions, {:.0} by {many} ({kept:.2}){}{}",
            word(good),
            engine.title(),
            rates[0],
            rates[1],
            beside.filter(|_| ours).map_or(String::new(), |beside| format!(
                ", {:.2} times InnoDB's",
                rates[1] / beside.max(1e-9)
            )),
            if right { "" } else { "; UPDATES LOST" }
        );
    }
    for engine in engines.iter().filter(|engine| engine.is_transactional()) {
        let ring = ring::close(&server, *engine, arguments.ring)?;
        let good = *engine != Engine::Peregrine
            || (ring.errors == [1213] && ring.first_error_ms <= AT_ONCE_MS);
        held &= good;
        println!(
            "{}: {}, ring of {} sessions: {} errors ({:?}), the first {:.1} ms after the ring closed, all ended after {:.1} ms",
            word(good),
            engine.title(),
            ring.sessions,
            ring.errors.len(),
            ring.errors,
            ring.first_error_ms,
            ring.all_ended_ms
        );
    }
    if held {
        server.remove()?;
    }
    Ok(status(held))
}

/// Runs a transaction larger than the cache; exit status 1 when it did not end as required.
///
/// # Errors
/// Any error of the action; the caller prints it.
pub fn large_transaction(arguments: &LargeTransactionArguments) -> Result<ExitCode> {
    let engine = Engine::parse(&arguments.engine)?;
    let server = host::start(
        &arguments.host,
        &[engine],
        arguments.others,
        "large-transaction",
        Vec::new(),
    )?;
    let outcome = large_transaction::run(
        &server,
        engine,
        arguments.rows,
        arguments.others,
        arguments.memory,
        |text| eprintln!("{text}"),
    )?;
    println!("{outcome}");
    if outcome.held() {
        server.remove()?;
    }
    Ok(status(outcome.held()))
}

/// Holds a snapshot while writers run; exit status 1 when Peregrine exceeds the limits.
///
/// # Errors
/// Any error of the action; the caller prints it.
pub fn held_snapshot(arguments: &HeldSnapshotArguments) -> Result<ExitCode> {
    let usual = [Engine::Peregrine, Engine::InnoDb];
    let mut held = true;
    for engine in parsed(&arguments.engines, Engine::parse, &usual)? {
        let server = host::start(
            &arguments.host,
            &[engine],
            arguments.writers,
            &format!("held-snapshot-{}", engine.name()),
            Vec::new(),
        )?;
        let request = held_snapshot::Request {
            engine,
            rows: arguments.rows,
            writers: arguments.writers,
            hold: Duration::from_secs_f64(arguments.duration),
            growth_limit: arguments.growth,
            patience: Duration::from_secs_f64(arguments.patience),
        };
        let outcome = held_snapshot::run(&server, &request, |text| {
            eprintln!("{}: {text}", engine.title());
        })?;
        println!("{outcome}");
        let good = outcome.held() || engine != Engine::Peregrine;
        held &= good;
        if good {
            server.remove()?;
        }
    }
    Ok(status(held))
}
