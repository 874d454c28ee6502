//! `peregrine prove power-loss`, `io-errors` and `disk-faults`: durability on a simulated disk.

use std::process::ExitCode;

use peregrine_harness::error::{HarnessError, Result};
use peregrine_harness::interrupt;
use peregrine_prove::simulated::work::{Findings, Outcome};
use peregrine_prove::simulated::{damage, io_errors, power_loss};

use crate::command::arguments::{DamageArguments, IoErrorsArguments, PowerLossArguments};

fn tell(line: &str) {
    eprintln!("{line}");
}

/// Prints the line of an outcome, and its failures.
fn conclude<F: Findings>(outcome: Result<Outcome<F>>) -> Result<ExitCode> {
    let outcome = match outcome {
        Err(HarnessError::Interrupted) => return Ok(ExitCode::from(interrupt::EXIT_STATUS)),
        other => other?,
    };
    println!("{outcome}");
    for failure in &outcome.totals.failures {
        eprintln!("  {failure}");
    }
    Ok(match outcome.held() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// Loses power at every moment; exit status 1 when a promise was broken.
///
/// # Errors
/// Any error of the action; the caller prints it.
pub fn power_loss(arguments: &PowerLossArguments) -> Result<ExitCode> {
    let request = power_loss::Request {
        workloads: arguments.simulation.workloads(arguments.workloads),
        images: arguments.images,
        moment: arguments.moment,
    };
    conclude(power_loss::run(&request, tell))
}

/// Makes calls fail and disks full; exit status 1 when a promise was broken.
///
/// # Errors
/// Any error of the action; the caller prints it.
pub fn io_errors(arguments: &IoErrorsArguments) -> Result<ExitCode> {
    let request = io_errors::Request {
        workloads: arguments.simulation.workloads(arguments.workloads),
        stride: arguments.stride,
    };
    conclude(io_errors::run(&request, tell))
}

/// Damages disks; exit status 1 when damage was not detected.
///
/// # Errors
/// Any error of the action; the caller prints it.
pub fn damage(arguments: &DamageArguments) -> Result<ExitCode> {
    let workloads = arguments.simulation.workloads(arguments.workloads);
    conclude(damage::run(&workloads, tell))
}
