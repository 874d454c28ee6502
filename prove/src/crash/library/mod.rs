//! The same proof for the library.
//!
//! A child process commits transactions and reports them on a pipe. After a kill, the next opening must find every
//! acknowledged commit, and each other commit completely or not at all. All rounds use the same directory.
//!
//! The child reports each commit before and after it, each line with one write, so its reports survive the kill in the
//! pipe.

pub mod rounds;
pub mod rows;
pub mod writer;

pub use rounds::{run, Outcome, Request};
pub use writer::write_until_killed;
