//! Generated SELECTs.
//!
//! Each runs on `InnoDB`, on Peregrine with statements run inside the engine, and on Peregrine with the server running
//! them. The three answers must be the same.

pub(crate) mod answer;
mod compare;
pub(crate) mod joins;
pub(crate) mod queries;
pub(crate) mod tables;

pub use compare::{run, Outcome, Request};
