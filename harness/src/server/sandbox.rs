//! A server on a directory of its own: created on first use, started, queried, stopped, killed.
//!
//! The directory has `data` (the server's data directory), `plugins` (links to the server's own plug-ins and to
//! Peregrine's), `tmp` and `error.log`. While the server runs it also has `server.json`, with its process and the path
//! of its socket.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use super::installation::Installation;
use super::memory_limit::MemoryLimit;
use super::process::Process;
use super::socket;
use crate::error::{HarnessError, PathContext, Result};

/// The maximum time for a server to start (it may have to recover) or to stop.
const PATIENCE: Duration = Duration::from_secs(300);

/// The time for which a server that was left behind may still be starting.
///
/// After it, `stop` ends the server even if it does not answer.
const LONGEST_START: Duration = Duration::from_secs(60);

/// The number of lines of the error log that are shown when a server fails.
const LOG_LINES: usize = 25;

/// A server's directory.
#[derive(Debug, Clone)]
pub struct Sandbox {
    dir: PathBuf,
}

/// How a server is started.
#[derive(Debug, Clone, Default)]
pub struct StartOptions {
    /// The Peregrine plug-in, if it is to be loaded.
    pub plugin: Option<PathBuf>,
    /// Other plug-ins of the server's own to load, e.g. `ha_rocksdb`.
    pub load: Vec<String>,
    /// More options for mariadbd; they come last and override the others.
    pub arguments: Vec<String>,
    /// Environment variables for the server, in addition to this program's own.
    pub environment: Vec<(String, String)>,
    /// A limit on the server's memory.
    pub memory_limit: Option<Arc<MemoryLimit>>,
}

/// A running server.
#[derive(Debug)]
pub struct Running {
    /// The path of its socket.
    pub socket: PathBuf,
    /// Its process.
    pub process: Process,
    dir: PathBuf,
    child: Option<Child>,
}

/// Whether a server runs in a directory.
#[derive(Debug)]
pub enum Status {
    /// A server runs.
    Running(Running),
    /// No server runs: it was stopped, or never started.
    Stopped,
    /// No server runs, but one was running and ended without being stopped (killed or crashed).
    Vanished,
}

#[derive(Debug, Serialize, Deserialize)]
struct State {
    process: Process,
    socket: PathBuf,
}

impl Sandbox {
    /// The server directory `dir`, which need not exist yet.
    ///
    /// # Errors
    /// When `dir` can't be made absolute.
    pub fn new(dir: &Path) -> Result<Self> {
        Ok(Self {
            dir: std::path::absolute(dir).at("cannot resolve", dir)?,
        })
    }

    /// The server's directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The server's data directory.
    #[must_use]
    pub fn data_dir(&self) -> PathBuf {
        self.dir.join("data")
    }

    /// The server's error log.
    #[must_use]
    pub fn error_log(&self) -> PathBuf {
        self.dir.join("error.log")
    }

    fn state_file(&self) -> PathBuf {
        self.dir.join("server.json")
    }

