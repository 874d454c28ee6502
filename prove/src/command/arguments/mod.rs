//! The command line: the actions and their options.
//!
//! | file | holds |
//! |---|---|
//! | `durability.rs` | kills, loss of power, faults, damage, hostile input |
//! | `transactions.rs` | isolation of sessions, and right answers of statements |
//! | `schedules.rs` | orders of threads, in shaken builds |

mod durability;
#[cfg(feature = "shaken")]
mod schedules;
mod transactions;

use clap::{Parser, Subcommand};

pub use self::durability::{
    CorruptionArguments, CrashArguments, CrashTarget, CrashWriterArguments, DamageArguments,
    FullDiskArguments, FullDiskKind, FuzzArguments, IoErrorsArguments, PowerLossArguments,
};
#[cfg(feature = "shaken")]
pub use self::schedules::{SchedulesArguments, SchedulesHereArguments};
pub use self::transactions::{
    AnswersArguments, BankArguments, ChangesArguments, DifferentialArguments, HistoriesArguments,
    PushdownArguments, StatementsArguments,
};

/// Proofs: durability, isolation and right answers, each by a command that prints one line.
#[derive(Debug, Parser)]
#[command(name = "peregrine-prove", bin_name = "peregrine prove", version)]
pub struct Arguments {
    /// The action.
    #[command(subcommand)]
    pub action: Action,
}

/// The proofs.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Kills (kill -9) the server, or a process with the library, repeatedly while threads write; after each restart
    /// every acknowledged commit must be there, and no half of a transaction.
    Crash(Box<CrashArguments>),
    /// The process that `prove crash --target library` kills.
    #[command(hide = true)]
    CrashWriter(CrashWriterArguments),
    /// Loses power after every I/O of many small workloads on a simulated disk, in six ways, and again during recovery:
    /// every acknowledged change must be found, and nothing else.
    PowerLoss(PowerLossArguments),
    /// Runs schedules: sessions and the engine's own threads on a simulated disk, with random knobs, in an order that a
    /// seed decides. Only in builds for tests (feature `shaken`). One line; exit status 1 when one failed.
    #[cfg(feature = "shaken")]
    Schedules(SchedulesArguments),
    /// A process of `prove schedules`.
    #[cfg(feature = "shaken")]
    #[command(hide = true)]
    SchedulesHere(SchedulesHereArguments),
    /// Gives hostile input to every decoder of the formats, and whole damaged files to the engine: errors are allowed,
    /// panics and endless loops are not.
    Fuzz(FuzzArguments),
    /// Damages a database in memory: every bit of sampled parts of each kind, and stale and misplaced pages and log
    /// blocks. Each damage must be found, and must affect no more than necessary.
    BitFlips(CorruptionArguments),
    /// Makes every call to the (simulated) operating system fail, once and permanently, and the disk full at every
    /// point: statements get errors, the process does not abort, and no acknowledged change is lost.
    IoErrors(IoErrorsArguments),
    /// Fills disks with log, up to a random level: the engine refuses statements, and must resume by itself within ten
    /// seconds, with no acknowledged change lost. One line; exit status 1 when it did not, 69 where no file system can
    /// be mounted.
    FullDisk(FullDiskArguments),
    /// Flips bits of a simulated disk, and returns stale and misplaced writes: the engine must detect each, or it must
    /// have no effect.
    DiskFaults(DamageArguments),
    /// Runs random concurrent transactions on few hot keys and checks that their reads and writes are allowed at their
    /// isolation level. One line per level; exit status 1 when they are not.
    Histories(HistoriesArguments),
    /// Moves money between accounts in two schemas while auditors sum all accounts at REPEATABLE READ: every sum must
    /// be right, also when the server is killed repeatedly.
    Bank(BankArguments),
    /// Runs generated SELECTs on InnoDB, and on Peregrine run by the engine and by the server: the answers must be the
    /// same. One line; exit status 1 when some differ.
    Pushdown(PushdownArguments),
    /// Runs random changes of one session on `InnoDB` and on Peregrine: errors, row counts, and the rows by every index
    /// must be the same. One line; exit status 1 when something differs.
    Changes(ChangesArguments),
    /// Runs the same random statements on random tables on `InnoDB` and on Peregrine: after each statement rows, error,
    /// warnings and the number of changed rows must be the same. Shortens each script that shows a difference. One
    /// line; exit status 1 when something differs.
    Differential(DifferentialArguments),
    /// Runs random statements of several sessions on servers with random settings, one after the other: each query has
    /// one answer in a snapshot, whatever its plan, and in the end all tables are sound. One line; exit status 1 when
    /// something is wrong.
    Statements(StatementsArguments),
    /// Runs scripts of statements that Peregrine once answered wrongly, or lost rows by, on InnoDB and on Peregrine:
    /// the answers must be the same. A line per script; exit status 1 when some differ.
    Answers(AnswersArguments),
}
