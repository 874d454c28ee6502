//! Generated SELECTs, each asked of `InnoDB`, of Peregrine with statements run inside the engine, and of
//! Peregrine with the server running them: the three answers must be the same.

mod compare;
mod joins;
mod queries;
mod tables;

pub use compare::{run, Outcome, Request};
