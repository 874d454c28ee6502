//! Generated SELECTs, each asked of `InnoDB`, of Peregrine with statements run inside the engine, and of
//! Peregrine with the server running them: the three answers must be the same.

pub(crate) mod answer;
mod compare;
pub(crate) mod joins;
pub(crate) mod queries;
pub(crate) mod tables;

pub use compare::{run, Outcome, Request};
