//! `peregrine bench crash`: durability proven by killing the server.

use std::process::ExitCode;

use peregrine_suite::crash::{self, Request};
use peregrine_suite::error::{Result, SuiteError};
use peregrine_suite::runner::interrupt;
use peregrine_suite::server::installation::{find_plugin, target_directory};
use peregrine_suite::server::Installation;
use peregrine_suite::target::Engine;

use crate::arguments::CrashArguments;
use crate::check;

/// Runs the rounds and prints one line; exit status 1 when a promise was broken.
///
/// # Errors
/// What the suite says; the caller prints it.
pub fn run(arguments: &CrashArguments) -> Result<ExitCode> {
    let target = target_directory();
    let engine = Engine::parse(&arguments.engine)?;
    let plugin = if engine == Engine::Peregrine {
        Some(find_plugin(&target, arguments.plugin.as_deref())?)
    } else {
        None
    };
    let dir = arguments.dir.clone().unwrap_or_else(|| {
        let now = jiff::Zoned::now()
            .strftime("crash-%Y%m%d-%H%M%S")
            .to_string();
        target.join("bench").join(now)
    });
    let request = Request {
        kills: arguments.kills,
        threads: arguments.threads,
        seed: arguments.seed,
        engine,
        dir: dir.clone(),
        cache_bytes: arguments.cache,
        installation: Installation::find(&target)?,
        plugin,
        server_options: arguments.options.clone(),
        check_files: (engine == Engine::Peregrine).then_some(&check::look),
    };
    let outcome = match crash::run(&request, |line| eprintln!("{line}")) {
        Err(SuiteError::Interrupted) => return Ok(ExitCode::from(interrupt::EXIT_STATUS)),
        other => other?,
    };
    println!("{outcome}");
    for fault in &outcome.faults {
        eprintln!("  {}", fault.text());
    }
    if outcome.held() {
        Ok(ExitCode::SUCCESS)
    } else {
        eprintln!("the server's directory is kept: {}", dir.display());
        Ok(ExitCode::FAILURE)
    }
}
