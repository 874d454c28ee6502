//! `peregrine bench`: measuring engines beside each other.

mod behaviour;
mod crash;
mod report;
mod run;

use std::process::ExitCode;

use peregrine_suite::error::Result;

use crate::arguments::BenchAction;

/// Does what was asked for.
///
/// # Errors
/// What the suite says; the caller prints it.
pub fn run(action: &BenchAction) -> Result<ExitCode> {
    match action {
        BenchAction::Run(arguments) => run::run(arguments),
        BenchAction::Report(arguments) => report::run(arguments),
        BenchAction::Behaviour(arguments) => behaviour::run(arguments),
        BenchAction::Crash(arguments) => crash::run(arguments),
    }
}
