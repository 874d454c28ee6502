//! Workloads: tables with generators for their rows, and the transactions that clients run on them.
//!
//! A workload is a TOML file (docs/workloads.md tells its form), one of those shipped in [`builtin`] or
//! anybody's own. [`Workload::read`] checks it and looks up its names; a [`Client`] then draws parameters
//! and runs its transactions on a [`Session`](crate::engines::Session), whatever is behind that.

mod beside;
pub mod builtin;
pub mod client;
pub mod counters;
pub(crate) mod document;
pub mod list;
pub mod problem;
mod read;
mod steps;
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
