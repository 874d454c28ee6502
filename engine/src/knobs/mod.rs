//! Knobs: the tuning constants of the engine, all in one table.
//!
//! A knob changes when or how something is done, and never a format or an answer. In ordinary builds each is a
//! constant. In a build with the feature `shaken` each is drawn from its range, once in a process, from a seed:
//! branches that production's numbers reach once in a million rows are taken all the time then (FoundationDB,
//! "buggification" of knobs; SQLite, tests with extreme settings).
//!
//! The seed is the number in `PEREGRINE_SHAKEN`; without one a fresh seed is drawn. It is printed, so that a failure
//! can be repeated. Behind it single knobs may be given: `PEREGRINE_SHAKEN=7,purge_step=1`.
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

/// Whether knobs are drawn at random: then a test can't count on what production's numbers make of something.
pub const SHAKEN: bool = cfg!(feature = "shaken");

/// What is known of a knob. Times are in microseconds.
#[cfg(any(test, feature = "shaken"))]
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "shaken", allow(dead_code))]
pub(crate) struct Knob {
    pub name: &'static str,
    pub unit: &'static str,
    pub default: u64,
    /// The range that is legal.
    pub least: u64,
    pub most: u64,
    pub why: &'static str,
}
