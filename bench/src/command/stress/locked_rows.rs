//! `peregrine bench locked-rows`: very many rows that one transaction locks.

use std::process::ExitCode;

use peregrine_bench::stress::locked_rows::{
    Request, {self},
};
use peregrine_harness::engines::Engine;
use peregrine_harness::error::{HarnessError, Result};
use peregrine_harness::interrupt;

use crate::command::arguments::LockedRowsArguments;
use peregrine_harness::command::exit::status;
use peregrine_harness::command::host;

/// Measures both engines and prints one line; exit status 1 when Peregrine's locks don't hold, or take too much memory.
///
/// # Errors
/// Any error of the action; the caller prints it.
pub fn run(arguments: &LockedRowsArguments) -> Result<ExitCode> {
    let engines = [Engine::InnoDb, Engine::Peregrine];
    let server = host::start(&arguments.host, &engines, 2, "locked-rows", Vec::new())?;
    let request = Request {
        rows: arguments.rows,
    };
    let outcome = match locked_rows::run(&request, &server, |told| eprintln!("{told}")) {
        Err(HarnessError::Interrupted) => return Ok(ExitCode::from(interrupt::EXIT_STATUS)),
        other => other?,
    };
    println!("{outcome}");
    server.remove()?;
    Ok(status(outcome.held()))
}
