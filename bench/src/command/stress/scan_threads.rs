//! `peregrine bench scan-threads`: the gain of several threads for a scan.

use std::process::ExitCode;

use peregrine_bench::stress::scan_threads::{
    Request, {self},
};
use peregrine_harness::error::{HarnessError, PathContext, Result};
use peregrine_harness::interrupt;
use peregrine_harness::server::installation::target_directory;

use crate::command::arguments::ScanThreadsArguments;
use peregrine_harness::command::directory::new_directory;
use peregrine_harness::command::exit::status;

/// Measures and prints one line; exit status 1 when several threads are not as much faster as required.
///
/// # Errors
/// Any error of the action; the caller prints it.
pub fn run(arguments: &ScanThreadsArguments) -> Result<ExitCode> {
    let bench = target_directory().join("bench");
    let dir = new_directory(None, &bench, "scan-threads")?;
    std::fs::create_dir_all(&dir).at("cannot create", &dir)?;
    let request = Request {
        rows: arguments.rows,
        threads: arguments.threads as usize,
        rounds: arguments.rounds,
        cache_bytes: arguments.cache,
        minimum: arguments.minimum,
    };
    let found = scan_threads::run(&request, &dir.join("db"));
    std::fs::remove_dir_all(&dir).at("cannot remove", &dir)?;
    let outcome = match found {
        Err(HarnessError::Interrupted) => return Ok(ExitCode::from(interrupt::EXIT_STATUS)),
        other => other?,
    };
    println!("{outcome}");
    Ok(status(outcome.held()))
}
