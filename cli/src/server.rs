//! `peregrine server`: starts, stops and queries a private MariaDB.

use std::process::ExitCode;

use peregrine_harness::error::{HarnessError, PathContext, Result};
use peregrine_harness::server::installation::{find_plugin, target_directory};
use peregrine_harness::server::{Installation, Sandbox, StartOptions, Status};

use crate::arguments::{ServerAction, ServerPlace, SqlArguments, StartArguments};

/// Runs the action.
///
/// # Errors
/// Any error of the action; the caller prints it.
pub fn run(action: &ServerAction) -> Result<ExitCode> {
    match action {
        ServerAction::Start(arguments) => start(arguments),
        ServerAction::Stop(place) => stop(place),
        ServerAction::Sql(arguments) => sql(arguments),
        ServerAction::Status(place) => status(place),
    }
}

fn sandbox(place: &ServerPlace) -> Result<Sandbox> {
    let default = target_directory().join("server");
    Sandbox::new(place.dir.as_deref().unwrap_or(&default))
}

fn start(arguments: &StartArguments) -> Result<ExitCode> {
    let target = target_directory();
    let installation = Installation::find(&target)?;
    let plugin = match (
        find_plugin(&target, arguments.plugin.as_deref()),
        &arguments.plugin,
    ) {
        (Ok(plugin), _) => Some(plugin),
        (Err(_), None) => {
            eprintln!(
                "peregrine: the plug-in is not built, so the server starts without it (build it with `make plugin`)"
            );
            None
        }
        (Err(error), Some(_)) => return Err(error),
    };
    let sandbox = sandbox(&arguments.place)?;
    let running = sandbox.start(
        &installation,
        &StartOptions {
            plugin,
            load: arguments.load.clone(),
            arguments: arguments.options.clone(),
            environment: Vec::new(),
            memory_limit: None,
        },
    )?;
    println!(
        "started: process {}, socket {}, data in {}",
        running.process.pid,
        running.socket.display(),
        sandbox.data_dir().display()
    );
    Ok(ExitCode::SUCCESS)
}

fn stop(place: &ServerPlace) -> Result<ExitCode> {
    let sandbox = sandbox(place)?;
    match sandbox.status()? {
        Status::Running(running) => {
            running.stop()?;
            println!("stopped");
        }
        Status::Stopped | Status::Vanished => {
            println!("no server runs in {}", sandbox.dir().display());
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn sql(arguments: &SqlArguments) -> Result<ExitCode> {
    let running = sandbox(&arguments.place)?.running()?;
    let installation = Installation::find(&target_directory())?;
    let Some(client) = &installation.client else {
        return Err(HarnessError::NoMariaDb {
            detail: format!(
                " ({} has no client program `mariadb`)",
                installation.basedir.display()
            ),
        });
    };
    let mut command = installation.command(client);
    command
        .arg("--no-defaults")
        .arg(format!("--socket={}", running.socket.display()))
        .arg("--user=root")
        .args(&arguments.options);
    if let Some(statement) = &arguments.statement {
        command.arg("--execute").arg(statement);
    }
    let status = command.status().at("cannot run", client)?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

/// Exit status 0 when a server runs, 3 when none does, as service managers expect.
fn status(place: &ServerPlace) -> Result<ExitCode> {
    let sandbox = sandbox(place)?;
    match sandbox.status()? {
        Status::Running(running) => {
            println!(
                "running: process {}, socket {}",
                running.process.pid,
                running.socket.display()
            );
            Ok(ExitCode::SUCCESS)
        }
        Status::Stopped => {
            println!("stopped: no server runs in {}", sandbox.dir().display());
            Ok(ExitCode::from(3))
        }
        Status::Vanished => {
            println!(
                "stopped: the server in {} has ended without being stopped; see {}",
                sandbox.dir().display(),
                sandbox.error_log().display()
            );
            Ok(ExitCode::from(3))
        }
    }
}
