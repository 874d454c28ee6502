//! The command: an action of the library for each action of the command line.

mod arguments;
mod behaviour;
mod check_workload;
mod cross_check;
mod embedded;
mod null;
mod report;
mod run;
mod stress;
mod thresholds;

use std::process::ExitCode;

use peregrine_harness::error::Result;

pub use self::arguments::{Action, Arguments};

/// Runs the action.
///
/// # Errors
/// Those of the action; the caller prints them.
pub fn act(action: &Action) -> Result<ExitCode> {
    match action {
        Action::Run(arguments) => run::run(arguments),
        Action::CheckWorkload(files) => check_workload::run(files),
        Action::Report(arguments) => report::run(arguments),
        Action::Thresholds(arguments) => thresholds::run(arguments),
        Action::Null(arguments) => null::run(arguments),
        Action::Sysbench(arguments) => cross_check::sysbench(arguments),
        Action::GoTpc(arguments) => cross_check::go_tpc(arguments),
        Action::Behaviour(arguments) => behaviour::run(arguments),
        Action::Embedded(arguments) => embedded::run(arguments),
        Action::Contention(arguments) => stress::sessions::contention(arguments),
        Action::LargeTransaction(arguments) => stress::sessions::large_transaction(arguments),
        Action::HeldSnapshot(arguments) => stress::sessions::held_snapshot(arguments),
        Action::BatchedJoin(arguments) => stress::batched_join::run(arguments),
        Action::LockedRows(arguments) => stress::locked_rows::run(arguments),
        Action::ManyTables(arguments) => stress::many_tables::run(arguments),
        Action::Memory(arguments) => stress::memory::run(arguments),
        Action::LargerThanMemory(arguments) => stress::larger_than_memory::run(arguments),
        Action::CheckpointStalls(arguments) => stress::checkpoints::stalls(arguments),
        Action::RecoveryTime(arguments) => stress::checkpoints::recovery_time(arguments),
        Action::ScanThreads(arguments) => stress::scan_threads::run(arguments),
    }
}
