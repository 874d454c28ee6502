//! A transaction over tables: begin, savepoints, two-phase commit, guards, and the state after an error or a panic.
//!
//! - `transaction`: the type, with its begin, savepoints, commit and rollback, and the tables that it uses;
//! - `prepared`: the two-phase commit; `restore`: repeats a prepared transaction's changes on recovery;
//! - `guard`: checks of rules over many rows; `held_guards`: the guards that a transaction holds;
//! - `deferred_entries`: memory for the index entries that a bulk insert defers; `scratch`: buffers of row operations;
//! - `leave`: a table that the transaction itself drops; `unwound`: row operations that end in a panic.
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
