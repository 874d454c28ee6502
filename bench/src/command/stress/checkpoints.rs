//! `peregrine bench checkpoint-stalls` and `recovery-time`: the cost of checkpoints for writers, and their gain for a
//! restart.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use peregrine::Options;
use peregrine_bench::stress::load::write_load;
use peregrine_bench::stress::{checkpoint_stalls, recovery_time};
use peregrine_harness::engines::Engine;
use peregrine_harness::error::{HarnessError, PathContext, Result};
use peregrine_harness::server::installation::target_directory;

use crate::command::arguments::{CheckpointStallsArguments, RecoveryTimeArguments};
use peregrine_harness::command::directory::new_directory;
use peregrine_harness::command::exit::status;
use peregrine_harness::command::host;

/// Takes checkpoint after checkpoint while writers run; exit status 1 when checkpoints made them pause.
///
/// # Errors
/// Any error of the action; the caller prints it.
pub fn stalls(arguments: &CheckpointStallsArguments) -> Result<ExitCode> {
    let mut held = true;
    for target in &arguments.targets {
        let outcome = match target.as_str() {
            "library" => library_stalls(arguments)?,
            "server" => server_stalls(arguments)?,
            other => {
                return Err(HarnessError::Usage(format!(
                    "there is no target {other}: choose library or server"
                )))
            }
        };
        println!("{outcome}");
        held &= outcome.held();
    }
    Ok(status(held))
}

fn request<'a>(
    arguments: &CheckpointStallsArguments,
    dir: &'a Path,
) -> checkpoint_stalls::Request<'a> {
    checkpoint_stalls::Request {
        writers: arguments.writers,
        duration: Duration::from_secs_f64(arguments.duration),
        between: Duration::from_secs_f64(arguments.between),
        limit: Duration::from_secs_f64(arguments.limit / 1e3),
        dir,
    }
}

fn library_stalls(arguments: &CheckpointStallsArguments) -> Result<checkpoint_stalls::Outcome> {
    let bench = target_directory().join("bench");
    let dir = new_directory(None, &bench, "checkpoint-stalls")?;
    std::fs::create_dir_all(&dir).at("cannot create", &dir)?;
    let options = Options {
        pool_bytes: usize::try_from(arguments.host.cache).unwrap_or(usize::MAX),
        ..Options::default()
    };
    eprintln!("library: filling {} rows", arguments.rows);
    let load = write_load::Library::create(&dir.join("db"), options, arguments.rows)?;
    let outcome = checkpoint_stalls::run(&load, &request(arguments, &dir), |text| {
        eprintln!("library: {text}");
    });
    drop(load);
    std::fs::remove_dir_all(&dir).at("cannot remove", &dir)?;
    outcome
}

fn server_stalls(arguments: &CheckpointStallsArguments) -> Result<checkpoint_stalls::Outcome> {
    let server = host::start(
        &arguments.host,
        &[Engine::Peregrine],
        arguments.writers,
        "checkpoint-stalls",
        Vec::new(),
    )?;
    eprintln!("server: filling {} rows", arguments.rows);
    let load = write_load::Server::create(&server, arguments.rows, 1)?;
    let dir = server.data_dir();
    let outcome = checkpoint_stalls::run(&load, &request(arguments, &dir), |text| {
        eprintln!("server: {text}");
    })?;
    server.remove()?;
    Ok(outcome)
}

/// Kills a server under full load; exit status 1 when it is not ready again in time.
///
/// # Errors
/// Any error of the action; the caller prints it.
pub fn recovery_time(arguments: &RecoveryTimeArguments) -> Result<ExitCode> {
    let mut server = host::start(
        &arguments.host,
        &[Engine::Peregrine],
        arguments.writers,
        "recovery-time",
        vec![format!(
            "--peregrine-recovery-target-seconds={}",
            arguments.target
        )],
    )?;
    let request = recovery_time::Request {
        target: Duration::from_secs(arguments.target.into()),
        rows: arguments.rows,
        writers: arguments.writers,
        rows_a_statement: arguments.rows_a_statement,
        lifetime: Duration::from_secs_f64(arguments.duration),
        kills: arguments.kills,
        open_rows: arguments.open_rows,
    };
    let outcome = recovery_time::run(&mut server, &request, |text| eprintln!("{text}"))?;
    println!("{outcome}");
    if outcome.held() {
        server.remove()?;
    }
    Ok(status(outcome.held()))
}
