//! `peregrine bench bars`: results held against what they must reach.

use std::process::ExitCode;

use peregrine_suite::error::{PathContext, Result};
use peregrine_suite::results::{file, Bars, Verdict};

use super::strain::status;
use crate::arguments::BarsArguments;

/// Prints the cells that are below and one line; exit status 1 when it is not held.
///
/// # Errors
/// What the suite says; the caller prints it.
pub fn run(arguments: &BarsArguments) -> Result<ExitCode> {
    let path = &arguments.bars;
    let text = std::fs::read_to_string(path).at("cannot read", path)?;
    let bars = Bars::read(&text, &path.display().to_string())?;
    let verdict = Verdict::of(&file::read(&arguments.dir)?, &bars)?;
    println!("{verdict}");
    Ok(status(verdict.held()))
}
