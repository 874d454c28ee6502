//! `peregrine prove fuzz`: hostile input.

use std::process::ExitCode;
use std::time::Duration;

use peregrine_harness::error::{HarnessError, Result};
use peregrine_harness::interrupt;
use peregrine_harness::server::installation::target_directory;
use peregrine_prove::fuzz::{
    Request, {self},
};

use crate::command::arguments::FuzzArguments;

/// Runs the targets one after the other and prints one line each; exit status 1 when there are findings.
///
/// # Errors
/// Any error of the action; the caller prints it.
pub fn run(arguments: &FuzzArguments) -> Result<ExitCode> {
    let corpus = arguments
        .corpus
        .clone()
        .unwrap_or_else(fuzz::corpus_directory);
    if arguments.write_corpus {
        let written = fuzz::write_corpus(&corpus)?;
        println!("{written} inputs in {}", corpus.display());
        return Ok(ExitCode::SUCCESS);
    }
    let known: Vec<&str> = fuzz::targets().collect();
    for name in &arguments.target {
        if !known.contains(&name.as_str()) {
            return Err(HarnessError::Usage(format!(
                "unknown target '{name}': the targets are {}",
                known.join(", ")
            )));
        }
    }
    let mut all_held = true;
    for target in fuzz::targets() {
        if !arguments.target.is_empty() && !arguments.target.iter().any(|name| name == target) {
            continue;
        }
        let request = Request {
            target,
            duration: Duration::from_secs_f64(arguments.duration),
            executions: arguments.executions.unwrap_or(u64::MAX),
            seed: arguments.seed,
            corpus: corpus.clone(),
            findings: target_directory().join("bench/fuzz"),
        };
        let outcome = match fuzz::run(&request) {
            Err(HarnessError::Interrupted) => return Ok(ExitCode::from(interrupt::EXIT_STATUS)),
            other => other?,
        };
        println!("{outcome}");
        for finding in &outcome.findings {
            eprintln!("  {finding}");
        }
        all_held &= outcome.held();
    }
    Ok(if all_held {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
