//! Workloads: tables with generators for their rows, and the transactions that clients run on them.
//!
//! A workload is a TOML file (its format is in docs/workloads.md), shipped in [`builtin`] or the user's own.
//! [`Workload::read`] checks the file and resolves its names. A [`Client`] then draws parameters and runs the
//! transactions on a [`Session`](peregrine_harness::engines::Session) of any target.

mod beside;
pub mod builtin;
pub mod client;
pub mod counters;
pub mod data_file;
pub(crate) mod document;
pub mod list;
pub mod problem;
mod read;
pub mod step;
mod step_reader;
pub mod table;
pub mod transaction;
pub mod values;
mod writes;

pub use beside::Beside;
pub use client::Client;
pub use counters::Counters;
pub use problem::Problems;
pub use read::{check, Condition, Figure, Mode, Options, Workload, MIX, SECONDS};
pub use table::Table;
pub use transaction::Transaction;
