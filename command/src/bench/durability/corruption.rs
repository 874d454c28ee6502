//! `peregrine bench bit-flips`: damage of every kind, found.

use std::process::ExitCode;

use peregrine_suite::corruption::{
    Request, {self},
};
use peregrine_suite::error::{Result, SuiteError};
use peregrine_suite::runner::interrupt;

use crate::arguments::CorruptionArguments;

/// Damages a database in memory and prints what was found; exit status 1 when damage was not.
///
/// # Errors
/// What the suite says; the caller prints it.
pub fn run(arguments: &CorruptionArguments) -> Result<ExitCode> {
    let request = Request {
        samples: arguments.samples,
        planted: arguments.planted,
        seed: arguments.seed,
    };
    let outcome = match corruption::run(&request, |line| eprintln!("{line}")) {
        Err(SuiteError::Interrupted) => return Ok(ExitCode::from(interrupt::EXIT_STATUS)),
        other => other?,
    };
    for wrong in outcome.wrong.iter().take(20) {
        eprintln!("  {wrong}");
    }
    println!("{outcome}");
    Ok(if outcome.held() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
