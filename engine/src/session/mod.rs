//! A transaction over tables: begin, savepoints, two-phase commit, guards, and what an error or a panic leaves.
#![forbid(unsafe_code)]

pub(crate) mod deferred_entries;
mod guard;
mod held_guards;
mod leave;
mod prepared;
mod restore;
pub(crate) mod scratch;
pub(crate) mod transaction;
mod unwound;

pub use transaction::{KillHandle, Savepoint, Transaction};
