//! Tellers move money between accounts in two schemas, and auditors sum all of it in one REPEATABLE READ transaction.
//!
//! Each sum must be right, also while the server is killed again and again.

pub mod outcome;
pub mod run;
pub mod teller;

pub use outcome::Outcome;
pub use run::{run, Request};
