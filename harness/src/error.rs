//! The error type of measurements and proofs; each message names the problem and its remedy.

use std::path::{Path, PathBuf};

/// An error of a measurement or a proof.
#[derive(Debug, thiserror::Error)]
pub enum HarnessError {
    /// No MariaDB server can be found.
    #[error(
        "no MariaDB was found{detail}. Run `make mariadb` in the checkout to fetch a private one into \
         target/, or set MARIADB_BASEDIR to the directory of your own (on Debian: \
         `apt-get install mariadb-server mariadb-plugin-rocksdb`, then MARIADB_BASEDIR=/usr)"
    )]
    NoMariaDb {
        /// The places searched, in brackets, or empty.
        detail: String,
    },

    /// The Peregrine plug-in has not been built.
    #[error(
        "the Peregrine plug-in is not there ({looked_at}). Build it with `make plugin`, or name it with \
         --plugin FILE; to measure the other engines alone, leave peregrine out of --engines"
    )]
    NoPlugin {
        /// The path searched.
        looked_at: String,
    },

    /// An operation on a file failed.
    #[error("{action} {path}: {source}")]
    Io {
        /// The action that failed, e.g. "cannot create".
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },

    /// The server could not be started, stopped or reached.
    #[error("{0}")]
    Server(String),

    /// A statement failed.
    #[error("{statement}: {source}")]
    Sql {
        /// The statement, shortened.
        statement: String,
        /// The client library's error.
        source: Box<mysql::Error>,
    },

    /// The caller asked for something that can't be done.
    #[error("{0}")]
    Usage(String),

    /// A workload or thresholds file is wrong: one line for each problem, with its place.
    #[error("{0}")]
    Workload(String),

    /// A results file cannot be understood.
    #[error("{path}, line {line}: {problem}")]
    Results {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The problem with the line.
        problem: String,
    },

    /// The report's template could not be filled in.
    #[error("cannot render the report: {0}")]
    Report(String),

    /// The run was interrupted by the user.
    #[error("interrupted")]
    Interrupted,
}

impl HarnessError {
    /// Returns the server's error number, if the error comes from a server.
    #[must_use]
    pub fn code(&self) -> Option<u16> {
        match self {
            Self::Sql { source, .. } => match source.as_ref() {
                mysql::Error::MySqlError(error) => Some(error.code),
                _ => None,
            },
            _ => None,
        }
    }
}

/// The result of an operation.
pub type Result<T, E = HarnessError> = std::result::Result<T, E>;

/// Adds the action and the path to an operating-system error.
pub trait PathContext<T> {
    /// Turns the error into [`HarnessError::Io`].
    ///
    /// # Errors
    /// The original error, with its context.
    fn at(self, action: &'static str, path: &Path) -> Result<T>;
}

impl<T> PathContext<T> for std::io::Result<T> {
    fn at(self, action: &'static str, path: &Path) -> Result<T> {
        self.map_err(|source| HarnessError::Io {
            action,
            path: path.to_path_buf(),
            source,
        })
    }
}

/// Adds the statement to an error of the client library.
pub trait StatementContext<T> {
    /// Turns the error into [`HarnessError::Sql`].
    ///
    /// # Errors
    /// The original error, with the statement.
    fn running(self, statement: &str) -> Result<T>;
}

impl<T> StatementContext<T> for std::result::Result<T, mysql::Error> {
    fn running(self, statement: &str) -> Result<T> {
        self.map_err(|source| {
            let mut shown: String = statement.chars().take(160).collect();
            if shown.len() < statement.len() {
                shown.push('…');
            }
            HarnessError::Sql {
                statement: shown,
                source: Box::new(source),
            }
        })
    }
}
