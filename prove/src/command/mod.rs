//! The command: an action of the library for each action of the command line.

mod arguments;
mod durability;
mod isolation;
mod right_answers;

use std::process::ExitCode;

use peregrine_harness::error::Result;

pub use self::arguments::{Action, Arguments};

/// Runs the action.
///
/// # Errors
/// Those of the action; the caller prints them.
pub fn run(action: &Action) -> Result<ExitCode> {
    match action {
        Action::Histories(arguments) => isolation::histories::run(arguments),
        Action::Bank(arguments) => isolation::bank::run(arguments),
        Action::Pushdown(arguments) => right_answers::pushdown::run(arguments),
        Action::Changes(arguments) => right_answers::changes::run(arguments),
        Action::Differential(arguments) => right_answers::differential::run(arguments),
        Action::Statements(arguments) => right_answers::statements::run(arguments),
        Action::Answers(arguments) => right_answers::answers::run(arguments),
        Action::Crash(arguments) => durability::crash::run(arguments),
        Action::CrashWriter(arguments) => durability::crash::write(arguments),
        #[cfg(feature = "shaken")]
        Action::Schedules(arguments) => isolation::schedules::run(arguments),
        #[cfg(feature = "shaken")]
        Action::SchedulesHere(arguments) => Ok(isolation::schedules::run_here(arguments)),
        Action::Fuzz(arguments) => durability::fuzz::run(arguments),
        Action::BitFlips(arguments) => durability::corruption::run(arguments),
        Action::PowerLoss(arguments) => durability::simulated::power_loss(arguments),
        Action::IoErrors(arguments) => durability::simulated::io_errors(arguments),
        Action::FullDisk(arguments) => durability::full_disk::run(arguments),
        Action::DiskFaults(arguments) => durability::simulated::damage(arguments),
    }
}
