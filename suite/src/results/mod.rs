//! `results.jsonl`: what a run of the benchmark found, one line of JSON each, appended as it is
//! found.
//!
//! The first line is the header; the others say by `kind` what they are. A line is written whole and
//! flushed, so that an interrupted run loses at most the line being written, which a reader skips.

pub mod change;
pub mod comparison;
pub mod csv;
pub mod figure;
pub mod file;
pub mod loads;
pub mod record;
#[cfg(test)]
pub(crate) mod sample;
pub mod thresholds;
pub mod verdict;

pub use change::Changes;
pub use comparison::Comparison;
pub use file::Journal;
pub use record::{Finish, Header, Line, Load, Machine, Plan, PlanStep, Run};
pub use thresholds::Thresholds;
pub use verdict::Verdict;
