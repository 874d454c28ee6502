//! `peregrine prove pushdown`: the same answers from the engine and from the server.

use std::process::ExitCode;

use peregrine_harness::engines::Engine;
use peregrine_harness::error::{HarnessError, Result};
use peregrine_harness::interrupt;
use peregrine_prove::pushdown::{
    Request, {self},
};

use crate::command::arguments::PushdownArguments;
use peregrine_harness::command::host;

/// Runs the comparison and prints one line; exit status 1 when answers differ.
///
/// # Errors
/// Any error of the action; the caller prints it.
pub fn run(arguments: &PushdownArguments) -> Result<ExitCode> {
    let engines = [Engine::InnoDb, Engine::Peregrine];
    let server = host::start(&arguments.host, &engines, 2, "pushdown", Vec::new())?;
    let request = Request {
        queries: arguments.queries,
        seed: arguments.seed,
    };
    let outcome = match pushdown::run(&request, &server, |told| eprintln!("{told}")) {
        Err(HarnessError::Interrupted) => return Ok(ExitCode::from(interrupt::EXIT_STATUS)),
        other => other?,
    };
    println!("{outcome}");
    for query in &outcome.different {
        eprintln!("  {query}");
    }
    if outcome.held() {
        server.remove()?;
        Ok(ExitCode::SUCCESS)
    } else {
        Ok(ExitCode::FAILURE)
    }
}
