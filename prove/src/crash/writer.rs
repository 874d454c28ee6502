//! A writer thread: it runs transactions until the server is gone.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use mysql::prelude::Queryable;

use super::history::{Author, State, Transaction};
use peregrine_harness::engines::mariadb::MariaDb;
use peregrine_harness::error::{Result, StatementContext};

/// A writer's knowledge when the server is gone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ending {
    /// The state after all acknowledged commits.
    pub acknowledged: State,
    /// The transaction with an unanswered COMMIT: it may be there completely or not at all.
    pub in_flight: Option<Transaction>,
    /// Transactions that conflicted with another one and were rolled back.
    pub refused: u64,
    /// The server's first reason for a refusal.
    pub reason: Option<String>,
    /// An error without any cause in the test; it ended the writer.
    pub wrong: Option<String>,
    /// The last transaction number used.
    pub number: u64,
}

/// Errors that writers may cause each other: lock wait timeout, deadlock, a row changed since the snapshot.
///
/// Each writer has its own rows, but they lie among those of others. A statement that reads all rows meets the others'.
const PROVOKED: [u16; 3] = [1205, 1213, 1020];
/// Errors by which a server refuses statements while it shuts down.
const SERVER_ENDS: [u16; 2] = [1053, 1927];

/// Counters of all writers together.
#[derive(Debug, Default)]
pub struct Counters {
    /// Commits acknowledged.
    pub commits: AtomicU64,
}

/// Runs a writer's statements; a connection implements it, and so do tests.
pub trait Statements {
    /// Runs a statement.
    ///
    /// # Errors
    /// The failure; [`Failure::Gone`] if the connection broke.
    fn run(&mut self, statement: &str) -> std::result::Result<(), Failure>;
}

/// The reason for a failed statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The statement conflicted with another transaction; the server still runs.
    Refused(String),
    /// The server refused the statement without any cause in the test.
    Wrong(String),
    /// The connection broke.
    Gone,
}

impl Statements for mysql::Conn {
    fn run(&mut self, statement: &str) -> std::result::Result<(), Failure> {
        self.query_drop(statement).map_err(|error| match error {
            mysql::Error::MySqlError(error) if PROVOKED.contains(&error.code) => {
                Failure::Refused(error.to_string())
            }
            mysql::Error::MySqlError(error) if !SERVER_ENDS.contains(&error.code) => {
                Failure::Wrong(format!("{statement}: {error}"))
            }
            mysql::Error::MySqlError(_) | mysql::Error::IoError(_) => Failure::Gone,
            // The connection broke between two packets, or within one.
            mysql::Error::DriverError(_) | mysql::Error::CodecError(_) => Failure::Gone,
            other => Failure::Wrong(format!("{statement}: {other}")),
        })
    }
}

/// Opens a connection for a writer.
///
/// # Errors
/// When the server refuses.
pub fn connect(socket: &Path, schema: &str) -> Result<mysql::Conn> {
    let mut connection = MariaDb::new(socket).administration()?;
    connection
        .select_db(schema)
        .running(&format!("USE {schema}"))?;
    Ok(connection)
}

/// Runs transactions until the connection breaks, `stop` is set or an unexpected error comes.
///
/// The writer's rows begin with `state`.
pub fn write(
    connection: &mut dyn Statements,
    author: &mut Author,
    state: State,
    number: u64,
    counters: &Counters,
    stop: &AtomicBool,
) -> Ending {
    let mut ending = Ending {
        acknowledged: state,
        number,
        ..Ending::default()
    };
    while !stop.load(Ordering::Relaxed) {
        let transaction = author.next(&ending.acknowledged);
        ending.number = transaction.number;
        match attempt(connection, &transaction) {
            Attempt::Acknowledged => {
                counters.commits.fetch_add(1, Ordering::Relaxed);
                ending.acknowledged = transaction.after;
            }
            Attempt::Undone => {}
            Attempt::Refused(reason) => {
                ending.refused += 1;
                ending.reason.get_or_insert(reason);
            }
            Attempt::Unknown => {
                ending.in_flight = Some(transaction);
                return ending;
            }
            Attempt::Gone => return ending,
            Attempt::Wrong(what, is_unknown) => {
                ending.wrong = Some(what);
                ending.in_flight = is_unknown.then_some(transaction);
                return ending;
            }
        }
    }
    ending
}

enum Attempt {
    /// The server acknowledged COMMIT.
    Acknowledged,
    /// The writer rolled back deliberately.
    Undone,
    /// The server refused the transaction, and the writer rolled it back.
    Refused(String),
    /// The writer sent COMMIT and got no answer.
    Unknown,
    /// The connection broke before the writer sent COMMIT.
    Gone,
    /// An unexpected error; `true` if it came at COMMIT, so that the effect of COMMIT is unknown.
    Wrong(String, bool),
}

