//! `peregrine prove statements`: one answer, whatever the plan, on servers with random settings.

use std::process::ExitCode;
use std::time::Duration;

use peregrine_harness::engines::hosted::Hosted;
use peregrine_harness::engines::Engine;
use peregrine_harness::error::Result;
use peregrine_harness::interrupt;
use peregrine_prove::statements::{
    Life, Request, {self},
};

use crate::command::arguments::StatementsArguments;
use peregrine_harness::command::host;

/// Runs servers one after the other and prints one line, also when it is interrupted.
///
/// When something is wrong, exit status 1, and the server's directory is kept.
///
/// # Errors
/// Any error of the action; the caller prints it.
pub fn run(arguments: &StatementsArguments) -> Result<ExitCode> {
    let engine = Engine::parse(&arguments.engine)?;
    let request = Request {
        statements: arguments.statements,
        duration: Duration::from_secs_f64(arguments.duration),
        statements_a_life: arguments.statements_a_life,
        sessions: arguments.sessions,
        engine,
        seed: arguments.seed,
    };
    let start = |life: &Life| {
        let purpose = format!("statements-{}", life.seed);
        let mut place = host::place(&arguments.mariadbd, &[engine], arguments.sessions, &purpose)?;
        place.settings.cache_bytes = life.cache;
        place
            .server_options
            .splice(0..0, life.options.iter().cloned());
        // A plug-in without the feature `shaken` ignores this.
        let knobs = ("PEREGRINE_SHAKEN".to_owned(), life.seed.to_string());
        place.environment.push(knobs);
        Hosted::start(place)
    };
    let outcome = statements::run(&request, start, |told| eprintln!("{told}"))?;
    println!("{outcome}");
    for fault in &outcome.faults {
        eprintln!("  {fault}");
    }
    Ok(match outcome.held() {
        _ if outcome.interrupted && outcome.faults.is_empty() => {
            ExitCode::from(interrupt::EXIT_STATUS)
        }
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}
