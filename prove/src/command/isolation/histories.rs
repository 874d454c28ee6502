//! `peregrine prove histories`: proof of isolation by random histories.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use peregrine_harness::engines::hosted::{Hosted, Place};
use peregrine_harness::engines::settings::Settings;
use peregrine_harness::engines::Engine;
use peregrine_harness::error::{HarnessError, Result};
use peregrine_harness::interrupt;
use peregrine_harness::level::Level;
use peregrine_harness::server::installation::{find_plugin, target_directory};
use peregrine_harness::server::Installation;
use peregrine_prove::histories::library::Library;
use peregrine_prove::histories::server::Server;
use peregrine_prove::histories::target::Target;
use peregrine_prove::histories::{
    driver, Outcome, Request, {self},
};

use crate::command::arguments::HistoriesArguments;
use peregrine_harness::command::directory::new_directory;

/// Runs the histories and prints one line per level; exit status 1 when a level was violated.
///
/// # Errors
/// Any error of the action; the caller prints it.
pub fn run(arguments: &HistoriesArguments) -> Result<ExitCode> {
    let names: Vec<&str> = arguments.level.iter().map(String::as_str).collect();
    let levels: Vec<Level> = match names[..] {
        [] => Level::ALL[1..].to_vec(),
        _ => names.into_iter().map(Level::parse).collect::<Result<_>>()?,
    };
    let on_server = match arguments.target.as_str() {
        "library" => false,
        "server" => true,
        other => {
            return Err(HarnessError::Usage(format!(
                "unknown target '{other}': the targets are library, server"
            )))
        }
    };
    let engine = Engine::parse(&arguments.engine)?;
    if !engine.is_transactional() || (!on_server && engine != Engine::Peregrine) {
        return Err(HarnessError::Usage(format!(
            "--engine {}: the library is peregrine's; a server's engines with transactions are innodb, myrocks, peregrine",
            engine.name()
        )));
    }
    let mut all_held = true;
    for level in levels {
        let request = Request {
            level,
            transactions: match (arguments.transactions, arguments.duration) {
                (Some(transactions), _) => transactions,
                (None, Some(_)) => 0,
                (None, None) => driver::WINDOW,
            },
            duration: arguments.duration.map(Duration::from_secs_f64),
            seed: arguments.seed,
            threads: arguments.threads,
            window: arguments.window,
            crash_every: arguments.crash_every,
            stop_when_found: true,
        };
        let outcome = if on_server {
            server(arguments, engine, &request)
        } else {
            let mut library = Library::new(level, arguments.seed)?;
            histories::run(&request, "library", &mut library, told)
        };
        let outcome = match outcome {
            Err(HarnessError::Interrupted) => return Ok(ExitCode::from(interrupt::EXIT_STATUS)),
            other => other?,
        };
        println!("{outcome}");
        all_held &= outcome.held();
    }
    Ok(if all_held {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn server(arguments: &HistoriesArguments, engine: Engine, request: &Request) -> Result<Outcome> {
    let target = target_directory();
    let plugin = if engine == Engine::Peregrine {
        Some(find_plugin(&target, arguments.mariadbd.plugin.as_deref())?)
    } else {
        None
    };
    let purpose = format!("histories-{}", request.level.name());
    let hosted = Hosted::start(Place {
        installation: Installation::find(&target)?,
        plugin,
        settings: Settings {
            engines: vec![engine],
            cache_bytes: 128 << 20,
            most_threads: request.threads,
            charset: "latin1".to_owned(),
        },
        dir: new_directory(None::<&Path>, &target.join("bench"), &purpose)?,
        server_options: arguments.mariadbd.options.clone(),
        environment: Vec::new(),
        memory_limit: None,
    })?;
    let mut on_server = Server::new(hosted, engine, request.level, arguments.prepare.clone())?;
    let name = format!("{} in the server", engine.title());
    let outcome = histories::run(request, &name, &mut on_server as &mut dyn Target, told)?;
    on_server.into_server().remove()?;
    Ok(outcome)
}

fn told(so_far: &Outcome) {
    if so_far.windows.is_multiple_of(10) {
        eprintln!(
            "{}: {} windows, {} committed, {:.0} s",
            so_far.level.sql(),
            so_far.windows,
            so_far.found.committed,
            so_far.seconds
        );
    }
}
