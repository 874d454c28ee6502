//! Runs the rounds: write, kill, restart, verify.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;

use super::history::{create_tables, Author, State};
use super::limit::Limit;
use super::verify::{
    Fault, InFlight, {self},
};
use super::writer::{
    Counters, Ending, {self},
};
use peregrine_harness::dice::Dice;
use peregrine_harness::engines::mariadb::MariaDb;
use peregrine_harness::engines::settings::Settings;
use peregrine_harness::engines::Engine;
use peregrine_harness::error::{HarnessError, PathContext, Result, StatementContext};
use peregrine_harness::interrupt;
use peregrine_harness::server::{Installation, Running, Sandbox, StartOptions, Status};

/// The time that the writers write before a kill, in milliseconds: from and to.
const LIFETIME_MS: (u32, u32) = (300, 1_500);

/// Checks the engine's files while no server runs, and returns the first problem, if any.
pub type FileCheck = dyn Fn(&Path) -> Result<Option<String>>;

/// A request for rounds of kills.
pub struct Request<'a> {
    /// How often the server is killed.
    pub limit: Limit,
    /// Writing threads.
    pub threads: u32,
    /// The seed of transactions and lifetimes.
    pub seed: u64,
    /// The engine of the tables.
    pub engine: Engine,
    /// The server's directory; it must not exist yet.
    pub dir: PathBuf,
    /// The engine's cache, in bytes.
    pub cache_bytes: u64,
    /// The MariaDB to run.
    pub installation: Installation,
    /// The Peregrine plug-in, if Peregrine is the engine.
    pub plugin: Option<PathBuf>,
    /// More options for mariadbd.
    pub server_options: Vec<String>,
    /// Checks the server's data directory after each verified restart, while the server is stopped.
    pub check_files: Option<&'a FileCheck>,
}

/// The findings of all rounds.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The engine.
    pub engine: Engine,
    /// Writing threads.
    pub threads: u32,
    /// Kills done.
    pub kills: u32,
    /// Commits acknowledged.
    pub commits: u64,
    /// Commits running at a kill that the restarted server has.
    pub kept: u64,
    /// Commits running at a kill that the restarted server does not have.
    pub undone: u64,
    /// Transactions that the server refused.
    pub refused: u64,
    /// The server's first reason for a refusal.
    pub reason: Option<String>,
    /// The longest restart, recovery included, in seconds.
    pub longest_restart_s: f64,
    /// Whether the engine's files were checked, too.
    pub files_checked: bool,
    /// Broken promises.
    pub faults: Vec<Fault>,
}

impl Outcome {
    /// Returns whether every promise was kept; a run with fewer commits than kills proves nothing.
    #[must_use]
    pub fn held(&self) -> bool {
        self.faults.is_empty() && self.commits >= u64::from(self.kills)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |wanted: fn(&Fault) -> bool| self.faults.iter().filter(|x| wanted(x)).count();
        write!(
            f,
            "{}: {}, {} kills of the server under {} writing threads: {} commits acknowledged, {} writers with lost \
             commits, {} with torn transactions, {} damaged, {} errors that nothing provokes; {} commits under way ({} kept, {} undone), \
             longest restart {:.1} s, {}",
            if self.held() { "held" } else { "NOT HELD" },
            self.engine.title(),
            self.kills,
            self.threads,
            self.commits,
            count(|fault| matches!(fault, Fault::Lost(_))),
            count(|fault| matches!(fault, Fault::Torn(_))),
            count(|fault| matches!(fault, Fault::Damaged(_))),
            count(|fault| matches!(fault, Fault::Unprovoked(_))),
            self.kept + self.undone,
            self.kept,
            self.undone,
            self.longest_restart_s,
            if self.files_checked { "files checked" } else { "tables checked" }
        )?;
        if let Some(reason) = &self.reason {
            write!(
                f,
                "; {} transactions were refused, first: {reason}",
                self.refused
            )?;
        }
        Ok(())
    }
}

