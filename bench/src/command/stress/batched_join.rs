//! `peregrine bench batched-join`: a join through a secondary key, row by row and in batches of keys.

use std::process::ExitCode;

use peregrine_bench::stress::batched_join::{
    Request, {self},
};
use peregrine_bench::stress::larger_than_memory::SERVER_OPTIONS;
use peregrine_harness::engines::Engine;
use peregrine_harness::error::{HarnessError, Result};
use peregrine_harness::interrupt;

use crate::command::arguments::BatchedJoinArguments;
use peregrine_harness::command::arguments::HostArguments;
use peregrine_harness::command::exit::status;
use peregrine_harness::command::host;

/// Measures both engines and prints one line; exit status 1 when batches gain too little, or InnoDB's are faster.
///
/// # Errors
/// Any error of the action; the caller prints it.
pub fn run(arguments: &BatchedJoinArguments) -> Result<ExitCode> {
    let engines = [Engine::InnoDb, Engine::Peregrine];
    let options = SERVER_OPTIONS.map(str::to_owned).to_vec();
    let host = HostArguments {
        cache: arguments.cache,
        mariadbd: arguments.mariadbd.clone(),
    };
    let server = host::start(&host, &engines, 1, "batched-join", options)?;
    let request = Request {
        rows: arguments.rows,
    };
    let outcome = match batched_join::run(&request, &server, |told| eprintln!("{told}")) {
        Err(HarnessError::Interrupted) => return Ok(ExitCode::from(interrupt::EXIT_STATUS)),
        other => other?,
    };
    println!("{outcome}");
    server.remove()?;
    Ok(status(outcome.held()))
}
