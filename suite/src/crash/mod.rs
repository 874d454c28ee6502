//! Durability proven by force: a server ([`rounds`]), or a process with the library ([`library`]), is
//! killed (`kill -9`) again and again while many threads write, and after each restart the tables must
//! hold every acknowledged commit, nothing of any transaction that was not committed, and of a commit
//! that was under way all or nothing.

pub mod history;
pub mod library;
pub mod limit;
pub mod rounds;
pub mod verify;
pub mod writer;

pub use limit::Limit;
pub use rounds::{run, Outcome, Request};
