//! `peregrine prove bit-flips`: detection of every kind of damage.

use std::process::ExitCode;

use peregrine_harness::error::{HarnessError, Result};
use peregrine_harness::interrupt;
use peregrine_prove::corruption::{
    Request, {self},
};

use crate::command::arguments::CorruptionArguments;

/// Damages a database in memory and prints the findings; exit status 1 when damage was not found.
///
/// # Errors
/// Any error of the action; the caller prints it.
pub fn run(arguments: &CorruptionArguments) -> Result<ExitCode> {
    let request = Request {
        samples: arguments.samples,
        planted: arguments.planted,
        seed: arguments.seed,
    };
    let outcome = match corruption::run(&request, |line| eprintln!("{line}")) {
        Err(HarnessError::Interrupted) => return Ok(ExitCode::from(interrupt::EXIT_STATUS)),
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
