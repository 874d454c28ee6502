//! `peregrine bench null`: the clients' own cost.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use peregrine_bench::results::file;
use peregrine_bench::runner::load::client_cost::Costs;
use peregrine_harness::error::Result;
use peregrine_harness::interrupt;
use peregrine_harness::server::installation::target_directory;

use crate::command::arguments::NullArguments;
use peregrine_harness::command::exit::status;

/// Prints the cells and one line; exit status 1 when clients are too slow.
///
/// # Errors
/// Any error of the action; the caller prints it.
pub fn run(arguments: &NullArguments) -> Result<ExitCode> {
    let latest = || -> PathBuf { target_directory().join("bench").join("latest") };
    let dir = arguments.dir.clone().unwrap_or_else(latest);
    let time = Duration::from_secs_f64(arguments.run_time);
    let costs = Costs::measure(
        &file::read(&dir)?,
        time,
        arguments.minimum,
        interrupt::flag(),
    )?;
    println!("{costs}");
    Ok(status(costs.held()))
}