    /// Returns whether a server runs in this directory.
    ///
    /// # Errors
    /// When the state file exists but can't be read.
    pub fn status(&self) -> Result<Status> {
        let file = self.state_file();
        let text = match std::fs::read_to_string(&file) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Status::Stopped)
            }
            other => other.at("cannot read", &file)?,
        };
        // A machine crash may cut the state file short; then it means the same as a stale one.
        let Ok(state) = serde_json::from_str::<State>(&text) else {
            return Ok(Status::Vanished);
        };
        if state.process.is_alive() {
            Ok(Status::Running(Running {
                socket: state.socket,
                process: state.process,
                dir: self.dir.clone(),
                child: None,
            }))
        } else {
            Ok(Status::Vanished)
        }
    }

    /// Returns the running server.
    ///
    /// # Errors
    /// When no server runs.
    pub fn running(&self) -> Result<Running> {
        match self.status()? {
            Status::Running(running) => Ok(running),
            Status::Stopped => Err(HarnessError::Server(format!(
                "no server runs in {}: start one with `peregrine server start --dir {}`",
                self.dir.display(),
                self.dir.display()
            ))),
            Status::Vanished => Err(HarnessError::Server(format!(
                "the server in {} has ended without being stopped; the last lines of {}:\n{}",
                self.dir.display(),
                self.error_log().display(),
                self.log_tail()
            ))),
        }
    }

    /// Starts the server, and creates its data directory first if there is none.
    ///
    /// # Errors
    /// When a server already runs in this directory, when a plug-in is missing, or when the server does not start. Then
    /// the message has the last lines of its error log.
    pub fn start(&self, installation: &Installation, options: &StartOptions) -> Result<Running> {
        std::fs::create_dir_all(&self.dir).at("cannot create", &self.dir)?;
        let _only_one = self.lock()?;
        if let Status::Running(running) = self.status()? {
            return Err(HarnessError::Server(format!(
                "a server already runs in {} (process {}): use it, or stop it with \
                 `peregrine server stop --dir {}`",
                self.dir.display(),
                running.process.pid,
                self.dir.display()
            )));
        }
        self.create_data_dir(installation)?;
        let plugins = self.link_plugins(installation, options)?;
        let socket = socket::prepare(&self.dir)?;
        let _ = std::fs::remove_file(&socket);
        let temporary = self.dir.join("tmp");
        std::fs::create_dir_all(&temporary).at("cannot create", &temporary)?;

        let path = self.error_log();
        let log = File::options()
            .create(true)
            .append(true)
            .open(&path)
            .at("cannot open", &path)?;
        let mut command = installation.command(&installation.server);
        command
            .arg("--no-defaults")
            .arg(joined("--basedir=", &installation.basedir))
            .arg(joined("--datadir=", &self.data_dir()))
            .arg(joined("--plugin-dir=", &plugins))
            .arg(joined("--socket=", &socket))
            .arg(joined("--tmpdir=", &temporary))
            .arg(joined("--pid-file=", &self.dir.join("mariadb.pid")))
            .arg("--skip-networking")
            .arg("--plugin-maturity=experimental");
        become_owner(&mut command);
        let peregrine = options.plugin.as_ref().map(|_| "ha_peregrine".to_owned());
        for plugin in options.load.iter().chain(&peregrine) {
            command.arg(format!("--plugin-load-add={plugin}"));
            // A server without its plug-in is useless: with FORCE it ends, and its log says why.
            if let Some(name) = plugin.strip_prefix("ha_") {
                command.arg(format!("--{name}=FORCE"));
            }
        }
        let child = command
            .args(&options.arguments)
            .envs(options.environment.iter().cloned())
            .current_dir(&self.dir)
            .stdin(Stdio::null())
            .stdout(log.try_clone().at("cannot open", &path)?)
            .stderr(log)
            // In its own process group, so that the terminal's interrupt does not reach it: this program stops it
            // cleanly.
            .process_group(0)
            .spawn()
            .at("cannot run", &installation.server)?;
        self.wait_until_up(child, socket, options.memory_limit.as_deref())
    }

    fn wait_until_up(
        &self,
        mut child: Child,
        socket: PathBuf,
        limit: Option<&MemoryLimit>,
    ) -> Result<Running> {
        let pid = i32::try_from(child.id()).unwrap_or(0);
        let begun = Instant::now();
        let process = Process::with_id(pid);
        if let Some(process) = process {
            // At once, before the server has taken much memory.
            if let Err(error) = limit.map_or(Ok(()), |limit| limit.apply(process)) {
                // The child of this function, which has not been waited for.
                let _ = child.kill();
                let _ = child.wait();
                return Err(error);
            }
            self.write_state(&State {
                process,
                socket: socket.clone(),
            })?;
        }
        loop {
            let ended = child.try_wait().at("cannot wait for", &self.dir)?;
            if let Some(status) = ended {
                let _ = std::fs::remove_file(self.state_file());
                socket::clean_up(&self.dir, &socket);
                return Err(HarnessError::Server(format!(
                    "the server did not start ({status}); the last lines of {}:\n{}",
                    self.error_log().display(),
                    self.log_tail()
                )));
            }
            if let (Some(process), true) = (process, answers(&socket)) {
                return Ok(Running {
                    socket,
                    process,
                    dir: self.dir.clone(),
                    child: Some(child),
                });
            }
            if begun.elapsed() > PATIENCE {
                // The child of this function, which has not been waited for, so the id is still its own.
                let _ = child.kill();
                let _ = child.wait();
                let _ = std::fs::remove_file(self.state_file());
                return Err(HarnessError::Server(format!(
                    "the server did not answer within {} s and was ended; the last lines of {}:\n{}",
                    PATIENCE.as_secs(),
                    self.error_log().display(),
                    self.log_tail()
                )));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn write_state(&self, state: &State) -> Result<()> {
        let file = self.state_file();
        let text = serde_json::to_string(state)
            .map_err(|error| HarnessError::Server(error.to_string()))?;
        std::fs::write(&file, text).at("cannot write", &file)
    }

    /// Locks the directory, so that two commands can't start a server at once.
    fn lock(&self) -> Result<File> {
        let path = self.dir.join("lock");
        let file = File::create(&path).at("cannot create", &path)?;
        rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive)
            .map_err(std::io::Error::from)
            .at("cannot lock", &path)?;
        Ok(file)
    }

    fn create_data_dir(&self, installation: &Installation) -> Result<()> {
        let data = self.data_dir();
        if data.join("mysql").is_dir() {
            return Ok(());
        }
        // Created under another name and then renamed, so that a half-made directory never counts as complete.
        let making = self.dir.join("data.new");
        if making.exists() {
            std::fs::remove_dir_all(&making).at("cannot remove", &making)?;
        }
        let mut command = installation.command(&installation.install_db);
        command
            .arg("--no-defaults")
            .arg(joined("--basedir=", &installation.basedir))
            .arg(joined("--datadir=", &making))
            .arg("--auth-root-authentication-method=normal")
            .arg("--skip-test-db")
            .arg("--skip-name-resolve");
        become_owner(&mut command);
        let output = command
            .stdin(Stdio::null())
            .output()
            .at("cannot run", &installation.install_db)?;
        if !output.status.success() {
            return Err(HarnessError::Server(format!(
                "the data directory could not be created ({}):\n{}{}",
                output.status,
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr)
            )));
        }
        std::fs::rename(&making, &data).at("cannot move into place", &data)
    }

    /// Creates a directory with links to every plug-in, since a server takes only one plug-in directory.
    fn link_plugins(&self, installation: &Installation, options: &StartOptions) -> Result<PathBuf> {
        let links = self.dir.join("plugins");
        if links.exists() {
            std::fs::remove_dir_all(&links).at("cannot remove", &links)?;
        }
        std::fs::create_dir_all(&links).at("cannot create", &links)?;
        if let Ok(entries) = std::fs::read_dir(&installation.plugin_dir) {
            for entry in entries.flatten() {
                if entry.file_name() != "ha_peregrine.so" {
                    let link = links.join(entry.file_name());
                    std::os::unix::fs::symlink(entry.path(), &link).at("cannot link", &link)?;
                }
            }
        }
        for name in &options.load {
            if !links.join(format!("{name}.so")).exists() {
                return Err(HarnessError::Server(format!(
                    "the plug-in {name} is not in {}; on Debian MyRocks is the package mariadb-plugin-rocksdb \
                     (`make mariadb` fetches it too)",
                    installation.plugin_dir.display()
                )));
            }
        }
        if let Some(plugin) = &options.plugin {
            let link = links.join("ha_peregrine.so");
            std::os::unix::fs::symlink(plugin, &link).at("cannot link", &link)?;
        }
        Ok(links)
    }

    /// Returns the first errors of the engine in the error log.
    ///
    /// Callers use it for servers on which no statement should provoke an error.
    #[must_use]
    pub fn engine_errors(&self) -> Vec<String> {
        let text = std::fs::read(self.error_log()).unwrap_or_default();
        errors_of_engine(&String::from_utf8_lossy(&text))
    }

    /// Returns the end of the error log.
    #[must_use]
    pub fn log_tail(&self) -> String {
        let text = std::fs::read(self.error_log()).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        let from = lines.len().saturating_sub(LOG_LINES);
        lines[from..].join("\n")
    }
}

