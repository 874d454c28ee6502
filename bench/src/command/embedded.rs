//! `peregrine bench embedded`: the library compared with other embedded stores.

use std::process::ExitCode;
use std::time::Duration;

use peregrine_bench::embedded::{
    Expected, Request, NAMES, {self},
};
use peregrine_harness::error::{HarnessError, PathContext as _, Result};
use peregrine_harness::interrupt;
use peregrine_harness::server::installation::target_directory;

use super::run::distinct;
use crate::command::arguments::EmbeddedArguments;
use peregrine_harness::command::directory::new_directory;
use peregrine_harness::command::exit::status;

/// Measures the stores and prints a table and one line; exit status 1 when a promise did not hold.
///
/// # Errors
/// Any error of the action; the caller prints it.
pub fn run(arguments: &EmbeddedArguments) -> Result<ExitCode> {
    let names = if arguments.stores.is_empty() {
        NAMES.map(str::to_owned).to_vec()
    } else {
        distinct(arguments.stores.clone())
    };
    let bench = target_directory().join("bench");
    let dir = new_directory(None, &bench, "embedded")?;
    std::fs::create_dir_all(&dir).at("cannot create", &dir)?;
    let mut stores = Vec::new();
    for name in &names {
        stores.push(embedded::create(name, &dir.join(name), arguments.cache)?);
    }
    let expected = Expected::compute(arguments.seed, arguments.rows);
    let request = Request {
        threads: distinct(arguments.threads.clone()),
        run: Duration::from_secs_f64(arguments.seconds),
        runs: arguments.runs,
        seed: arguments.seed,
    };
    let found = embedded::run(&mut stores, &expected, &request, |told| eprintln!("{told}"));
    drop(stores);
    std::fs::remove_dir_all(&dir).at("cannot remove", &dir)?;
    let outcome = match found {
        Err(HarnessError::Interrupted) => return Ok(ExitCode::from(interrupt::EXIT_STATUS)),
        other => other?,
    };
    println!("{}\n\n{}\n{outcome}", outcome.table(), outcome.details());
    Ok(status(outcome.held()))
}
