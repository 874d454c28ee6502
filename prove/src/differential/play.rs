//! Runs a script on both engines, each in its own database, and compares the outcome of every statement.

use super::pair::Played;
use super::schema::Table;
use super::sessions::Sessions;
use super::{split, KILL, LOOK, STOP};
use peregrine_harness::engines::hosted::Hosted;
use peregrine_harness::error::Result;

/// The server's time at which each script begins, in seconds.
///
/// It advances by one second for each statement, so row versions have the same times on both engines.
const BEGINNING: u64 = 1_700_000_000;
/// After this many statements, the tables are also read by every index.
const LOOK_BY_INDEX: usize = 10;

/// A difference between the engines.
#[derive(Debug, Clone)]
pub struct Difference {
    /// The statement's place in the script.
    pub at: usize,
    /// The description of the difference.
    pub told: String,
}

/// Plays a script, and returns the first difference between the engines.
///
/// # Errors
/// When the server does not answer.
pub fn play(
    server: &mut Hosted,
    script: &[String],
    tables: &[Table],
    played: &mut Played,
) -> Result<Option<Difference>> {
    let mut sessions = Sessions::new(server, script)?;
    let has_times = script.iter().any(|sql| sql.contains("SYSTEM VERSIONING"));
    for (at, line) in script.iter().enumerate() {
        let (session, sql) = split(line);
        if has_times {
            let time = format!("SET timestamp = {}", BEGINNING + at as u64);
            sessions.run_in(session, &time)?;
        }
        let told = match sql {
            KILL | STOP => {
                match sql == KILL {
                    true => server.kill()?,
                    false => server.stop()?,
                }
                server.start_again()?;
                played.restarts += 1;
                sessions = sessions.again(server)?;
                None
            }
            LOOK => sessions.look(session, tables, played)?,
            _ => sessions.done(session, sql, played)?,
        };
        if let Some(told) = told {
            return Ok(Some(Difference { at, told }));
        }
        let is_last = at + 1 == script.len();
        if is_last {
            sessions.end()?;
        }
        let told =
            sessions.look_from_outside(tables, is_last || at % LOOK_BY_INDEX == 0, played)?;
        if let Some(told) = told {
            return Ok(Some(Difference { at, told }));
        }
    }
    Ok(None)
}
