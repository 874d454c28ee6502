//! `peregrine bench larger-than-memory`: reads of data ten times larger than the caches.

use std::process::ExitCode;

use peregrine_bench::results::Verdict;
use peregrine_bench::runner::{
    summary, PrivateServer, Request, Server, {self},
};
use peregrine_bench::stress::larger_than_memory::{thresholds, QUERIES, SERVER_OPTIONS};
use peregrine_harness::engines::Engine;
use peregrine_harness::error::{HarnessError, Result};
use peregrine_harness::interrupt;
use peregrine_harness::server::installation::{find_plugin, target_directory};
use peregrine_harness::server::Installation;

use crate::command::arguments::{LargerThanMemoryArguments, RunArguments};
use crate::command::run::settings;
use peregrine_harness::command::directory::new_directory;
use peregrine_harness::command::exit::status;
use peregrine_harness::command::values::WarmUp;

/// Bytes of the caches while tables are loaded.
const LOADING: u64 = 512 << 20;

/// Measures both engines, and prints a table, the cells below the minimum, and one line; exit status 1 when a ratio is
/// too small or an answer wrong.
///
/// # Errors
/// Any error of the action; the caller prints it.
pub fn run(arguments: &LargerThanMemoryArguments) -> Result<ExitCode> {
    let target = target_directory();
    let out = new_directory(
        arguments.out.as_deref(),
        &target.join("bench"),
        "larger-than-memory",
    )?;
    let queries = match &arguments.queries[..] {
        [] => QUERIES.map(str::to_owned).to_vec(),
        some => some.to_vec(),
    };
    let thresholds = thresholds(&queries, arguments.minimum);
    let settings = settings(&RunArguments {
        workload: vec!["normal".to_owned()],
        engines: [Engine::InnoDb, Engine::Peregrine]
            .map(|engine| engine.name().to_owned())
            .to_vec(),
        queries,
        threads: arguments.threads.clone(),
        rows: Some(arguments.rows),
        seed: arguments.seed,
        cache: Some(arguments.cache),
        warm_up: Some(WarmUp::Seconds(arguments.warm_up)),
        run_time: Some(arguments.run_time),
        runs: Some(arguments.runs),
        ..RunArguments::default()
    })?;
    let mut server_options: Vec<String> = SERVER_OPTIONS.map(str::to_owned).to_vec();
    server_options.extend(arguments.mariadbd.options.iter().cloned());
    let request = Request {
        settings,
        out: out.clone(),
        resume: false,
        server: Server::Private(PrivateServer {
            installation: Installation::find(&target)?,
            plugin: Some(find_plugin(&target, arguments.mariadbd.plugin.as_deref())?),
            options: server_options,
        }),
        keep_data: false,
        // The load of the tables is not measured, and takes InnoDB many minutes with such a small cache.
        loading_cache_bytes: Some(arguments.cache.max(LOADING)),
    };
    let lines = match runner::run(&request) {
        Ok(found) => found.lines,
        Err(HarnessError::Interrupted) => return Ok(ExitCode::from(interrupt::EXIT_STATUS)),
        Err(error) => return Err(error),
    };
    print!("{}", summary::render(&lines));
    println!("results: {}", out.join("results.jsonl").display());
    let verdict = Verdict::of(&lines, &thresholds)?;
    println!("{verdict}");
    Ok(status(verdict.held()))
}
