//! The engine's errors, as values.

use std::path::PathBuf;

use crate::ids::PageId;

/// The result of every engine call.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Every error of the engine.
///
/// Each message says what happened, to which object, and, if there is a choice, what would be right.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An operating-system call failed.
    #[error("{action} {}: {source}", path.display())]
    Io {
        /// The action: "read", "write", "sync", …
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system's answer.
        source: std::sync::Arc<std::io::Error>,
    },
    /// No space is left on the device, or the file may not grow (a quota, a limit on the size of files).
    ///
    /// The statement fails; later ones succeed when there is space again.
    #[error("no space left on the device of {}", path.display())]
    NoSpace {
        /// The file that could not grow.
        path: PathBuf,
    },
    /// The system has no memory for a buffer whose size the data decide.
    ///
    /// Nothing of the operation remains; the transaction goes on.
    #[error("no memory for {bytes} bytes of {what}")]
    OutOfMemory {
        /// Bytes asked for.
        bytes: usize,
        /// Their use: "a large value", "a log record", …
        what: &'static str,
    },
    /// Bytes on disk are damaged.
    #[error("{} is corrupt at offset {offset}{}: {what}", file.display(), page.map(|p| format!(" (page {p})")).unwrap_or_default())]
    Corrupt {
        /// The damaged file.
        file: PathBuf,
        /// Byte offset of the damaged part.
        offset: u64,
        /// The page, if the damage is in a page.
        page: Option<PageId>,
        /// The expected and the found bytes or state.
        what: String,
    },
    /// A newer version, or another program, wrote the files.
    ///
    /// They are unchanged.
    #[error("{}: {what}", file.display())]
    Format {
        /// The file.
        file: PathBuf,
        /// The fault in its format.
        what: String,
    },
    /// The engine stopped after a failure that leaves the durable state unknown; reopen to recover.
    #[error("the engine has stopped and must be reopened to recover: {0}")]
    Stopped(String),
    /// The directory is in use by another process.
    #[error("{} is in use by another process", .0.display())]
    InUse(PathBuf),
    /// A row with the same unique key exists.
    #[error("duplicate value for unique index number {index}")]
    Duplicate {
        /// 0 is the clustered (primary) index, n is `indexes[n - 1]`.
        index: usize,
    },
    /// A wait for a row lock closed a circle, and this transaction is the victim.
    ///
    /// It can only be rolled back: every other call returns this error from here on.
    #[error("deadlock: this transaction was chosen to roll back")]
    Deadlock,
    /// A row lock was not granted within the time limit.
    #[error("lock wait timed out")]
    LockWaitTimeout,
    /// A row lock is held by another transaction, and the caller asked not to wait.
    #[error("the row is locked by another transaction")]
    LockNotAvailable,
    /// The table was created, copied or truncated after this transaction's snapshot was taken.
    ///
    /// The snapshot has other rows than the table, or none. The transaction goes on, without the table.
    #[error("table {0} was created, copied or truncated after this transaction's snapshot was taken; it can be read by a new transaction")]
    TableNewerThanSnapshot(String),
    /// The log has grown by more than [`crate::Options::longest_kept_log`] since this transaction's first change.
    ///
    /// The transaction can only be rolled back, as after [`Error::Deadlock`].
    #[error("more log has come together since this transaction's first change than is kept for one transaction, {limit} bytes: it can only be rolled back")]
    LogLimit {
        /// The limit.
        limit: u64,
    },
    /// The row was changed after this transaction's snapshot was taken.
    ///
    /// The transaction can only be rolled back, as after [`Error::Deadlock`].
    #[error("the row was changed after this transaction's snapshot")]
    WriteConflict,
    /// Another transaction has changed or locked the row, and the table's locking is optimistic
    /// ([`crate::Locking::Optimistic`]).
    ///
    /// Nothing of the operation remains; the transaction goes on.
    #[error("the row is in use or was changed by another transaction")]
    RowChanged,
    /// The wait or the command was interrupted by the caller.
    #[error("interrupted")]
    Interrupted,
    /// No such table, row, index or column.
    #[error("no such {what}: {name}")]
    NotFound {
        /// "table", "index", "row", …
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// A table of that name exists.
    #[error("table {0} exists already")]
    Exists(String),
    /// The table is in use by open transactions.
    #[error("table {0} is in use")]
    Busy(String),
    /// An invalid value, key, schema or option; the text says what would be right.
    #[error("{0}")]
    Invalid(String),
    /// A limit of the engine: the text names the limit and the value.
    #[error("{0}")]
    TooLarge(String),
    /// A bug in the engine, found by one of its own checks.
    #[error("internal error: {0}")]
    Internal(String),
}

/// The most bytes of a key in an error's text: programs may cut the end of a long text.
pub(crate) const MOST_KEY_BYTES: usize = 32;

/// The beginning of a key in hexadecimal, for an error's text.
pub(crate) fn beginning_of_key(key: &[u8]) -> String {
    let beginning = &key[..key.len().min(MOST_KEY_BYTES)];
    let mut text: String = beginning.iter().map(|b| format!("{b:02X}")).collect();
    if beginning.len() < key.len() {
        text.push('…');
    }
    format!("X'{text}'")
}

impl Error {
    /// Wraps a system error with the action that failed; "no space" becomes [`Error::NoSpace`].
    pub fn io(action: &'static str, path: impl Into<PathBuf>, source: std::io::Error) -> Self {
        let path = path.into();
        match source.kind() {
            std::io::ErrorKind::StorageFull
            | std::io::ErrorKind::QuotaExceeded
            | std::io::ErrorKind::FileTooLarge => Error::NoSpace { path },
            _ => Error::Io {
                action,
                path,
                source: std::sync::Arc::new(source),
            },
        }
    }
}
