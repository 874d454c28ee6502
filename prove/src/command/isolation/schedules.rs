//! `peregrine prove schedules`: the whole engine under orders of threads that seeds decide.

use std::process::ExitCode;

use peregrine_harness::error::Result;
use peregrine_harness::interrupt;
use peregrine_prove::schedules::work::{here, run as run_all, stay_on, Request};

use crate::command::arguments::{SchedulesArguments, SchedulesHereArguments};

/// Runs schedules in processes; exit status 1 when one failed.
///
/// # Errors
/// Any error of the action; the caller prints it.
pub fn run(arguments: &SchedulesArguments) -> Result<ExitCode> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let request = Request {
        seed: arguments.seed.unwrap_or_else(fresh_seed),
        schedules: arguments.schedules,
        duration: std::time::Duration::from_secs_f64(arguments.duration),
        in_process: arguments.in_process,
        first_process: arguments.first_process,
        processes: arguments
            .processes
            .unwrap_or(u32::try_from(cores).unwrap_or(1)),
        stop_when_found: arguments.stop_when_found,
    };
    let outcome = run_all(&request, |line| eprintln!("{line}"))?;
    println!("{outcome}");
    for failure in &outcome.failures {
        println!("  {failure}");
    }
    if interrupt::requested() {
        let next = outcome.next_process;
        println!(
            "interrupted; the rest: --seed {} --first-process {next}",
            outcome.seed
        );
        return Ok(ExitCode::from(interrupt::EXIT_STATUS));
    }
    Ok(match outcome.held() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// Runs schedules in this process; exit status 1 when one failed.
pub fn run_here(arguments: &SchedulesHereArguments) -> ExitCode {
    if let Some(processor) = arguments.processor {
        stay_on(processor);
    }
    let told = |line: &str| println!("{line}");
    match here(arguments.first, arguments.schedules, told) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

fn fresh_seed() -> u64 {
    let since = std::time::SystemTime::UNIX_EPOCH.elapsed();
    since.map_or(1, |since| since.as_secs())
}
