//! The settings that a program chooses when it opens a database.

use std::sync::Arc;
use std::time::Duration;

use crate::row::Collations;
use crate::sessions::Sessions;

/// When a commit is durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// The log is written and synced before a commit returns: survives power loss. The default.
    #[default]
    SyncAtCommit,
    /// The log is written before a commit returns and synced about once a second: survives the
    /// end of the process; a power loss can take the last second.
    WriteAtCommit,
    /// The log is written and synced about once a second: a crash can take the last second.
    Later,
}

impl Durability {
    /// The weaker of two.
    pub(crate) fn at_most(self, other: Durability) -> Durability {
        match (self, other) {
            (Durability::Later, _) | (_, Durability::Later) => Durability::Later,
            (Durability::WriteAtCommit, _) | (_, Durability::WriteAtCommit) => {
                Durability::WriteAtCommit
            }
            _ => Durability::SyncAtCommit,
        }
    }
}

/// How far a transaction sees the changes of others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    /// Every statement sees what was committed when it started.
    ReadCommitted,
    /// Snapshot isolation: the whole transaction sees what was committed at its first read.
    ///
    /// No update is lost: a row changed after the snapshot gives [`crate::Error::WriteConflict`].
    #[default]
    RepeatableRead,
    /// As if transactions ran one after the other, in the order of their commits.
    ///
    /// Reads see the newest rows, and lock them and the ranges of keys that they have searched.
    Serializable,
}

/// How a table handles two transactions that want the same row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Locking {
    /// The second waits for the first. The default.
    #[default]
    Pessimistic,
    /// The second fails at once, with [`crate::Error::RowChanged`].
    ///
    /// Suits a table in which conflicts are rare and a caller can decide what to do after one. Transactions never wait
    /// in it, so it never has a part in a deadlock.
    Optimistic,
}

/// Options, besides the schema, that create a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableOptions {
    /// See [`Locking`].
    pub locking: Locking,
    /// The first automatic value. Default 1.
    pub auto_increment: u64,
    /// Whether the table belongs to one session.
    ///
    /// A transaction then reads it whenever it was created or truncated; otherwise a snapshot older than the table
    /// gives [`crate::Error::TableNewerThanSnapshot`]. Not kept over a restart. The log has none of the table's rows:
    /// after a crash it has those of the last checkpoint, if any.
    pub of_one_session: bool,
}

impl Default for TableOptions {
    fn default() -> Self {
        TableOptions {
            locking: Locking::default(),
            auto_increment: 1,
            of_one_session: false,
        }
    }
}

/// The most that [`Options::scan_threads`] can be.
pub const MOST_SCAN_THREADS: usize = 64;

/// The number of processors that the process may use, at most [`MOST_SCAN_THREADS`].
fn processors() -> usize {
    let count = crate::sync::thread::available_parallelism().map_or(1, |count| count.get());
    count.min(MOST_SCAN_THREADS)
}