/// Returns the first lines in which the plug-in reports an error, or the library a panic.
fn errors_of_engine(log: &str) -> Vec<String> {
    let is_error = |line: &&str| {
        (line.contains("[ERROR]") && line.contains("Peregrine")) || line.contains("panicked at")
    };
    let lines = log.lines().filter(is_error);
    lines.take(LOG_LINES).map(str::to_owned).collect()
}

impl Running {
    /// Stops the server cleanly and waits until it has ended.
    ///
    /// # Errors
    /// When the server does not end in time.
    pub fn stop(mut self) -> Result<()> {
        if self.child.is_none() {
            self.wait_while_it_starts();
        }
        self.process.signal(Signal::TERM);
        if !self.process.wait_until_gone(PATIENCE) {
            return Err(HarnessError::Server(format!(
                "the server (process {}) did not end within {} s of being asked to; {} says why",
                self.process.pid,
                PATIENCE.as_secs(),
                self.dir.join("error.log").display()
            )));
        }
        self.forget();
        Ok(())
    }

    /// Waits until a server that another process started answers or ends.
    ///
    /// If a MariaDB is told to end while it starts, it can wait forever for a thread of its own (`init_slave`) that has
    /// already ended.
    fn wait_while_it_starts(&self) {
        let begun = Instant::now();
        while begun.elapsed() < LONGEST_START && self.process.is_alive() && !answers(&self.socket) {
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Ends the server at once, as a crash would (`kill -9`), and waits until it has ended.
    ///
    /// # Errors
    /// When the process can't be ended.
    pub fn kill(mut self) -> Result<()> {
        self.process.signal(Signal::KILL);
        if !self.process.wait_until_gone(PATIENCE) {
            return Err(HarnessError::Server(format!(
                "process {} can't be ended",
                self.process.pid
            )));
        }
        self.forget();
        Ok(())
    }

    fn forget(&mut self) {
        if let Some(mut child) = self.child.take() {
            // Reaps the child, which has ended already.
            let _ = child.wait();
        }
        let _ = std::fs::remove_file(self.dir.join("server.json"));
        socket::clean_up(&self.dir, &self.socket);
    }
}

/// Returns whether a server answers at the socket.
fn answers(path: &Path) -> bool {
    path.exists() && mysql::Conn::new(socket::options(path)).is_ok()
}

/// mariadbd refuses to run as root without this option; otherwise it runs as the user who started it.
fn become_owner(command: &mut Command) {
    if rustix::process::geteuid().is_root() {
        command.arg("--user=root");
    }
}

fn joined(option: &str, path: &Path) -> std::ffi::OsString {
    let mut argument = std::ffi::OsString::from(option);
    argument.push(path);
    argument
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sandbox() -> (tempfile::TempDir, Sandbox) {
        let dir = tempfile::tempdir().expect("a directory");
        let sandbox = Sandbox::new(&dir.path().join("server")).expect("a sandbox");
        (dir, sandbox)
    }

    #[test]
    fn a_directory_without_a_server_says_how_to_start_one() {
        let (_dir, sandbox) = sandbox();
        assert!(matches!(sandbox.status(), Ok(Status::Stopped)));
        let message = sandbox.running().expect_err("none").to_string();
        assert!(message.contains("peregrine server start"), "{message}");
    }

    #[test]
    fn errors_of_the_engine_are_told_from_the_servers_and_from_warnings() {
        let log =
            "2026-11-28 1:00:00 0 [ERROR] Peregrine: commits can't be made durable: no space\n\
                   2026-11-28 1:00:00 0 [ERROR] InnoDB: a page\n\
                   2026-11-28 1:00:00 0 [Warning] Peregrine: drop of t\n\
                   thread '<unnamed>' panicked at engine/src/db.rs:1:1:\n";
        let told = errors_of_engine(log);
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].contains("no space") && told[1].contains("panicked"));
    }

    #[test]
    fn a_stale_or_broken_state_file_is_no_running_server() {
        let (_dir, sandbox) = sandbox();
        std::fs::create_dir_all(sandbox.dir()).expect("created");
        for text in [
            r#"{"process":{"pid":1,"started":18446744073709551615},"socket":"/x"}"#,
            r#"{"process":{"pid":2147483647,"started":5},"socket":"/x"}"#,
            r#"{"process":{"pi"#,
            "",
        ] {
            std::fs::write(sandbox.state_file(), text).expect("written");
            std::fs::write(sandbox.error_log(), "first\nlast words\n").expect("written");
            assert!(matches!(sandbox.status(), Ok(Status::Vanished)), "{text}");
            let message = sandbox.running().expect_err("none").to_string();
            assert!(message.contains("last words"), "{message}");
        }
    }
}
