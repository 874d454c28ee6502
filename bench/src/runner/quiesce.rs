//! Makes a server do its engines' deferred work, so that it affects no other engine's figures.

use std::path::Path;
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;

use super::disk;
use crate::results::record::Deferred;
use peregrine_harness::engines::Engine;
use peregrine_harness::error::{Result, StatementContext};
use peregrine_harness::server::process::Process;

/// The maximum wait for background work.
const LONGEST: Duration = Duration::from_secs(60);
/// The interval over which the server's processor time shows whether it is idle.
const LOOK: Duration = Duration::from_millis(250);

/// Asks an engine to do its deferred work at once.
///
/// # Errors
/// When a statement fails.
pub fn bring_to_rest(connection: &mut mysql::Conn, engine: Engine) -> Result<()> {
    match engine {
        Engine::MyRocks => run(
            connection,
            "SET GLOBAL rocksdb_force_flush_memtable_and_lzero_now = 1",
        ),
        // Until a checkpoint, changed pages are only in memory and in the log.
        Engine::Peregrine => run(connection, "SET GLOBAL peregrine_checkpoint_now = ON"),
        Engine::InnoDb | Engine::MyIsam | Engine::Aria | Engine::Embedded(_) | Engine::Other(_) => {
            Ok(())
        }
    }
}

/// Makes an engine write its changes and syncs its files, waits until the server is idle, and returns the cost.
///
/// # Errors
/// When a statement fails, or a file can't be synced.
pub fn drain(
    connection: &mut mysql::Conn,
    (process, data_dir): (Process, &Path),
    engine: Engine,
) -> Result<Deferred> {
    let (cpu, written) = (process.cpu_seconds(), process.written_bytes());
    let begun = Instant::now();
    let tables = tables(connection, engine)?;
    match engine {
        // The measured transactions may have dropped all tables.
        _ if tables.is_empty() => {}
        // InnoDB has no statement for a checkpoint, but this one writes the pages of these tables at once.
        Engine::InnoDb => {
            run(connection, &format!("FLUSH TABLES {tables} FOR EXPORT"))?;
            run(connection, "UNLOCK TABLES")?;
        }
        Engine::MyIsam | Engine::Aria | Engine::Embedded(_) | Engine::Other(_) => {
            run(connection, &format!("FLUSH TABLES {tables}"))?;
        }
        Engine::MyRocks | Engine::Peregrine => bring_to_rest(connection, engine)?,
    }
    disk::sync(&disk::data_files(data_dir, engine)?)?;
    let asked = begun.elapsed();
    // Counts the time until the server was idle, without the last interval, which showed that it was.
    let seconds = asked + settle(process);
    let since = |now: Option<f64>, before: Option<f64>| Some((now? - before?).max(0.0));
    Ok(Deferred {
        seconds: (seconds.as_secs_f64() * 1e6).round() / 1e6,
        server_cpu_s: since(process.cpu_seconds(), cpu).map(|s| (s * 100.0).round() / 100.0),
        written_bytes: process
            .written_bytes()
            .zip(written)
            .map(|(now, before)| now.saturating_sub(before)),
    })
}

/// Returns the present tables of an engine's schema, as an SQL list.
fn tables(connection: &mut mysql::Conn, engine: Engine) -> Result<String> {
    let schema = engine.schema();
    let statement = format!(
        "SELECT table_name FROM information_schema.tables \
         WHERE table_schema = '{schema}' AND table_type = 'BASE TABLE'"
    );
    let names: Vec<String> = connection.query(&statement).running(&statement)?;
    let quoted = names
        .iter()
        .map(|name| format!("{schema}.`{}`", name.replace('`', "``")));
    Ok(quoted.collect::<Vec<_>>().join(", "))
}

/// Waits until the server is idle, so that one engine's deferred work is not charged to the next.
///
/// Returns how long the server was busy.
pub fn settle(process: Process) -> Duration {
    let begun = Instant::now();
    let mut busy = Duration::ZERO;
    let mut before = process.cpu_ticks();
    while begun.elapsed() < LONGEST {
        std::thread::sleep(LOOK);
        let now = process.cpu_ticks();
        match (before, now) {
            // A tick is a hundredth of a second. One tick in an interval is 4 % of one processor and counts as idle.
            (Some(before), Some(now)) if now.saturating_sub(before) > 1 => {}
            _ => break,
        }
        busy = begun.elapsed();
        before = now;
    }
    busy
}

fn run(connection: &mut mysql::Conn, statement: &str) -> Result<()> {
    connection.query_drop(statement).running(statement)
}
