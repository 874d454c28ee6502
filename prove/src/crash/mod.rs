//! Proofs of durability by kills (`kill -9`).
//!
//! While many threads write, a server ([`rounds`]), or a process with the library ([`library`]), is killed again and
//! again. After each restart, the tables must hold every acknowledged commit and nothing of an uncommitted transaction.
//! A commit that was running at the kill must be there completely or not at all.

pub mod history;
pub mod library;
pub mod limit;
pub mod rounds;
pub mod verify;
pub mod writer;

pub use limit::Limit;
pub use rounds::{run, Outcome, Request};
