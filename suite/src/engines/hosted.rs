//! A private server for one purpose: started with the settings of a comparison on a directory of its
//! own, asked, killed and started again where that is the purpose, and stopped whatever happens.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use mysql::prelude::Queryable;

use super::mariadb::MariaDb;
use super::settings::Settings;
use super::Engine;
use crate::error::{PathContext, Result, StatementContext, SuiteError};
use crate::server::process::Process;
use crate::server::{Installation, MemoryLimit, Running, Sandbox, StartOptions};

/// Where a server is to run, and with what.
#[derive(Debug, Clone)]
pub struct Place {
    /// The MariaDB to run.
    pub installation: Installation,
    /// The Peregrine plug-in, if that engine takes part.
    pub plugin: Option<PathBuf>,
    /// The engines, their caches and so on.
    pub settings: Settings,
    /// The server's directory; it must not exist yet.
    pub dir: PathBuf,
    /// More options for mariadbd.
    pub server_options: Vec<String>,
    /// Variables of the environment that the server gets beside its own.
    pub environment: Vec<(String, String)>,
    /// A limit on the server's memory.
    pub memory_limit: Option<Arc<MemoryLimit>>,
}

/// A server that runs; dropped, it is stopped.
#[derive(Debug)]
pub struct Hosted {
    place: Place,
    sandbox: Sandbox,
    running: Option<Running>,
}

impl Hosted {
    /// Creates the directory and starts the server.
    ///
    /// # Errors
    /// When the directory is there already, the server does not start, or its settings are not what
    /// was asked for.
    pub fn start(place: Place) -> Result<Self> {
        if place.dir.exists() {
            return Err(SuiteError::Usage(format!(
                "{} exists already: choose another --dir, or remove it",
                place.dir.display()
            )));
        }
        let mut hosted = Self {
            sandbox: Sandbox::new(&place.dir)?,
            place,
            running: None,
        };
        hosted.start_again()?;
        let mut connection = hosted.connect(None)?;
        hosted.place.settings.verify(&mut connection)?;
        Ok(hosted)
    }

    /// Starts the server after it was killed or stopped.
    ///
    /// # Errors
    /// When it does not come up.
    pub fn start_again(&mut self) -> Result<()> {
        let engines = &self.place.settings.engines;
        let load = engines.iter().filter_map(|e| e.server_plugin());
        let mut arguments = self.place.settings.arguments();
        arguments.extend(self.place.server_options.iter().cloned());
        self.running = Some(
            self.sandbox.start(
                &self.place.installation,
                &StartOptions {
                    plugin: engines
                        .contains(&Engine::Peregrine)
                        .then(|| self.place.plugin.clone())
                        .flatten(),
                    load: load.map(str::to_owned).collect(),
                    arguments,
                    environment: self.place.environment.clone(),
                    memory_limit: self.place.memory_limit.clone(),
                },
            )?,
        );
        Ok(())
    }

    /// The server's data directory.
    #[must_use]
    pub fn data_dir(&self) -> PathBuf {
        self.sandbox.data_dir()
    }

    /// The settings it was started with.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.place.settings
    }

    /// See [`Sandbox::engine_errors`].
    #[must_use]
    pub fn engine_errors(&self) -> Vec<String> {
        self.sandbox.engine_errors()
    }

    /// The last lines of the server's error log.
    #[must_use]
    pub fn log_tail(&self) -> String {
        self.sandbox.log_tail()
    }

    /// Where the server listens.
    ///
    /// # Errors
    /// When it does not run.
    pub fn socket(&self) -> Result<&Path> {
        Ok(&self.running()?.socket)
    }

    /// The server's process.
    ///
    /// # Errors
    /// When it does not run.
    pub fn process(&self) -> Result<Process> {
        Ok(self.running()?.process)
    }

    /// A connection, in `schema` if one is named.
    ///
    /// # Errors
    /// When the server refuses, or does not run.
    pub fn connect(&self, schema: Option<&str>) -> Result<mysql::Conn> {
        connect(self.socket()?, schema)
    }

    /// Ends the server as a crash would (`kill -9`).
    ///
    /// # Errors
    /// When it can't be ended.
    pub fn kill(&mut self) -> Result<()> {
        match self.running.take() {
            Some(running) => running.kill(),
            None => Ok(()),
        }
    }

    /// Stops the server in order.
    ///
    /// # Errors
    /// When it does not end.
    pub fn stop(&mut self) -> Result<()> {
        match self.running.take() {
            Some(running) => running.stop(),
            None => Ok(()),
        }
    }

    /// Stops the server and removes its directory.
    ///
    /// # Errors
    /// When either can't be done.
    pub fn remove(mut self) -> Result<()> {
        self.stop()?;
        let dir = self.sandbox.dir().to_path_buf();
        std::fs::remove_dir_all(&dir).at("cannot remove", &dir)
    }

    fn running(&self) -> Result<&Running> {
        self.running
            .as_ref()
            .ok_or_else(|| SuiteError::Server("the server does not run".to_owned()))
    }
}

impl Drop for Hosted {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            if let Err(error) = running.stop() {
                eprintln!("peregrine: {error}");
            }
        }
    }
}

/// A connection to the server at `socket`, in `schema` if one is named.
///
/// # Errors
/// When the server refuses.
pub fn connect(socket: &Path, schema: Option<&str>) -> Result<mysql::Conn> {
    let mut connection = MariaDb::new(socket).administration()?;
    if let Some(schema) = schema {
        connection
            .select_db(schema)
            .running(&format!("USE {schema}"))?;
    }
    Ok(connection)
}

/// Runs statements one after another.
///
/// # Errors
/// Those of the first that fails.
pub fn run_all(connection: &mut mysql::Conn, statements: &[String]) -> Result<()> {
    for statement in statements {
        connection.query_drop(statement).running(statement)?;
    }
    Ok(())
}
