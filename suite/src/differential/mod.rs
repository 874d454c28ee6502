//! Random tables and random statements, the same on `InnoDB` and on Peregrine: after each statement the same rows, the
//! same error, as many changed rows, the same warnings. Statements go as text or by the binary protocol; in some scripts the
//! server is killed or stopped, and started again. Every other script has three sessions, whose statements come in one
//! order: no statement is sent before the last one has ended, and none waits for a lock.
//!
//! [`crate::changes`] has tables that somebody chose; here every script draws its own. A script that shows a difference
//! is made short.
//!
//! | file | holds |
//! |---|---|
//! | `values.rs` | kinds of columns, and constants of each |
//! | `schema.rs` | random tables: keys, partitions, versions, periods, generated columns, triggers |
//! | `statements.rs` | random statements on them, and those that belong together |
//! | `changes.rs` | of these, changes of rows |
//! | `units.rs` | of these, transactions of other levels and by XA, and temporary tables |
//! | `interleaved.rs` | random statements of several sessions, in one order |
//! | `play.rs` | running a script on both engines, and comparing |
//! | `sessions.rs` | the sessions of a script, and what happens where they are in each other's way |
//! | `looks.rs` | comparing the tables, by themselves and through each index |
//! | `shrink.rs` | a shorter script with a difference |
//! | `run.rs` | many scripts, and what came of them |

mod changes;
mod interleaved;
mod looks;
mod play;
mod run;
mod schema;
mod sessions;
mod shrink;
mod statements;
mod units;
mod values;

pub use run::{run, Outcome, Request};

/// Stands in a statement for the engine's name.
const ENGINE: &str = "@ENGINE@";
/// Stands before a statement that goes by the binary protocol.
const BINARY: &str = "/* binary */ ";
/// Stands in a script where the server is killed, and started again.
const KILL: &str = "-- the server is killed, and started again";
/// Stands in a script where the server is stopped in order, and started again.
const STOP: &str = "-- the server is stopped, and started again";

/// Stands in a script where its session reads all tables, by themselves and through each index.
const LOOK: &str = "-- all tables are read, and through each index";
/// Stands, with the session's number and a colon, before a statement of a script that has several.
const SESSION: &str = "session ";

/// A line of a script that has several sessions.
fn of_session(session: usize, sql: &str) -> String {
    format!("{SESSION}{}: {sql}", session + 1)
}

/// The session of a line, counted from 0, and its statement. A line without a session is the first one's.
fn split(line: &str) -> (usize, &str) {
    let parts = line
        .strip_prefix(SESSION)
        .and_then(|rest| rest.split_once(": "));
    match parts.map(|(number, sql)| (number.parse::<usize>(), sql)) {
        Some((Ok(number), sql)) => (number.saturating_sub(1), sql),
        _ => (0, line),
    }
}

/// A statement without how it is sent.
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
