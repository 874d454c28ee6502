//! `results.jsonl`: the results of a benchmark run.
//!
//! The runner appends each result as one line of JSON.
//!
//! The first line is the header; the `kind` of each other line says what it is. The runner writes a whole line and
//! flushes it. So an interrupted run loses at most the last line, which a reader skips.

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
