//! One server's life: its options, its sessions, and the checks at its end.

use mysql::prelude::Queryable;
use mysql::{Conn, Row};

use super::indexes::unlike_the_rows;
use super::judge::Judge;
use super::plan::names;
use super::request::Request;
use super::shared::Shared;
use super::writer::Writer;
use super::SCHEMA;
use crate::pushdown::tables::{
    TABLES, {self},
};
use peregrine_harness::dice::Dice;
use peregrine_harness::engines::hosted::{
    Hosted, {self},
};
use peregrine_harness::engines::Engine;
use peregrine_harness::error::{Result, StatementContext};

/// The options of a server, and the end of its life.
#[derive(Debug, Clone)]
pub struct Life {
    /// The seed of everything in it; a shaken plug-in also draws its knobs from it.
    pub seed: u64,
    /// The size of the engine's cache, in bytes.
    pub cache: u64,
    /// More options for the server.
    pub options: Vec<String>,
    /// When commits are durable: `peregrine_flush_log_at_trx_commit`.
    flush: u32,
    /// Whether the server is killed at the end and started again.
    is_killed: bool,
}

impl Life {
    /// Draws the life of a seed.
    #[must_use]
    pub fn of(seed: u64, engine: Engine) -> Life {
        let mut dice = Dice::new(seed, 0);
        let cache = [4, 4, 8, 32, 128][dice.below(5) as usize] << 20;
        let mut options = vec![format!(
            "--table-open-cache={}",
            [10, 400][dice.below(2) as usize]
        )];
        let threads = 1 + dice.below(4);
        let log = [1, 1, 16][dice.below(3) as usize];
        let checkpoint = [1, 1, 300][dice.below(3) as usize];
        let flush = dice.below(3);
        if engine == Engine::Peregrine {
            options.extend([
                format!("--peregrine-scan-threads={threads}"),
                format!("--peregrine-log-size={log}M"),
                format!("--peregrine-checkpoint-interval={checkpoint}"),
            ]);
        }
        Life {
            seed,
            cache,
            options,
            flush,
            is_killed: dice.below(2) == 0,
        }
    }

    /// Plays the life on a server that has just been started with its options.
    ///
    /// # Errors
    /// When tables can't be created.
    pub(super) fn play(&self, request: &Request, server: &mut Hosted) -> Result<Shared> {
        let shared = Shared::new(request.statements_a_life);
        let mut dice = Dice::new(self.seed, 1);
        let mut connection = server.connect(None)?;
        let database = [format!("CREATE DATABASE {SCHEMA}"), format!("USE {SCHEMA}")];
        hosted::run_all(&mut connection, &database)?;
        hosted::run_all(
            &mut connection,
            &tables::definitions(request.engine.sql_name()),
        )?;
        hosted::run_all(&mut connection, &tables::filling(&mut dice))?;
        if request.engine == Engine::Peregrine {
            let flush = self.flush;
            let setting = format!("SET GLOBAL peregrine_flush_log_at_trx_commit = {flush}");
            hosted::run_all(&mut connection, &[setting])?;
        }
        if let Err(error) = self.sessions(request, server, &shared) {
            shared.wrong(format!("a session: {error}"));
        }
        drop(connection);
        if let Err(error) = self.end(server, &shared) {
            shared.wrong(format!("in the end: {error}"));
        }
        Ok(shared)
    }

    fn sessions(&self, request: &Request, server: &Hosted, shared: &Shared) -> Result<()> {
        let connect = || -> Result<Conn> {
            let mut connection = server.connect(Some(SCHEMA))?;
            let mut settings = vec!["SET SESSION lock_wait_timeout = 2, sql_mode = ''".to_owned()];
            settings.push(match request.engine {
                Engine::Peregrine => "SET SESSION peregrine_lock_wait_timeout = 1".to_owned(),
                _ => "SET SESSION innodb_lock_wait_timeout = 1".to_owned(),
            });
            hosted::run_all(&mut connection, &settings)?;
            Ok(connection)
        };
        let connections: Vec<Conn> = (0..request.sessions)
            .map(|_| connect())
            .collect::<Result<_>>()?;
        std::thread::scope(|scope| {
            let threads: Vec<_> = (2_u64..)
                .zip(connections)
                .map(|(stream, connection)| {
                    let dice = Dice::new(self.seed, stream);
                    let engine = request.engine;
                    scope.spawn(move || {
                        let outcome = match stream % 2 {
                            0 => Writer {
                                connection,
                                dice,
                                engine,
                                shared,
                            }
                            .work(),
                            _ => Judge {
                                connection,
                                dice,
                                engine,
                                shared,
                                copies: (format!("copies_{stream}"), 0),
                            }
                            .work(),
                        };
                        // The other sessions need not continue.
                        if outcome.is_err() {
                            shared.end();
                        }
                        outcome
                    })
                })
                .collect();
            let mut outcome = Ok(());
            for thread in threads {
                let ended = thread.join();
                outcome = outcome.and(ended.unwrap_or_else(|_| {
                    shared.wrong("a session panicked".to_owned());
                    Ok(())
                }));
            }
            outcome
        })
    }

    /// Ends the life, with or without a kill, and checks all tables: each is sound, and each of its indexes has all
    /// rows, with the right entries.
    fn end(&self, server: &mut Hosted, shared: &Shared) -> Result<()> {
        if self.is_killed {
            server.kill()?;
            server.start_again()?;
        }
        let mut connection = server.connect(Some(SCHEMA))?;
        for (name, keys) in TABLES {
            let check = format!("CHECK TABLE {name} EXTENDED");
            let rows: Vec<Row> = connection.query(&check).running(&check)?;
            shared.checked(&check, rows);
            let mut counts = Vec::new();
            for key in names(keys) {
                let count = format!("SELECT COUNT(*) FROM {name} FORCE INDEX ({key})");
                counts.push(connection.query_first::<u64, _>(&count).running(&count)?);
            }
            counts.dedup();
            if counts.len() != 1 {
                shared.wrong(format!("the indexes of {name} have {counts:?} rows"));
            }
            // The check above is the engine's own, so read the indexes, too.
            for unlike in unlike_the_rows(&mut connection, name)? {
                shared.wrong(unlike);
            }
        }
        drop(connection);
        server.stop()
    }
}
