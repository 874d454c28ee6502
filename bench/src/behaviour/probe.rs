//! Probes the requested engines and returns the findings.

use std::path::PathBuf;

use mysql::prelude::Queryable;

use super::anomalies::{
    ALL, {self},
};
use super::conflict::{
    Conflict, {self},
};
use super::deadlock;
use super::findings::{Cell, Column, Findings, FORMAT};
use super::player::Player;
use crate::runner::machine;
use peregrine_harness::engines::hosted::{
    Hosted, Place, {self},
};
use peregrine_harness::engines::settings::Settings;
use peregrine_harness::engines::Engine;
use peregrine_harness::error::{HarnessError, Result, StatementContext};
use peregrine_harness::interrupt;
use peregrine_harness::level::Level;
use peregrine_harness::server::Installation;

/// The largest number of sessions in a script.
const SESSIONS: usize = 3;

/// The schema of the scripts' table.
const SCHEMA: &str = "behaviour";

/// A request for the behaviour of engines.
#[derive(Debug, Clone)]
pub struct Request {
    /// The engines.
    pub engines: Vec<Engine>,
    /// The number of deadlocks to play.
    pub deadlocks: u32,
    /// The server's directory; it must not exist yet.
    pub dir: PathBuf,
    /// The MariaDB to run.
    pub installation: Installation,
    /// The Peregrine plug-in, if that engine is among `engines`.
    pub plugin: Option<PathBuf>,
    /// More options for mariadbd.
    pub server_options: Vec<String>,
}

/// An engine, or an engine with another setting.
struct Setting {
    title: String,
    engine: Engine,
    /// Statements to run in every session.
    prepare: Vec<String>,
}

/// Plays all scripts, meetings and deadlocks on every engine.
///
/// # Errors
/// When the server does not start, or hangs; [`HarnessError::Interrupted`].
pub fn run(request: &Request, mut told: impl FnMut(&str)) -> Result<Findings> {
    interrupt::flag();
    let started = jiff::Timestamp::now().to_string();
    let server = Hosted::start(Place {
        installation: request.installation.clone(),
        plugin: request.plugin.clone(),
        settings: Settings {
            engines: request.engines.clone(),
            cache_bytes: 128 << 20,
            most_threads: 16,
            charset: "latin1".to_owned(),
        },
        dir: request.dir.clone(),
        server_options: request.server_options.clone(),
        environment: Vec::new(),
        memory_limit: None,
    })?;
    let mut connection = server.connect(None)?;
    hosted::run_all(&mut connection, &[format!("CREATE DATABASE {SCHEMA}")])?;
    connection.select_db(SCHEMA).running("USE behaviour")?;
    let mut columns = Vec::new();
    for setting in settings(&request.engines, &mut connection)? {
        told(&setting.title);
        columns.push(column(
            &server,
            &mut connection,
            &setting,
            request.deadlocks,
        )?);
    }
    let version: Option<String> = connection
        .query_first("SELECT version()")
        .running("SELECT version()")?;
    let names: Vec<&str> = request.engines.iter().map(|engine| engine.name()).collect();
    let findings = Findings {
        format: FORMAT,
        suite_version: env!("CARGO_PKG_VERSION").to_owned(),
        server_version: version.unwrap_or_default(),
        started,
        machine: machine::describe(&request.dir),
        command: format!(
            "peregrine bench behaviour --engines {} --deadlocks {}",
            names.join(","),
            request.deadlocks
        ),
        columns,
    };
    drop(connection);
    server.remove()?;
    Ok(findings)
}

/// Returns the columns; InnoDB has two if the server has `innodb_snapshot_isolation`.
fn settings(engines: &[Engine], connection: &mut mysql::Conn) -> Result<Vec<Setting>> {
    let statement = "SHOW GLOBAL VARIABLES LIKE 'innodb_snapshot_isolation'";
    let known: Option<(String, String)> = connection.query_first(statement).running(statement)?;
    let mut found = Vec::new();
    for engine in engines {
        let ways: &[(&str, &str)] = match engine {
            Engine::InnoDb if known.is_some() => &[
                ("", "SET SESSION innodb_snapshot_isolation = OFF"),
                (
                    ", snapshot isolation",
                    "SET SESSION innodb_snapshot_isolation = ON",
                ),
            ],
            _ => &[("", "")],
        };
        for (suffix, statement) in ways {
            found.push(Setting {
                title: format!("{}{suffix}", engine.title()),
                engine: *engine,
                prepare: Some((*statement).to_owned())
                    .into_iter()
                    .filter(|statement| !statement.is_empty())
                    .collect(),
            });
        }
    }
    Ok(found)
}

fn column(
    server: &Hosted,
    connection: &mut mysql::Conn,
    setting: &Setting,
    deadlocks: u32,
) -> Result<Column> {
    let table = anomalies::table(setting.engine.sql_name());
    let mut column = Column {
        title: setting.title.clone(),
        engine: setting.engine,
        cells: Vec::new(),
        deadlocks: Vec::new(),
        conflicts: Vec::new(),
    };
    for level in Level::ALL {
        let mut prepare = setting.prepare.clone();
        prepare.push(format!(
            "SET SESSION TRANSACTION ISOLATION LEVEL {}",
            level.sql()
        ));
        let mut player = Player::new(server, SCHEMA, SESSIONS, &prepare)?;
        for anomaly in &ALL {
            stop_if_asked()?;
            hosted::run_all(connection, &table)?;
            let transcript = player.play(anomaly.steps)?;
            column.cells.push(Cell::of(anomaly, level, &transcript));
        }
        for meeting in &conflict::ALL {
            hosted::run_all(connection, &table)?;
            let transcript = player.play(meeting.steps)?;
            column
                .conflicts
                .push(Conflict::of(meeting, level, &transcript));
        }
        if level == Level::RepeatableRead && setting.engine.is_transactional() {
            let make_table = || hosted::run_all(connection, &table);
            column.deadlocks = deadlock::probe(&mut player, deadlocks, make_table)?;
        }
    }
    Ok(column)
}

fn stop_if_asked() -> Result<()> {
    if interrupt::requested() {
        Err(HarnessError::Interrupted)
    } else {
        Ok(())
    }
}
