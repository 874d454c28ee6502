//! `peregrine bench power-loss`, `io-errors` and `damage`: durability on a simulated disk.

use std::fmt::Display;
use std::process::ExitCode;

use peregrine_suite::error::{Result, SuiteError};
use peregrine_suite::runner::interrupt;
use peregrine_suite::simulated::{damage, io_errors, power_loss};

use crate::arguments::{DamageArguments, IoErrorsArguments, PowerLossArguments};

fn tell(line: &str) {
    eprintln!("{line}");
}

/// Prints the line of an outcome, and what failed.
fn conclude<T: Display>(
    outcome: Result<T>,
    held: impl Fn(&T) -> bool,
    failures: impl Fn(&T) -> &[String],
) -> Result<ExitCode> {
    let outcome = match outcome {
        Err(SuiteError::Interrupted) => return Ok(ExitCode::from(interrupt::EXIT_STATUS)),
        other => other?,
    };
    println!("{outcome}");
    for failure in failures(&outcome) {
        eprintln!("  {failure}");
    }
    Ok(match held(&outcome) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// Power lost at every moment; exit status 1 when a promise was broken.
///
/// # Errors
/// What the suite says; the caller prints it.
pub fn power_loss(arguments: &PowerLossArguments) -> Result<ExitCode> {
    let request = power_loss::Request {
        images: arguments.images,
        workloads: arguments.workloads,
        seed: arguments.simulation.seed,
        size: arguments.simulation.size,
        threads: arguments.simulation.threads(),
        workload: arguments.workload,
        moment: arguments.moment,
        stop_when_found: false,
    };
    let outcome = power_loss::run(&request, tell);
    conclude(outcome, power_loss::Outcome::held, |o| &o.failures)
}

/// Calls that fail, and full disks; exit status 1 when a promise was broken.
///
/// # Errors
/// What the suite says; the caller prints it.
pub fn io_errors(arguments: &IoErrorsArguments) -> Result<ExitCode> {
    let request = io_errors::Request {
        workloads: arguments.workloads,
        seed: arguments.simulation.seed,
        size: arguments.simulation.size,
        threads: arguments.simulation.threads(),
        workload: arguments.workload,
        stride: arguments.stride,
        stop_when_found: false,
    };
    let outcome = io_errors::run(&request, tell);
    conclude(outcome, io_errors::Outcome::held, |o| &o.failures)
}

/// Damaged disks; exit status 1 when a damage was overlooked.
///
/// # Errors
/// What the suite says; the caller prints it.
pub fn damage(arguments: &DamageArguments) -> Result<ExitCode> {
    let request = damage::Request {
        workloads: arguments.workloads,
        seed: arguments.simulation.seed,
        size: arguments.simulation.size,
        threads: arguments.simulation.threads(),
        stop_when_found: false,
    };
    let outcome = damage::run(&request, tell);
    conclude(outcome, damage::Outcome::held, |o| &o.failures)
}
