//! `peregrine bench thresholds`: results compared with thresholds.

use std::process::ExitCode;

use peregrine_bench::results::{file, Thresholds, Verdict};
use peregrine_harness::error::{PathContext, Result};

use crate::command::arguments::ThresholdsArguments;
use peregrine_harness::command::exit::status;

/// Prints the cells below their thresholds and one line; exit status 1 when there are any.
///
/// # Errors
/// Any error of the action; the caller prints it.
pub fn run(arguments: &ThresholdsArguments) -> Result<ExitCode> {
    let path = &arguments.thresholds;
    let text = std::fs::read_to_string(path).at("cannot read", path)?;
    let thresholds = Thresholds::read(&text, &path.display().to_string())?;
    let verdict = Verdict::of(&file::read(&arguments.dir)?, &thresholds)?;
    println!("{verdict}");
    Ok(status(verdict.held()))
}
