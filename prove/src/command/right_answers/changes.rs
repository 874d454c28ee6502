//! `peregrine prove changes`: the same rows from both engines.

use std::process::ExitCode;

use peregrine_harness::engines::Engine;
use peregrine_harness::error::{HarnessError, Result};
use peregrine_harness::interrupt;
use peregrine_prove::changes::{
    Request, {self},
};

use crate::command::arguments::ChangesArguments;
use peregrine_harness::command::host;

/// Runs the comparison and prints one line.
///
/// When something differs, exit status 1, and the server's directory is kept.
///
/// # Errors
/// Any error of the action; the caller prints it.
pub fn run(arguments: &ChangesArguments) -> Result<ExitCode> {
    let engines = [Engine::InnoDb, Engine::Peregrine];
    let server = host::start(&arguments.host, &engines, 2, "changes", Vec::new())?;
    let request = Request {
        statements: arguments.statements,
        seed: arguments.seed,
    };
    let outcome = match changes::run(&request, &server, |told| eprintln!("{told}")) {
        Err(HarnessError::Interrupted) => return Ok(ExitCode::from(interrupt::EXIT_STATUS)),
        other => other?,
    };
    println!("{outcome}");
    for told in &outcome.different {
        eprintln!("  {told}");
    }
    if outcome.held() {
        server.remove()?;
        Ok(ExitCode::SUCCESS)
    } else {
        Ok(ExitCode::FAILURE)
    }
}