/// How a database is opened.
///
/// `Options::default()` suits a test; a server sets at least [`Options::pool_bytes`].
#[derive(Clone)]
pub struct Options {
    /// Bytes of the buffer pool: the one memory budget. At least 1 MiB. Default 64 MiB.
    pub pool_bytes: usize,
    /// Whether pages are read past the system's page cache, if the file system allows it.
    ///
    /// No page is then in memory twice, and [`Options::pool_bytes`] is all the memory of pages. Default false.
    pub direct_io: bool,
    /// Whether a page whose read fails twice in a row counts as damaged.
    ///
    /// As with damaged bytes, an opening that needs the page then quarantines its table, for good, instead of failing.
    /// For a device with bad sectors, and only after the operator has made sure of that cause: a device that is away
    /// for a minute fails in the same way. Default false.
    pub unreadable_is_damage: bool,
    /// When commits are durable. Default [`Durability::SyncAtCommit`].
    pub durability: Durability,
    /// How long a row operation waits for another transaction's lock. Default 50 s.
    pub lock_wait_timeout: Duration,
    /// Bytes of log after which a checkpoint starts. At least 1 MiB. Default 512 MiB.
    pub log_bytes: u64,
    /// How long an opening after a crash may take.
    ///
    /// From 1 s to 3600 s, or zero: no such limit. Default 60 s.
    ///
    /// A checkpoint starts when the log since the last one would take longer to recover, as computed from earlier
    /// recoveries. The limit for the log is lower while a transaction runs for long. Such a transaction may itself
    /// exceed the target: [`crate::Status::recovery_time`] tells. With zero, only [`Options::log_bytes`] limits the
    /// time.
    pub recovery_target: Duration,
    /// How far back the log is kept for a running transaction, in bytes.
    ///
    /// At least 1 MiB. Default 64 GiB.
    ///
    /// If a checkpoint finds more, it stops keeping the log for the transaction, which can then only be rolled back
    /// ([`crate::Error::LogLimit`]). The log is always kept for prepared transactions.
    pub longest_kept_log: u64,
    /// The longest time between checkpoints while there are changes.
    ///
    /// Default 5 minutes.
    pub checkpoint_interval: Duration,
    /// Bytes of a log segment, when the database is created: a multiple of 4096, at least 16384.
    /// Default: what suits [`Options::log_bytes`].
    pub log_segment_bytes: Option<u64>,
    /// Whether the database has threads of its own: they take checkpoints, purge, keep frames free, and sync the log.
    ///
    /// Default true.
    ///
    /// Without them the engine works only within the program's calls, so that a test can repeat a run. The program then
    /// calls [`crate::Database::checkpoint`] and [`crate::Database::purge`] itself.
    pub background: bool,
    /// The most threads of one [`crate::Transaction::aggregate`], its caller included, if many leaves must be read.
    ///
    /// From 1, which is the caller alone, to [`MOST_SCAN_THREADS`]. All scans at once have no more helpers than one may
    /// have. Default: one for each processor.
    pub scan_threads: usize,
    /// The collations of the program, for columns whose [`crate::Column::collation`] is not 0.
    pub collations: Option<Arc<dyn Collations>>,
    /// The program's information about its sessions; see [`crate::Transaction::set_session`].
    pub sessions: Option<Arc<dyn Sessions>>,
    /// Whether a directory without a database becomes a new one. Default true.
    pub create: bool,
    /// The prefix of the names of tables that an opening drops: those that end with the process.
    ///
    /// Must not be empty, since that is a prefix of all names. Default `None`.
    pub drop_on_open: Option<String>,
    /// The rule of isolation that is left out; `None`: the one that the environment names.
    #[cfg(feature = "broken")]
    pub broken: Option<crate::IsolationFault>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            pool_bytes: 64 << 20,
            direct_io: false,
            unreadable_is_damage: false,
            durability: Durability::default(),
            lock_wait_timeout: Duration::from_secs(50),
            log_bytes: 512 << 20,
            recovery_target: Duration::from_secs(60),
            longest_kept_log: 64 << 30,
            checkpoint_interval: Duration::from_secs(300),
            log_segment_bytes: None,
            background: true,
            scan_threads: processors(),
            collations: None,
            sessions: None,
            create: true,
            drop_on_open: None,
            #[cfg(feature = "broken")]
            broken: None,
        }
    }
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("pool_bytes", &self.pool_bytes)
            .field("direct_io", &self.direct_io)
            .field("unreadable_is_damage", &self.unreadable_is_damage)
            .field("durability", &self.durability)
            .field("lock_wait_timeout", &self.lock_wait_timeout)
            .field("log_bytes", &self.log_bytes)
            .field("recovery_target", &self.recovery_target)
            .field("longest_kept_log", &self.longest_kept_log)
            .field("checkpoint_interval", &self.checkpoint_interval)
            .field("log_segment_bytes", &self.log_segment_bytes)
            .field("background", &self.background)
            .field("scan_threads", &self.scan_threads)
            .field("collations", &self.collations.is_some())
            .field("sessions", &self.sessions.is_some())
            .field("create", &self.create)
            .field("drop_on_open", &self.drop_on_open)
            .finish()
    }
}
