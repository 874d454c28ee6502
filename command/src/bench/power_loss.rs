//! `peregrine bench power-loss`: power lost at every moment of many workloads on a simulated disk.

use std::process::ExitCode;

use peregrine_suite::error::{Result, SuiteError};
use peregrine_suite::runner::interrupt;
use peregrine_suite::simulated::power_loss::{self, Request};

use crate::arguments::PowerLossArguments;

/// Runs the proof and prints one line; exit status 1 when a promise was broken.
///
/// # Errors
/// What the suite says; the caller prints it.
pub fn run(arguments: &PowerLossArguments) -> Result<ExitCode> {
    let request = Request {
        images: arguments.images,
        workloads: arguments.workloads,
        seed: arguments.simulation.seed,
        size: arguments.simulation.size,
        threads: arguments.simulation.threads(),
        workload: arguments.workload,
        moment: arguments.moment,
    };
    let outcome = match power_loss::run(&request, |line| eprintln!("{line}")) {
        Err(SuiteError::Interrupted) => return Ok(ExitCode::from(interrupt::EXIT_STATUS)),
        other => other?,
    };
    println!("{outcome}");
    for failure in &outcome.failures {
        eprintln!("  {failure}");
    }
    Ok(match outcome.held() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}