/// Runs the rounds, and ends early when a promise is broken.
///
/// # Errors
/// When the server can't be started, reached or killed; [`HarnessError::Interrupted`].
pub fn run(request: &Request<'_>, mut told: impl FnMut(&str)) -> Result<Outcome> {
    if !request.engine.is_transactional() {
        return Err(HarnessError::Usage(format!(
            "{} has no transactions that could be lost",
            request.engine.title()
        )));
    }
    if request.dir.exists() {
        return Err(HarnessError::Usage(format!(
            "{} exists already: choose another --dir, or remove it",
            request.dir.display()
        )));
    }
    interrupt::flag();
    let mut rounds = Rounds {
        request,
        sandbox: Sandbox::new(&request.dir)?,
        settings: Settings {
            engines: vec![request.engine],
            cache_bytes: request.cache_bytes,
            most_threads: request.threads,
            charset: "latin1".to_owned(),
        },
        states: vec![State::default(); request.threads as usize],
        numbers: vec![0; request.threads as usize],
        counters: Counters::default(),
        outcome: Outcome {
            engine: request.engine,
            threads: request.threads,
            kills: 0,
            commits: 0,
            kept: 0,
            undone: 0,
            refused: 0,
            reason: None,
            longest_restart_s: 0.0,
            files_checked: false,
            faults: Vec::new(),
        },
    };
    let result = rounds.all(&mut told);
    // After an error the server may still run.
    if let Ok(Status::Running(left_over)) = rounds.sandbox.status() {
        left_over.stop()?;
    }
    result?;
    if rounds.outcome.held() {
        let dir = &request.dir;
        std::fs::remove_dir_all(dir).at("cannot remove", dir)?;
    }
    Ok(rounds.outcome)
}

struct Rounds<'a> {
    request: &'a Request<'a>,
    sandbox: Sandbox,
    settings: Settings,
    states: Vec<State>,
    numbers: Vec<u64>,
    counters: Counters,
    outcome: Outcome,
}

const SCHEMA: &str = "crash";

