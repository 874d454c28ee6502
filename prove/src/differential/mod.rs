//! Random tables and random statements, the same on `InnoDB` and on Peregrine.
//!
//! After each statement, both engines must have the same rows, error, number of changed rows and warnings. Statements
//! use the text protocol or the binary one. In some scripts the server is killed or stopped, and started again. Every
//! other script has three sessions with statements in one order: each statement is sent after the previous one has
//! ended, and no statement waits for a lock.
//!
//! [`crate::changes`] has fixed tables; here every script draws its own. A script that shows a difference is shortened.
//!
//! | file | holds |
//! |---|---|
//! | `values.rs` | kinds of columns, and constants of each |
//! | `schema.rs` | random tables: keys, partitions, versions, periods, generated columns, triggers |
//! | `author.rs` | the author of a script |
//! | `statements.rs` | random statements on them, and groups of statements |
//! | `changes.rs` | random changes of rows |
//! | `units.rs` | transactions of other levels and by XA, and temporary tables |
//! | `interleaved.rs` | random statements of several sessions, in one order |
//! | `play.rs` | runs a script on both engines and compares |
//! | `side.rs` | a connection to one engine, and the outcomes of statements on it |
//! | `pair.rs` | a session on both engines, and the comparison of outcomes |
//! | `sessions.rs` | the sessions of a script, and their conflicts |
//! | `looks.rs` | compares the tables, directly and through each index |
//! | `shrink.rs` | finds a shorter script with a difference |
//! | `run.rs` | runs many scripts and sums up the results |

mod author;
mod changes;
mod interleaved;
mod looks;
mod pair;
mod play;
mod run;
mod schema;
mod sessions;
mod shrink;
mod side;
mod statements;
mod units;
mod values;

pub use run::{run, Outcome, Request};

/// Placeholder for the engine's name in a statement.
const ENGINE: &str = "@ENGINE@";
/// Prefix of a statement that uses the binary protocol.
const BINARY: &str = "/* binary */ ";
/// Line of a script at which the server is killed and started again.
const KILL: &str = "-- the server is killed, and started again";
/// Line of a script at which the server is stopped cleanly and started again.
const STOP: &str = "-- the server is stopped, and started again";

/// Line of a script at which its session reads all tables, directly and through each index.
const LOOK: &str = "-- all tables are read, and through each index";
/// Prefix, with the session's number and a colon, of a statement in a script with several sessions.
const SESSION: &str = "session ";

/// Returns a statement as a line of a script with several sessions.
fn of_session(session: usize, sql: &str) -> String {
    format!("{SESSION}{}: {sql}", session + 1)
}

/// Returns a line's session, counted from 0, and its statement; a line without a session belongs to the first one.
fn split(line: &str) -> (usize, &str) {
    let parts = line
        .strip_prefix(SESSION)
        .and_then(|rest| rest.split_once(": "));
    match parts.map(|(number, sql)| (number.parse::<usize>(), sql)) {
        Some((Ok(number), sql)) => (number.saturating_sub(1), sql),
        _ => (0, line),
    }
}

/// Returns a statement without the prefix for the binary protocol.
fn bare(sql: &str) -> &str {
    sql.strip_prefix(BINARY).unwrap_or(sql)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_its_session_and_its_statement() {
        let sql = "/* binary */ INSERT INTO t VALUES ('session 2: DO 0')";
        for session in 0..3 {
            assert_eq!(split(&of_session(session, sql)), (session, sql));
        }
        assert_eq!(split(sql), (0, sql));
        assert_eq!(split(KILL), (0, KILL));
        assert_eq!(bare(split(&of_session(2, "/* binary */ DO 0")).1), "DO 0");
    }
}
