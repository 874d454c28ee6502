//! `peregrine bench`: measuring engines beside each other.

mod answers;
mod bank;
mod batched_join;
mod behaviour;
mod changes;
mod check;
mod checkpoints;
mod corruption;
mod crash;
mod cross_check;
mod differential;
mod embedded;
mod full_disk;
mod fuzz;
mod histories;
mod host;
mod larger_than_memory;
mod locked_rows;
mod many_tables;
mod memory;
mod null;
mod pushdown;
mod report;
mod run;
mod scan_threads;
#[cfg(feature = "shaken")]
mod schedules;
mod simulated;
mod statements;
mod stress;
mod thresholds;

use std::process::ExitCode;

use peregrine_suite::error::Result;

use crate::arguments::BenchAction;

/// Does what was asked for.
///
/// # Errors
/// What the suite says; the caller prints it.
pub fn run(action: &BenchAction) -> Result<ExitCode> {
    match action {
        BenchAction::Run(arguments) => run::run(arguments),
        BenchAction::Check(files) => check::run(files),
        BenchAction::Report(arguments) => report::run(arguments),
        BenchAction::Thresholds(arguments) => thresholds::run(arguments),
        BenchAction::Null(arguments) => null::run(arguments),
        BenchAction::Sysbench(arguments) => cross_check::sysbench(arguments),
        BenchAction::GoTpc(arguments) => cross_check::go_tpc(arguments),
        BenchAction::Behaviour(arguments) => behaviour::run(arguments),
        BenchAction::Histories(arguments) => histories::run(arguments),
        BenchAction::Bank(arguments) => bank::run(arguments),
        BenchAction::Embedded(arguments) => embedded::run(arguments),
        BenchAction::Pushdown(arguments) => pushdown::run(arguments),
        BenchAction::Changes(arguments) => changes::run(arguments),
        BenchAction::Differential(arguments) => differential::run(arguments),
        BenchAction::Statements(arguments) => statements::run(arguments),
        BenchAction::Answers(arguments) => answers::run(arguments),
        BenchAction::Contention(arguments) => stress::contention(arguments),
        BenchAction::LargeTransaction(arguments) => stress::large_transaction(arguments),
        BenchAction::HeldSnapshot(arguments) => stress::held_snapshot(arguments),
        BenchAction::BatchedJoin(arguments) => batched_join::run(arguments),
        BenchAction::LockedRows(arguments) => locked_rows::run(arguments),
        BenchAction::ManyTables(arguments) => many_tables::run(arguments),
        BenchAction::Memory(arguments) => memory::run(arguments),
        BenchAction::LargerThanMemory(arguments) => larger_than_memory::run(arguments),
        BenchAction::CheckpointStalls(arguments) => checkpoints::stalls(arguments),
        BenchAction::RecoveryTime(arguments) => checkpoints::recovery_time(arguments),
        BenchAction::ScanThreads(arguments) => scan_threads::run(arguments),
        BenchAction::Crash(arguments) => crash::run(arguments),
        BenchAction::CrashWriter(arguments) => crash::write(arguments),
        #[cfg(feature = "shaken")]
        BenchAction::Schedules(arguments) => schedules::run(arguments),
        #[cfg(feature = "shaken")]
        BenchAction::SchedulesHere(arguments) => Ok(schedules::run_here(arguments)),
        BenchAction::Fuzz(arguments) => fuzz::run(arguments),
        BenchAction::Corruption(arguments) => corruption::run(arguments),
        BenchAction::PowerLoss(arguments) => simulated::power_loss(arguments),
        BenchAction::IoErrors(arguments) => simulated::io_errors(arguments),
        BenchAction::FullDisk(arguments) => full_disk::run(arguments),
        BenchAction::Damage(arguments) => simulated::damage(arguments),
    }
}
