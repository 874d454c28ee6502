//! `peregrine bench`: measurements and proofs.

mod durability;
mod host;
mod isolation;
mod measures;
mod right_answers;

use std::process::ExitCode;

use peregrine_suite::error::Result;

use crate::arguments::BenchAction;

/// Runs the action.
///
/// # Errors
/// The suite's errors; the caller prints them.
pub fn run(action: &BenchAction) -> Result<ExitCode> {
    match action {
        BenchAction::Run(arguments) => measures::run::run(arguments),
        BenchAction::Check(files) => measures::check::run(files),
        BenchAction::Report(arguments) => measures::report::run(arguments),
        BenchAction::Thresholds(arguments) => measures::thresholds::run(arguments),
        BenchAction::Null(arguments) => measures::null::run(arguments),
        BenchAction::Sysbench(arguments) => right_answers::cross_check::sysbench(arguments),
        BenchAction::GoTpc(arguments) => right_answers::cross_check::go_tpc(arguments),
        BenchAction::Behaviour(arguments) => isolation::behaviour::run(arguments),
        BenchAction::Histories(arguments) => isolation::histories::run(arguments),
        BenchAction::Bank(arguments) => isolation::bank::run(arguments),
        BenchAction::Embedded(arguments) => measures::embedded::run(arguments),
        BenchAction::Pushdown(arguments) => right_answers::pushdown::run(arguments),
        BenchAction::Changes(arguments) => right_answers::changes::run(arguments),
        BenchAction::Differential(arguments) => right_answers::differential::run(arguments),
        BenchAction::Statements(arguments) => right_answers::statements::run(arguments),
        BenchAction::Answers(arguments) => right_answers::answers::run(arguments),
        BenchAction::Contention(arguments) => measures::stress::contention(arguments),
        BenchAction::LargeTransaction(arguments) => measures::stress::large_transaction(arguments),
        BenchAction::HeldSnapshot(arguments) => measures::stress::held_snapshot(arguments),
        BenchAction::BatchedJoin(arguments) => measures::batched_join::run(arguments),
        BenchAction::LockedRows(arguments) => measures::locked_rows::run(arguments),
        BenchAction::ManyTables(arguments) => measures::many_tables::run(arguments),
        BenchAction::Memory(arguments) => measures::memory::run(arguments),
        BenchAction::LargerThanMemory(arguments) => measures::larger_than_memory::run(arguments),
        BenchAction::CheckpointStalls(arguments) => measures::checkpoints::stalls(arguments),
        BenchAction::RecoveryTime(arguments) => measures::checkpoints::recovery_time(arguments),
        BenchAction::ScanThreads(arguments) => measures::scan_threads::run(arguments),
        BenchAction::Crash(arguments) => durability::crash::run(arguments),
        BenchAction::CrashWriter(arguments) => durability::crash::write(arguments),
        #[cfg(feature = "shaken")]
        BenchAction::Schedules(arguments) => isolation::schedules::run(arguments),
        #[cfg(feature = "shaken")]
        BenchAction::SchedulesHere(arguments) => Ok(isolation::schedules::run_here(arguments)),
        BenchAction::Fuzz(arguments) => durability::fuzz::run(arguments),
        BenchAction::BitFlips(arguments) => durability::corruption::run(arguments),
        BenchAction::PowerLoss(arguments) => durability::simulated::power_loss(arguments),
        BenchAction::IoErrors(arguments) => durability::simulated::io_errors(arguments),
        BenchAction::FullDisk(arguments) => durability::full_disk::run(arguments),
        BenchAction::DiskFaults(arguments) => durability::simulated::damage(arguments),
    }
}
