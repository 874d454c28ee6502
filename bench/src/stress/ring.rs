//! A ring of sessions: each has locked a row and waits for the next one's.

use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;

use crate::behaviour::sleeping::Watch;
use peregrine_harness::engines::hosted::{
    Hosted, {self},
};
use peregrine_harness::engines::Engine;
use peregrine_harness::error::{HarnessError, Result, StatementContext};

/// The maximum time for the ring to close and to be resolved.
const PATIENCE: Duration = Duration::from_secs(180);

/// The outcome of a ring.
#[derive(Debug, Clone, PartialEq)]
pub struct Ring {
    /// The number of sessions.
    pub sessions: u32,
    /// The errors that sessions got.
    pub errors: Vec<u16>,
    /// Time from the statement that closed the ring to the first error, in milliseconds.
    pub first_error_ms: f64,
    /// Time from that statement until every session had ended its transaction, in milliseconds.
    pub all_ended_ms: f64,
}

/// Creates a ring of sessions, and closes it when all but the last wait.
///
/// # Errors
/// When the server returns an error, or the ring is not resolved.
pub fn close(server: &Hosted, engine: Engine, sessions: u32) -> Result<Ring> {
    let mut connection = server.connect(None)?;
    let rows: Vec<String> = (0..sessions).map(|id| format!("({id}, 0)")).collect();
    hosted::run_all(
        &mut connection,
        &[
            "CREATE DATABASE IF NOT EXISTS stress".to_owned(),
            format!(
                "CREATE OR REPLACE TABLE stress.ring (id int primary key, n int not null) ENGINE={}",
                engine.sql_name()
            ),
            format!("INSERT INTO stress.ring VALUES {}", rows.join(", ")),
        ],
    )?;
    let process = server.process()?;
    let mut prepared = Vec::new();
    for id in 0..sessions {
        let mut connection = server.connect(Some("stress"))?;
        let thread = "SELECT tid FROM information_schema.processlist WHERE id = connection_id()";
        let thread: Option<i32> = connection.query_first(thread).running(thread)?;
        let own = format!("UPDATE ring SET n = n + 1 WHERE id = {id}");
        hosted::run_all(&mut connection, &["BEGIN".to_owned(), own])?;
        prepared.push((connection, Watch::new(process, thread.unwrap_or(0))));
    }
    let (ended, endings) = channel();
    let mut watches = Vec::new();
    let mut begun = Instant::now();
    for (id, (mut connection, watch)) in (0..sessions).zip(prepared) {
        if id + 1 == sessions {
            wait_until_all_sleep(&mut watches)?;
            begun = Instant::now();
        } else {
            watches.push(watch);
        }
        let ended = ended.clone();
        std::thread::spawn(move || {
            let next = (id + 1) % sessions;
            let result =
                connection.query_drop(format!("UPDATE ring SET n = n + 1 WHERE id = {next}"));
            let at = Instant::now();
            let error = match result {
                Ok(()) => None,
                Err(mysql::Error::MySqlError(error)) => Some(error.code),
                Err(_) => Some(0),
            };
            let end = if error.is_none() {
                "COMMIT"
            } else {
                "ROLLBACK"
            };
            // A session that has lost its connection has ended, too.
            let _ = connection.query_drop(end);
            let _ = ended.send((error, at, Instant::now()));
        });
    }
    drop(ended);
    let (mut errors, mut first, mut last) = (Vec::new(), None::<Instant>, begun);
    for _ in 0..sessions {
        let (error, at, end) = endings.recv_timeout(PATIENCE).map_err(|_| {
            HarnessError::Server("the ring of sessions was not resolved".to_owned())
        })?;
        if let Some(code) = error {
            errors.push(code);
            first = Some(first.map_or(at, |before| before.min(at)));
        }
        last = last.max(end);
    }
    let ms = |at: Instant| at.duration_since(begun).as_secs_f64() * 1e3;
    Ok(Ring {
        sessions,
        errors,
        first_error_ms: first.map_or(0.0, ms),
        all_ended_ms: ms(last),
    })
}

fn wait_until_all_sleep(watches: &mut Vec<Watch>) -> Result<()> {
    let begun = Instant::now();
    while !watches.is_empty() {
        watches.retain_mut(|watch| !watch.asleep());
        if begun.elapsed() > PATIENCE {
            return Err(HarnessError::Server(
                "a session of the ring does not wait".to_owned(),
            ));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}