impl Rounds<'_> {
    fn all(&mut self, told: &mut dyn FnMut(&str)) -> Result<()> {
        let mut dice = Dice::new(self.request.seed, u64::MAX);
        let running = self.start()?;
        if let Err(error) = self.create(&running) {
            running.stop()?;
            return Err(error);
        }
        let mut server = Some(running);
        let (limit, rounds_begun) = (self.request.limit, Instant::now());
        for round in 1.. {
            let running = match server.take() {
                Some(running) => running,
                None => self.start()?,
            };
            let lifetime = LIFETIME_MS.0 + dice.below(LIFETIME_MS.1 - LIFETIME_MS.0);
            let endings = self.write_and_kill(running, round, lifetime)?;
            self.outcome.kills = round;

            let begun = Instant::now();
            let running = self.start()?;
            let restart = begun.elapsed().as_secs_f64();
            self.outcome.longest_restart_s = self.outcome.longest_restart_s.max(restart);
            let verified = self.verify(&running, endings);
            let errors = self.sandbox.engine_errors().into_iter();
            self.outcome.faults.extend(errors.map(Fault::Unprovoked));
            told(&format!(
                "kill {round} after {lifetime} ms: {} commits acknowledged so far, restart {restart:.1} s",
                self.outcome.commits
            ));
            let last = limit.reached(round + 1, rounds_begun);
            let check = self.request.check_files;
            if check.is_some() || verified.is_err() || last {
                running.stop()?;
            } else {
                server = Some(running);
            }
            verified?;
            if let Some(check) = check {
                self.outcome.files_checked = true;
                if let Some(wrong) = check(&self.sandbox.data_dir())? {
                    self.outcome.faults.push(Fault::Damaged(wrong));
                }
            }
            if !self.outcome.faults.is_empty() || interrupt::requested() {
                if let Some(running) = server.take() {
                    running.stop()?;
                }
            }
            if !self.outcome.faults.is_empty() {
                return Ok(());
            }
            if interrupt::requested() {
                return Err(HarnessError::Interrupted);
            }
            if last {
                break;
            }
        }
        Ok(())
    }

    fn start(&self) -> Result<Running> {
        let mut arguments = self.settings.arguments();
        arguments.extend(self.request.server_options.iter().cloned());
        self.sandbox.start(
            &self.request.installation,
            &StartOptions {
                plugin: self.request.plugin.clone(),
                load: self
                    .request
                    .engine
                    .server_plugin()
                    .map(str::to_owned)
                    .into_iter()
                    .collect(),
                arguments,
                environment: Vec::new(),
                memory_limit: None,
            },
        )
    }

    fn create(&self, running: &Running) -> Result<()> {
        let mut connection = MariaDb::new(&running.socket).administration()?;
        self.settings.verify(&mut connection)?;
        let first = [format!("CREATE DATABASE {SCHEMA}"), format!("USE {SCHEMA}")];
        let tables = create_tables(self.request.engine.sql_name());
        for statement in first.iter().chain(&tables) {
            connection.query_drop(statement).running(statement)?;
        }
        Ok(())
    }

    /// Lets the writers write for `lifetime` milliseconds, kills the server, and returns the writers' endings.
    fn write_and_kill(
        &mut self,
        running: Running,
        round: u32,
        lifetime: u32,
    ) -> Result<Vec<Ending>> {
        let threads = self.request.threads;
        let mut connections = Vec::new();
        for _ in 0..threads {
            connections.push(writer::connect(&running.socket, SCHEMA)?);
        }
        let stop = AtomicBool::new(false);
        let (counters, stop_flag, seed) = (&self.counters, &stop, self.request.seed);
        let states = std::mem::take(&mut self.states);
        let (endings, killed, early) = std::thread::scope(|scope| {
            let workers: Vec<_> = connections
                .iter_mut()
                .zip(states)
                .zip(&self.numbers)
                .zip(0_u32..)
                .map(|(((connection, state), number), writer)| {
                    scope.spawn(move || {
                        let mut author = Author::new(seed, round, writer, threads, *number);
                        writer::write(connection, &mut author, state, *number, counters, stop_flag)
                    })
                })
                .collect();
            std::thread::sleep(Duration::from_millis(u64::from(lifetime)));
            // Before the kill a writer ends only after an error, or because its connection broke.
            let early = workers.iter().any(|worker| worker.is_finished());
            let killed = running.kill();
            // Every writer ends when its connection breaks; the flag ends those with an unbroken connection.
            stop_flag.store(true, Ordering::Relaxed);
            let endings: Option<Vec<Ending>> = workers
                .into_iter()
                .map(|worker| worker.join().ok())
                .collect();
            (endings, killed, early)
        });
        killed?;
        if early {
            let told = "a writer ended before the kill, by an error or without its connection";
            let fault = Fault::Unprovoked(told.to_owned());
            self.outcome.faults.push(fault);
        }
        endings.ok_or_else(|| HarnessError::Server("a writer thread failed".to_owned()))
    }

    fn verify(&mut self, running: &Running, endings: Vec<Ending>) -> Result<()> {
        let mut connection = writer::connect(&running.socket, SCHEMA)?;
        let found = verify::read(&mut connection, self.request.threads)?;
        self.outcome
            .faults
            .extend(verify::sound(&mut connection, &found)?);
        for ((writer, ending), state) in (0_u32..).zip(&endings).zip(&found) {
            match verify::judge(writer, ending, state) {
                Ok(InFlight::None) => {}
                Ok(InFlight::Kept) => self.outcome.kept += 1,
                Ok(InFlight::Undone) => self.outcome.undone += 1,
                Err(fault) => self.outcome.faults.push(fault),
            }
            if let Some(what) = &ending.wrong {
                let fault = Fault::Unprovoked(format!("writer {writer}: {what}"));
                self.outcome.faults.push(fault);
            }
            self.outcome.refused += ending.refused;
            if self.outcome.reason.is_none() {
                self.outcome.reason.clone_from(&ending.reason);
            }
        }
        self.outcome.commits = self.counters.commits.load(Ordering::Relaxed);
        self.numbers = endings.iter().map(|ending| ending.number).collect();
        self.states = found;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome() -> Outcome {
        Outcome {
            engine: Engine::InnoDb,
            threads: 16,
            kills: 20,
            commits: 5_000,
            kept: 3,
            undone: 4,
            refused: 0,
            reason: None,
            longest_restart_s: 0.5,
            files_checked: false,
            faults: Vec::new(),
        }
    }

    #[test]
    fn one_fault_or_no_work_is_not_held() {
        assert!(outcome().held());
        assert!(outcome().to_string().starts_with("held: InnoDB, 20 kills"));
        let mut faulty = outcome();
        faulty.faults.push(Fault::Lost("writer 3".to_owned()));
        assert!(!faulty.held());
        assert!(
            faulty.to_string().contains("1 writers with lost"),
            "{faulty}"
        );
        let mut idle = outcome();
        idle.commits = 5;
        assert!(!idle.held());
    }
}
