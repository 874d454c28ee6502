//! The private server that is measured.
//!
//! It is restarted when its settings change and when it has ended by itself.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::host::Host;
use super::server_host::{Ending, ServerHost};
use crate::results::record::{Deferred, RunSettings};
use crate::runner::kept::Kept;
use crate::runner::loading::{Loading, Place, TableFile};
use crate::runner::plan::request::PrivateServer;
use crate::runner::quiesce;
use crate::workload::Workload;
use peregrine_harness::engines::mariadb::MariaDb;
use peregrine_harness::engines::settings::Settings;
use peregrine_harness::engines::{Engine, Session, Target};
use peregrine_harness::error::{HarnessError, PathContext, Result};
use peregrine_harness::server::{MemoryLimit, Running, Sandbox, StartOptions, Status};

/// The private server that a measurement session runs on.
pub(in crate::runner) struct SandboxHost<'a> {
    server: &'a PrivateServer,
    keep_data: bool,
    dir: PathBuf,
    settings: Settings,
    sandbox: Sandbox,
    running: Option<Running>,
    sessions: Vec<Box<dyn Session>>,
    /// The limit on the server's memory.
    memory_limit: Option<Arc<MemoryLimit>>,
    /// Whether this measurement session created the data directory.
    new_data: bool,
    files: Vec<TableFile>,
}

impl<'a> SandboxHost<'a> {
    pub fn start(
        server: &'a PrivateServer,
        keep_data: bool,
        run: &RunSettings,
        sessions_beside: u32,
        dir: &Path,
    ) -> Result<Self> {
        let sandbox = Sandbox::new(dir)?;
        // A benchmark that was killed leaves its server running.
        if let Status::Running(left_over) = sandbox.status()? {
            left_over.stop()?;
        }
        let new_data = !sandbox.data_dir().is_dir();
        let mut host = Self {
            server,
            keep_data,
            dir: dir.to_path_buf(),
            settings: Settings {
                engines: run.server_engines(),
                cache_bytes: run.cache_bytes,
                most_threads: run.threads.iter().copied().max().unwrap_or(1) + sessions_beside,
                charset: run.charset.clone(),
            },
            sandbox,
            running: None,
            sessions: Vec::new(),
            memory_limit: memory_limit(run)?,
            new_data,
            files: Vec::new(),
        };
        host.start_server()?;
        Ok(host)
    }

    fn start_server(&mut self) -> Result<()> {
        let load = self
            .settings
            .engines
            .iter()
            .filter_map(|e| e.server_plugin());
        let mut arguments = self.settings.arguments();
        arguments.extend(self.server.options.iter().cloned());
        let plugin = self
            .settings
            .engines
            .contains(&Engine::Peregrine)
            .then(|| self.server.plugin.clone())
            .flatten();
        self.running = Some(self.sandbox.start(
            &self.server.installation,
            &StartOptions {
                plugin,
                load: load.map(str::to_owned).collect(),
                arguments,
                environment: Vec::new(),
                memory_limit: self.memory_limit.clone(),
            },
        )?);
        Ok(())
    }

    fn running(&self) -> Result<&Running> {
        self.running
            .as_ref()
            .ok_or_else(|| HarnessError::Server("the server does not run".to_owned()))
    }

    fn target(&self) -> Result<MariaDb> {
        Ok(MariaDb::new(&self.running()?.socket))
    }

    fn stop(&mut self) -> Result<()> {
        self.sessions.clear();
        match self.running.take() {
            Some(running) => running.stop(),
            None => Ok(()),
        }
    }
}

/// Creates the memory limit of the settings.
fn memory_limit(run: &RunSettings) -> Result<Option<Arc<MemoryLimit>>> {
    let Some(bytes) = run.memory_limit_bytes else {
        return Ok(None);
    };
    match MemoryLimit::new(bytes) {
        Some(limit) => Ok(Some(Arc::new(limit))),
        None => Err(HarnessError::Usage(
            "--memory-limit needs a control group, and none can be made here: run as root, or in a group \
             that was handed over to you (systemd-run --user --scope -p Delegate=yes)"
                .to_owned(),
        )),
    }
}

impl Host for SandboxHost<'_> {
    fn sessions(&mut self, _: Engine, count: usize) -> Result<&mut [Box<dyn Session>]> {
        let target = self.target()?;
        while self.sessions.len() < count {
            self.sessions.push(target.connect()?);
        }
        Ok(&mut self.sessions[..count])
    }

    fn peak_resident_bytes(&self, _: Engine) -> Option<u64> {
        self.running.as_ref()?.process.peak_resident_bytes()
    }

    fn cpu_seconds(&self, _: Engine) -> Option<f64> {
        self.running.as_ref()?.process.cpu_seconds()
    }

    fn kept(&self, engine: Engine) -> Kept {
        Kept {
            durability: engine.durability().to_owned(),
            cache_bytes: self.settings.cache_bytes,
        }
    }

    fn load_again(&mut self, workload: &Workload, engine: Engine, tables: &[usize]) -> Result<()> {
        let mut connection = self.administration()?;
        let loading = self.loading(workload, engine)?;
        loading.load_again(&mut connection, engine, tables)
    }

    fn drain(&mut self, engine: Engine) -> Result<Option<Deferred>> {
        let mut connection = self.target()?.administration()?;
        let process = self.running()?.process;
        let data_dir = self.sandbox.data_dir();
        quiesce::drain(&mut connection, (process, &data_dir), engine).map(Some)
    }

    fn recover(&mut self, _: Engine) -> Result<Option<String>> {
        self.sessions.clear();
        if self
            .running
            .as_ref()
            .is_some_and(|running| running.process.is_alive())
        {
            return Ok(None);
        }
        let last_words = self.sandbox.log_tail();
        if let Some(running) = self.running.take() {
            running.kill()?;
        }
        self.start_server()?;
        let tail: Vec<&str> = last_words.lines().rev().take(3).collect();
        Ok(Some(format!(
            "the server ended by itself and was started again; its last words: {}",
            tail.into_iter().rev().collect::<Vec<_>>().join(" / ")
        )))
    }
}

impl ServerHost for SandboxHost<'_> {
    fn administration(&self) -> Result<mysql::Conn> {
        self.target()?.administration()
    }

    fn variables(&self, connection: &mut mysql::Conn) -> Result<BTreeMap<String, String>> {
        self.settings.verify(connection)
    }

    fn has_new_data(&self) -> bool {
        self.new_data
    }

    fn start_again(&mut self, cache_bytes: u64) -> Result<()> {
        self.stop()?;
        self.settings.cache_bytes = cache_bytes;
        self.start_server()
    }

    fn take(&mut self, files: Vec<TableFile>) {
        self.files = files;
    }

    fn loading<'h>(&'h self, workload: &'h Workload, engine: Engine) -> Result<Loading<'h>> {
        Ok(Loading {
            workload,
            files: &self.files,
            place: Place::Private {
                data_dir: self.sandbox.data_dir(),
                process: self.running()?.process,
            },
            kept: self.kept(engine),
        })
    }

    fn end(&mut self, ending: Ending) -> Result<()> {
        self.stop()?;
        if ending == Ending::Complete && !self.keep_data {
            std::fs::remove_dir_all(&self.dir).at("cannot remove", &self.dir)?;
        }
        Ok(())
    }
}
