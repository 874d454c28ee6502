//! `peregrine prove differential`: random tables and statements, with the answers of `InnoDB`.

use std::process::ExitCode;

use peregrine_harness::engines::Engine;
use peregrine_harness::error::{HarnessError, Result};
use peregrine_harness::interrupt;
use peregrine_prove::differential::{
    Request, {self},
};

use crate::command::arguments::DifferentialArguments;
use peregrine_harness::command::host;

/// Runs the comparison and prints one line.
///
/// When something differs, exit status 1, and the shortened scripts are on standard error.
///
/// # Errors
/// Any error of the action; the caller prints it.
pub fn run(arguments: &DifferentialArguments) -> Result<ExitCode> {
    let engines = [Engine::InnoDb, Engine::Peregrine];
    let mut server = host::start(&arguments.host, &engines, 2, "differential", Vec::new())?;
    let request = Request {
        statements: arguments.statements,
        seed: arguments.seed,
        first: arguments.first,
        most_different: arguments.differences,
    };
    let outcome = match differential::run(&request, &mut server, |told| eprintln!("{told}")) {
        Err(HarnessError::Interrupted) => return Ok(ExitCode::from(interrupt::EXIT_STATUS)),
        other => other?,
    };
    println!("{outcome}");
    server.remove()?;
    Ok(ExitCode::from(u8::from(!outcome.held())))
}
