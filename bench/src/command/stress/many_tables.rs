//! `peregrine bench many-tables`: very many tables with a small cache.

use std::process::ExitCode;

use peregrine_bench::stress::many_tables::{measure, Figures, Outcome, Request};
use peregrine_harness::engines::Engine;
use peregrine_harness::error::{HarnessError, Result};
use peregrine_harness::interrupt;

use crate::command::arguments::ManyTablesArguments;
use peregrine_harness::command::exit::status;
use peregrine_harness::command::host;

/// Connections of the command.
const CONNECTIONS: u32 = 8;

/// Creates, writes and reads the tables of one engine on a server of its own.
fn one(engine: Engine, arguments: &ManyTablesArguments) -> Result<Figures> {
    let purpose = format!("many-tables-{}", engine.name());
    let mut server = host::start(
        &arguments.host,
        &[engine],
        CONNECTIONS,
        &purpose,
        Vec::new(),
    )?;
    let request = Request {
        tables: arguments.tables,
    };
    let figures = measure(&mut server, engine, &request, |text| eprintln!("{text}"))?;
    server.remove()?;
    Ok(figures)
}

/// Runs both engines and prints one line; exit status 1 when a statement failed, or Peregrine took more than InnoDB.
///
/// # Errors
/// Any error of the action; the caller prints it.
pub fn run(arguments: &ManyTablesArguments) -> Result<ExitCode> {
    let both = || {
        Ok(Outcome {
            tables: arguments.tables,
            cache: arguments.host.cache,
            peregrine: one(Engine::Peregrine, arguments)?,
            innodb: one(Engine::InnoDb, arguments)?,
        })
    };
    let outcome = match both() {
        Err(HarnessError::Interrupted) => return Ok(ExitCode::from(interrupt::EXIT_STATUS)),
        other => other?,
    };
    println!("{outcome}");
    Ok(status(outcome.held()))
}
