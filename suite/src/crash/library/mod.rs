//! The same proof for the library: a child process commits transactions and says so on a pipe; it is
//! killed, and what the next opening finds must be every acknowledged commit and no half of any
//! other. The same directory goes through all rounds.
//!
//! What the child says is written before each commit and after it, each line with one write: what
//! was written before the kill stays in the pipe.

pub mod rounds;
pub mod rows;
pub mod writer;

pub use rounds::{run, Outcome, Request};
pub use writer::write_until_killed;
