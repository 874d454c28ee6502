//! A private server for one test.
//!
//! It runs on its own directory with the settings of a comparison. It can be killed and started again. It is always
//! stopped in the end.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use mysql::prelude::Queryable;

use super::mariadb::MariaDb;
use super::settings::Settings;
use super::Engine;
use crate::error::{HarnessError, PathContext, Result, StatementContext};
use crate::server::process::Process;
use crate::server::{Installation, MemoryLimit, Running, Sandbox, StartOptions};

/// The place and the configuration of a server.
#[derive(Debug, Clone)]
pub struct Place {
    /// The MariaDB to run.
    pub installation: Installation,
    /// The Peregrine plug-in, if that engine is among `settings.engines`.
    pub plugin: Option<PathBuf>,
    /// The engines, their cache size and other settings.
    pub settings: Settings,
    /// The server's directory; it must not exist yet.
    pub dir: PathBuf,
    /// More options for mariadbd.
    pub server_options: Vec<String>,
    /// Additional environment variables of the server.
    pub environment: Vec<(String, String)>,
    /// A limit on the server's memory.
    pub memory_limit: Option<Arc<MemoryLimit>>,
}

/// A running server; dropping it stops the server.
#[derive(Debug)]
pub struct Hosted {
    place: Place,
    sandbox: Sandbox,
    running: Option<Running>,
}

impl Hosted {
    /// Creates the directory and starts the server.
    ///
    /// When the directory exists, the server does not start, or its settings differ from the requested ones.
    pub fn start(place: Place) -> Result<Self> {
        if place.dir.exists() {
            return Err(HarnessError::Usage(format!(
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

    /// Starts the server after a kill or a stop.
    ///
    /// # Errors
    /// When it does not start.
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

    /// Returns the server's data directory.
    #[must_use]
    pub fn data_dir(&self) -> PathBuf {
        self.sandbox.data_dir()
    }

    /// Returns the settings of the server.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.place.settings
    }

    /// Returns the errors that engines reported; see [`Sandbox::engine_errors`].
    #[must_use]
    pub fn engine_errors(&self) -> Vec<String> {
        self.sandbox.engine_errors()
    }

    /// Returns the last lines of the server's error log.
    #[must_use]
    pub fn log_tail(&self) -> String {
        self.sandbox.log_tail()
    }

    /// Returns the socket at which the server listens.
    ///
    /// # Errors
    /// When the server does not run.
    pub fn socket(&self) -> Result<&Path> {
        Ok(&self.running()?.socket)
    }

    /// Returns the server's process.
    ///
    /// # Errors
    /// When the server does not run.
    pub fn process(&self) -> Result<Process> {
        Ok(self.running()?.process)
    }

    /// Opens a connection, in `schema` if given.
    ///
    /// # Errors
    /// When the server refuses or does not run.
    pub fn connect(&self, schema: Option<&str>) -> Result<mysql::Conn> {
        connect(self.socket()?, schema)
    }

    /// Ends the server as a crash would (`kill -9`).
    ///
    /// # Errors
    /// When the server can't be killed.
    pub fn kill(&mut self) -> Result<()> {
        match self.running.take() {
            Some(running) => running.kill(),
            None => Ok(()),
        }
    }

    /// Stops the server cleanly.
    ///
    /// # Errors
    /// When the server does not end.
    pub fn stop(&mut self) -> Result<()> {
        match self.running.take() {
            Some(running) => running.stop(),
            None => Ok(()),
        }
    }

    /// Stops the server and removes its directory.
    ///
    /// # Errors
    /// When the server can't be stopped or the directory can't be removed.
    pub fn remove(mut self) -> Result<()> {
        self.stop()?;
        let dir = self.sandbox.dir().to_path_buf();
        std::fs::remove_dir_all(&dir).at("cannot remove", &dir)
    }

    fn running(&self) -> Result<&Running> {
        self.running
            .as_ref()
            .ok_or_else(|| HarnessError::Server("the server does not run".to_owned()))
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

/// Opens a connection to the server at `socket`, in `schema` if given.
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
/// The error of the first failed statement.
pub fn run_all(connection: &mut mysql::Conn, statements: &[String]) -> Result<()> {
    for statement in statements {
        connection.query_drop(statement).running(statement)?;
    }
    Ok(())
}