fn attempt(connection: &mut dyn Statements, transaction: &Transaction) -> Attempt {
    let body = std::iter::once("BEGIN").chain(transaction.statements.iter().map(String::as_str));
    for statement in body {
        match connection.run(statement) {
            Ok(()) => {}
            Err(Failure::Gone) => return Attempt::Gone,
            Err(Failure::Wrong(what)) => return Attempt::Wrong(what, false),
            Err(Failure::Refused(reason)) => {
                return match connection.run("ROLLBACK") {
                    Ok(()) => Attempt::Refused(reason),
                    Err(Failure::Gone) => Attempt::Gone,
                    // Nothing can block a rollback.
                    Err(Failure::Refused(what) | Failure::Wrong(what)) => {
                        Attempt::Wrong(what, false)
                    }
                };
            }
        }
    }
    if !transaction.commits {
        return match connection.run("ROLLBACK") {
            Ok(()) => Attempt::Undone,
            Err(Failure::Gone) => Attempt::Gone,
            Err(Failure::Refused(what) | Failure::Wrong(what)) => Attempt::Wrong(what, false),
        };
    }
    match connection.run("COMMIT") {
        Ok(()) => Attempt::Acknowledged,
        // A refused COMMIT leaves the transaction uncommitted.
        Err(Failure::Refused(reason)) => match connection.run("ROLLBACK") {
            Ok(()) => Attempt::Refused(reason),
            Err(Failure::Gone) => Attempt::Unknown,
            Err(Failure::Refused(what) | Failure::Wrong(what)) => Attempt::Wrong(what, true),
        },
        Err(Failure::Gone) => Attempt::Unknown,
        Err(Failure::Wrong(what)) => Attempt::Wrong(what, true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that answers `left` statements and is gone then.
    ///
    /// It refuses statements that begin with `refused`, because of a conflict or as an unexpected error.
    struct Script {
        left: usize,
        refused: &'static str,
        is_wrong: bool,
        ran: Vec<String>,
    }

    impl Statements for Script {
        fn run(&mut self, statement: &str) -> std::result::Result<(), Failure> {
            if self.left == 0 {
                return Err(Failure::Gone);
            }
            self.left -= 1;
            self.ran.push(statement.to_owned());
            if !self.refused.is_empty() && statement.starts_with(self.refused) {
                let told = "as asked".to_owned();
                return Err(match self.is_wrong {
                    true => Failure::Wrong(told),
                    false => Failure::Refused(told),
                });
            }
            Ok(())
        }
    }

    fn until_gone(left: usize, refused: &'static str) -> (Ending, Vec<String>) {
        played(left, refused, false)
    }

    fn played(left: usize, refused: &'static str, is_wrong: bool) -> (Ending, Vec<String>) {
        let mut script = Script {
            left,
            refused,
            is_wrong,
            ran: Vec::new(),
        };
        let mut author = Author::new(1, 0, 0, 4, 0);
        let counters = Counters::default();
        let stop = AtomicBool::new(false);
        let ending = write(
            &mut script,
            &mut author,
            State::default(),
            0,
            &counters,
            &stop,
        );
        let commits = counters.commits.load(Ordering::Relaxed);
        assert_eq!(commits, ending.acknowledged.commits.len() as u64);
        (ending, script.ran)
    }

    #[test]
    fn only_an_unanswered_commit_is_in_flight() {
        for left in 0..200 {
            let (ending, ran) = until_gone(left, "");
            let answered = ran
                .iter()
                .filter(|statement| *statement == "COMMIT")
                .count();
            assert_eq!(ending.acknowledged.commits.len(), answered);
            // The last statement decides. COMMIT would come next exactly if the row in the table of commits is written
            // and the transaction is to be committed.
            if let Some(transaction) = &ending.in_flight {
                assert!(transaction.commits);
                assert_eq!(ran.last(), transaction.statements.last());
                assert!(!ending.acknowledged.commits.contains(&transaction.number));
            }
        }
        assert!((0..200).any(|left| until_gone(left, "").0.in_flight.is_some()));
    }

    #[test]
    fn what_the_server_refuses_is_rolled_back_and_not_expected() {
        let (ending, ran) = until_gone(500, "UPDATE");
        assert!(ending.refused > 0);
        assert_eq!(ending.reason.as_deref(), Some("as asked"));
        for pair in ran.windows(2) {
            if pair[0].starts_with("UPDATE") {
                assert_eq!(pair[1], "ROLLBACK");
            }
        }
        let (ending, _) = until_gone(500, "COMMIT");
        assert!(ending.acknowledged.commits.is_empty());
        assert_eq!(ending.wrong, None);
    }

    #[test]
    fn what_nothing_provokes_ends_the_writer() {
        let (ending, ran) = played(500, "UPDATE", true);
        assert_eq!(ending.wrong.as_deref(), Some("as asked"));
        assert_eq!((ending.refused, &ending.in_flight), (0, &None));
        assert!(ran.last().expect("one").starts_with("UPDATE"));
        let (ending, _) = played(500, "COMMIT", true);
        assert!(ending.wrong.is_some());
        assert!(ending.in_flight.is_some(), "it may be there");
    }
}
