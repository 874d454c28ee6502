//! Knobs: the tuning constants of the engine, all in one table.
//!
//! A knob changes when or how work is done, and never a format or an answer. In ordinary builds each is a constant. In
//! a build with the feature `shaken` each is drawn from its range, once in a process, from a seed: branches that
//! production's numbers reach once in a million rows are then taken all the time (FoundationDB, "buggification" of
//! knobs; SQLite, tests with extreme settings).
//!
//! The seed is the number in `PEREGRINE_SHAKEN`; without one a fresh seed is drawn. It is printed, so that a failure
//! can be repeated. Values of single knobs may follow: `PEREGRINE_SHAKEN=7,purge_step=1`.
//!
//! | file | holds |
//! |---|---|
//! | `table.rs` | the table: name, default, unit, range, why |
//! | `draw.rs` | values from a seed |
#![forbid(unsafe_code)]

#[cfg(any(test, feature = "shaken"))]
mod draw;
mod table;
#[cfg(test)]
mod tests;

pub use self::table::*;

/// Whether knobs are drawn at random: then a test must not rely on the results of production's numbers.
pub const SHAKEN: bool = cfg!(feature = "shaken");

/// A knob.
///
/// Times are in microseconds.
#[cfg(any(test, feature = "shaken"))]
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "shaken", allow(dead_code))]
pub(crate) struct Knob {
    pub name: &'static str,
    pub unit: &'static str,
    pub default: u64,
    /// The legal range.
    pub least: u64,
    pub most: u64,
    pub why: &'static str,
}
