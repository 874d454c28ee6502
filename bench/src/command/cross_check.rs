//! `peregrine bench sysbench` and `go-tpc`: our clients compared with tools of other authors.

use std::fmt;
use std::process::ExitCode;
use std::time::Duration;

use peregrine_bench::cross_check::{orders, reads, GoTpc, Sysbench};
use peregrine_harness::engines::hosted::Hosted;
use peregrine_harness::engines::{Engine, Protocol};
use peregrine_harness::error::{HarnessError, Result};
use peregrine_harness::interrupt;
use peregrine_harness::server::installation::target_directory;

use crate::command::arguments::{GoTpcArguments, SysbenchArguments};
use crate::command::run::{distinct, parsed};
use peregrine_harness::command::exit::status;
use peregrine_harness::command::host;

/// Runs queries with our clients and with sysbench; exit status 1 when their figures don't agree.
///
/// # Errors
/// Any error of the action; the caller prints it.
pub fn sysbench(arguments: &SysbenchArguments) -> Result<ExitCode> {
    let engine = Engine::parse(&arguments.engine)?;
    let request = reads::Request {
        engine,
        rows: arguments.rows,
        queries: distinct(arguments.queries.clone()),
        threads: distinct(arguments.threads.clone()),
        protocol: protocol(&arguments.protocol)?,
        time: Duration::from_secs(arguments.run_time),
        rounds: arguments.rounds,
        seed: arguments.on.seed,
        within: arguments.within / 100.0,
    };
    let tool = Sysbench::find()?;
    let most = arguments.threads.iter().copied().max().unwrap_or(1);
    // Both clients are connected at the same time, though only one runs queries.
    let server = host::start(
        &arguments.on.host(),
        &[engine],
        most * 2,
        "sysbench",
        Vec::new(),
    )?;
    let outcome = reads::run(&server, &tool, &request, |told| eprintln!("{told}"));
    end(server, outcome, reads::Outcome::held)
}

/// Runs order entry with our clients and with go-tpc, and go-tpc's check of our tables; exit status 1 when the rates
/// don't agree or a condition does not hold.
///
/// # Errors
/// Any error of the action; the caller prints it.
pub fn go_tpc(arguments: &GoTpcArguments) -> Result<ExitCode> {
    let engines = parsed(&arguments.engines, Engine::parse, &[])?;
    let compared = parsed(&arguments.compare, Engine::parse, &[])?;
    for engine in &engines {
        if !engine.is_transactional() {
            return Err(HarnessError::Usage(format!(
                "{} has no transactions, which orders need: choose from innodb, myrocks, peregrine",
                engine.title()
            )));
        }
    }
    if let Some(other) = compared.iter().find(|engine| !engines.contains(engine)) {
        return Err(HarnessError::Usage(format!(
            "--compare names {}, which is not among --engines",
            other.name()
        )));
    }
    let tool = GoTpc::find(&target_directory())?;
    let port = orders::Port::free()?;
    let request = orders::Request {
        port,
        engines: engines.clone(),
        compared,
        warehouses: arguments.warehouses,
        threads: arguments.threads,
        protocol: protocol(&arguments.protocol)?,
        time: Duration::from_secs_f64(arguments.run_time),
        rounds: arguments.rounds,
        seed: arguments.on.seed,
        within: arguments.within / 100.0,
    };
    let most = arguments.threads * 2;
    let server = host::start(
        &arguments.on.host(),
        &engines,
        most,
        "go-tpc",
        port.server_options(),
    )?;
    let outcome = orders::run(&server, &tool, &request, |told| eprintln!("{told}"));
    end(server, outcome, orders::Outcome::held)
}

/// Prints the outcome; removes the server when the outcome is good.
fn end<O: fmt::Display>(
    server: Hosted,
    outcome: Result<O>,
    held: impl Fn(&O) -> bool,
) -> Result<ExitCode> {
    let outcome = match outcome {
        Err(HarnessError::Interrupted) => return Ok(ExitCode::from(interrupt::EXIT_STATUS)),
        other => other?,
    };
    println!("{outcome}");
    let held = held(&outcome);
    if held {
        server.remove()?;
    }
    Ok(status(held))
}

fn protocol(name: &str) -> Result<Protocol> {
    let all = [Protocol::Text, Protocol::Prepared];
    let found = all.into_iter().find(|protocol| protocol.name() == name);
    found.ok_or_else(|| {
        HarnessError::Usage(format!(
            "unknown protocol '{name}': choose from text, prepared"
        ))
    })
}
