//! `peregrine prove answers`: statements that Peregrine once answered wrongly, on InnoDB and on Peregrine.

use std::process::ExitCode;

use peregrine_harness::engines::Engine;
use peregrine_harness::error::{HarnessError, Result};
use peregrine_harness::interrupt;
use peregrine_prove::answers;

use crate::command::arguments::AnswersArguments;
use peregrine_harness::command::host;

/// Runs the scripts and prints a line for each and one for all; exit status 1 when answers differ.
///
/// # Errors
/// Any error of the action; the caller prints it.
pub fn run(arguments: &AnswersArguments) -> Result<ExitCode> {
    let engines = [Engine::InnoDb, Engine::Peregrine];
    let mut server = host::start(&arguments.host, &engines, 2, "answers", Vec::new())?;
    let outcome = match answers::run(&arguments.case, &mut server, |told| println!("{told}")) {
        Err(HarnessError::Interrupted) => return Ok(ExitCode::from(interrupt::EXIT_STATUS)),
        other => other?,
    };
    println!("{outcome}");
    if outcome.held() {
        server.remove()?;
        Ok(ExitCode::SUCCESS)
    } else {
        Ok(ExitCode::FAILURE)
    }
}
