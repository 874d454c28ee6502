//! Plays the scripts on both engines and compares the answers.

use std::panic::resume_unwind;

use mysql::prelude::Queryable;
use mysql::{Conn, Row, Value};

use super::cases::{
    Case, {self},
};
use super::Outcome;
use peregrine_harness::engines::hosted::{
    Hosted, {self},
};
use peregrine_harness::engines::Engine;
use peregrine_harness::error::{HarnessError, Result, StatementContext};
use peregrine_harness::interrupt;

/// The number of characters of an answer that a report shows.
const TOLD: usize = 300;

/// Plays the scripts with these names (all if `named` is empty) on both engines of a server.
///
/// Calls `tell` with each script's result. If the server dies, it is started again for the next script.
///
/// # Errors
/// For an unknown name, and when the server can't be started again.
pub fn run(named: &[String], server: &mut Hosted, mut tell: impl FnMut(String)) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    for case in cases::chosen(named)? {
        if interrupt::requested() {
            return Err(HarnessError::Interrupted);
        }
        match difference(&case, server) {
            Ok(None) => {
                outcome.held += 1;
                tell(format!("held      {}", case.name));
            }
            Ok(Some(told)) => {
                outcome.not_held.push(case.name);
                tell(format!("NOT HELD  {}{told}", case.name));
            }
            Err(error) => {
                outcome.not_held.push(case.name);
                tell(format!("NOT HELD  {}\n          {error}", case.name));
                server.kill()?;
                server.start_again()?;
            }
        }
    }
    Ok(outcome)
}

/// Returns the first statement with different answers, and these answers.
///
/// Both engines play at the same time: each has its own tables, and the client mostly waits.
fn difference(case: &Case, server: &Hosted) -> Result<Option<String>> {
    let (wanted, got) = std::thread::scope(|scope| {
        let wanted = scope.spawn(|| play(case, server, Engine::InnoDb));
        let got = play(case, server, Engine::Peregrine);
        let wanted = wanted.join().unwrap_or_else(|panic| resume_unwind(panic));
        (wanted, got)
    });
    let (wanted, got) = (wanted?, got?);
    let mut pairs = case.statements.iter().zip(wanted.iter().zip(&got));
    let different = pairs.find(|(_, (wanted, got))| wanted != got);
    Ok(different.map(|(statement, (wanted, got))| {
        format!(
            "\n          {}\n          InnoDB    {}\n          Peregrine {}",
            statement.text,
            brief(wanted),
            brief(got)
        )
    }))
}

fn brief(answer: &str) -> String {
    answer.chars().take(TOLD).collect()
}

/// Returns the answers to a script's statements, with `engine` as the default engine.
fn play(case: &Case, server: &Hosted, engine: Engine) -> Result<Vec<String>> {
    let mut sessions = Vec::new();
    for _ in 0..case.sessions() {
        sessions.push(session(server, engine)?);
    }
    let answers = case.statements.iter();
    answers
        .map(|statement| answer(&mut sessions[statement.session], &statement.text))
        .collect()
}

/// Opens a connection in the engine's own schema.
///
/// The lock wait timeout is 1 s, because one thread plays all sessions.
fn session(server: &Hosted, engine: Engine) -> Result<Conn> {
    let mut connection = server.connect(None)?;
    let schema = format!("answers_{}", engine.name());
    hosted::run_all(
        &mut connection,
        &[
            format!("CREATE DATABASE IF NOT EXISTS {schema} CHARACTER SET latin1"),
            format!("USE {schema}"),
            "SET NAMES utf8mb4".to_owned(),
            format!(
                "SET default_storage_engine = {}, innodb_lock_wait_timeout = 1, peregrine_lock_wait_timeout = 1, \
                 sql_mode = 'STRICT_TRANS_TABLES'",
                engine.sql_name()
            ),
        ],
    )?;
    Ok(connection)
}

/// Returns the server's answer to a statement as text.
///
/// The text holds the rows in their order, the number of changed rows and the server's information about them, or an
/// error's number.
fn answer(connection: &mut Conn, text: &str) -> Result<String> {
    let mut result = match connection.query_iter(text) {
        Ok(result) => result,
        Err(mysql::Error::MySqlError(error)) => return Ok(format!("error {}", error.code)),
        Err(other) => return Err(other).running(text),
    };
    let mut told = String::new();
    if let Some(set) = result.iter() {
        for row in set {
            match row {
                Ok(row) => told.push_str(&text_of(row)),
                Err(mysql::Error::MySqlError(error)) => {
                    return Ok(format!("{told}error {}", error.code))
                }
                Err(other) => return Err(other).running(text),
            }
        }
    }
    let (changed, info) = (result.affected_rows(), result.info_str().into_owned());
    Ok(format!("{told}{changed} changed {info}"))
}

fn text_of(row: Row) -> String {
    let value = |value: Value| match value {
        Value::Bytes(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        other => other.as_sql(true),
    };
    let values: Vec<String> = row.unwrap().into_iter().map(value).collect();
    format!("{}; ", values.join(", "))
}
