//! A request to run statements.

use std::time::Duration;

use peregrine_harness::engines::Engine;

/// A request to run statements.
#[derive(Debug, Clone, Copy)]
pub struct Request {
    /// The total number of statements.
    pub statements: u64,
    /// No life begins after this time.
    pub duration: Duration,
    /// The number of statements in a server's life.
    pub statements_a_life: u64,
    /// The number of sessions; every other one is a judge.
    pub sessions: u32,
    /// The engine of all tables.
    pub engine: Engine,
    /// The seed of the first life; each next life has the next seed.
    pub seed: u64,
}
