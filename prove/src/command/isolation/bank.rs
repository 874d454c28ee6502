//! `peregrine prove bank`: transfers of money, with audits.

use std::process::ExitCode;
use std::time::Duration;

use peregrine_harness::engines::Engine;
use peregrine_harness::error::{HarnessError, Result};
use peregrine_harness::interrupt;
use peregrine_prove::bank::{
    Request, {self},
};

use crate::command::arguments::BankArguments;
use peregrine_harness::command::host;

/// Runs the test and prints one line; exit status 1 when an audit was wrong or a transfer lost.
///
/// # Errors
/// Any error of the action; the caller prints it.
pub fn run(arguments: &BankArguments) -> Result<ExitCode> {
    let engine = Engine::parse(&arguments.engine)?;
    let mut server = host::start(
        &arguments.host,
        &[engine],
        arguments.threads,
        "bank",
        Vec::new(),
    )?;
    let request = Request {
        threads: arguments.threads,
        duration: Duration::from_secs_f64(arguments.duration),
        kill_every: arguments.kill_every.map(Duration::from_secs_f64),
        seed: arguments.seed,
        engine,
        prepare: arguments.prepare.clone(),
    };
    let outcome = match bank::run(&request, &mut server) {
        Err(HarnessError::Interrupted) => return Ok(ExitCode::from(interrupt::EXIT_STATUS)),
        other => other?,
    };
    println!("{outcome}");
    for problem in outcome.wrong.iter().chain(&outcome.faults).take(10) {
        eprintln!("  {problem}");
    }
    if outcome.held() {
        server.remove()?;
        Ok(ExitCode::SUCCESS)
    } else {
        Ok(ExitCode::FAILURE)
    }
}
