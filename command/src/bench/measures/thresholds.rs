//! `peregrine bench thresholds`: results held against what they must reach.

use std::process::ExitCode;

use peregrine_suite::error::{PathContext, Result};
use peregrine_suite::results::{file, Thresholds, Verdict};

use super::stress::status;
use crate::arguments::ThresholdsArguments;

/// Prints the cells that are below and one line; exit status 1 when it is not held.
///
/// # Errors
/// What the suite says; the caller prints it.
pub fn run(arguments: &ThresholdsArguments) -> Result<ExitCode> {
    let path = &arguments.thresholds;
    let text = std::fs::read_to_string(path).at("cannot read", path)?;
    let thresholds = Thresholds::read(&text, &path.display().to_string())?;
    let verdict = Verdict::of(&file::read(&arguments.dir)?, &thresholds)?;
    println!("{verdict}");
    Ok(status(verdict.held()))
}
