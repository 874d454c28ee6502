//! `peregrine prove crash`: proof of durability by kills of the server, or of a process with the library.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use peregrine_harness::engines::Engine;
use peregrine_harness::error::{HarnessError, PathContext, Result};
use peregrine_harness::interrupt;
use peregrine_harness::server::installation::{find_plugin, target_directory};
use peregrine_harness::server::Installation;
use peregrine_prove::crash::{
    library, Limit, Request, {self},
};

use peregrine::Report;

use crate::command::arguments::{CrashArguments, CrashTarget, CrashWriterArguments};

/// Runs the rounds and prints one line; exit status 1 when a promise was broken.
///
/// # Errors
/// Any error of the action; the caller prints it.
pub fn run(arguments: &CrashArguments) -> Result<ExitCode> {
    let dir = arguments.dir.clone().unwrap_or_else(|| {
        let now = jiff::Zoned::now()
            .strftime("crash-%Y%m%d-%H%M%S")
            .to_string();
        target_directory().join("bench").join(now)
    });
    let limit = match arguments.duration {
        Some(seconds) => Limit::Time(Duration::from_secs(seconds)),
        None => Limit::Kills(arguments.kills),
    };
    let found = match arguments.target {
        CrashTarget::Server => of_the_server(arguments, limit, dir.clone()),
        CrashTarget::Library => of_the_library(arguments, limit, dir.clone()),
    };
    let (line, faults, held) = match found {
        Err(HarnessError::Interrupted) => return Ok(ExitCode::from(interrupt::EXIT_STATUS)),
        other => other?,
    };
    println!("{line}");
    for fault in &faults {
        eprintln!("  {fault}");
    }
    if held {
        Ok(ExitCode::SUCCESS)
    } else {
        eprintln!("the directory is kept: {}", dir.display());
        Ok(ExitCode::FAILURE)
    }
}

/// The result's line, the faults, and whether the promises were kept.
type Found = (String, Vec<String>, bool);

fn of_the_server(arguments: &CrashArguments, limit: Limit, dir: PathBuf) -> Result<Found> {
    let target = target_directory();
    let engine = Engine::parse(&arguments.engine)?;
    let plugin = if engine == Engine::Peregrine {
        Some(find_plugin(&target, arguments.mariadbd.plugin.as_deref())?)
    } else {
        None
    };
    let request = Request {
        limit,
        threads: arguments.threads,
        seed: arguments.seed,
        engine,
        dir,
        cache_bytes: arguments.cache,
        installation: Installation::find(&target)?,
        plugin,
        server_options: arguments.mariadbd.options.clone(),
        check_files: (engine == Engine::Peregrine).then_some(&check_files),
    };
    let outcome = crash::run(&request, |line| eprintln!("{line}"))?;
    let faults = outcome.faults.iter().map(|fault| fault.text().to_owned());
    Ok((outcome.to_string(), faults.collect(), outcome.held()))
}

fn of_the_library(arguments: &CrashArguments, limit: Limit, dir: PathBuf) -> Result<Found> {
    let mariadbd = &arguments.mariadbd;
    if Engine::parse(&arguments.engine)? != Engine::Peregrine
        || mariadbd.plugin.is_some()
        || !mariadbd.options.is_empty()
    {
        return Err(HarnessError::Usage(
            "--target library kills a process with the library, which is peregrine's and has no server: leave out \
             --engine, --plugin and options for mariadbd"
                .to_owned(),
        ));
    }
    let command = std::env::current_exe().at("cannot find", "the command itself".as_ref())?;
    let (threads, seed) = (arguments.threads, arguments.seed);
    let request = library::Request {
        limit,
        threads,
        seed,
        dir,
    };
    let database = request.database();
    let writer = |round: u32| {
        let mut writer = Command::new(&command);
        writer.arg("crash-writer").arg(&database);
        for (option, value) in [
            ("--threads", u64::from(threads)),
            ("--seed", seed),
            ("--round", u64::from(round)),
        ] {
            writer.arg(option).arg(value.to_string());
        }
        writer
    };
    let outcome = library::run(&request, writer, |line| eprintln!("{line}"))?;
    Ok((outcome.to_string(), outcome.faults.clone(), outcome.held()))
}

/// Runs the process that is killed.
///
/// # Errors
/// The library's errors.
pub fn write(arguments: &CrashWriterArguments) -> Result<ExitCode> {
    let CrashWriterArguments {
        dir,
        threads,
        seed,
        round,
    } = arguments;
    library::write_until_killed(dir, *threads, *seed, *round)?;
    Ok(ExitCode::SUCCESS)
}

/// Verifies the engine's directory in a server's data directory; returns the first problem, if any.
///
/// # Errors
/// When it can't be opened.
fn check_files(data_dir: &Path) -> Result<Option<String>> {
    let dir = data_dir.join("#peregrine");
    let mut report = Report::default();
    peregrine::check(&dir, &mut report)
        .map_err(|error| HarnessError::Server(format!("{}: {error}", dir.display())))?;
    Ok(report.problems.first().map(|first| {
        let others = report.problems.len() as u64 - 1 + report.more_problems;
        format!("peregrine check: {first} (and {others} problems more)")
    }))
}
