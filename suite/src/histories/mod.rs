//! Isolation proven by random histories: transactions that a seed makes up run concurrently on few hot
//! keys, through the library or through a server; what each of them saw and did is written down; and
//! a checker looks for dependencies that the isolation level forbids.
//!
//! The dependencies are those of Adya ("Weak Consistency", MIT 1999). Every version of a key is known
//! by a number of its own, and every write reads back which version it replaced, so that the order of
//! versions is known and not guessed. What is allowed:
//!
//! - READ COMMITTED: no cycle of write and read dependencies (G0, G1); every statement sees one
//!   consistent state.
//! - REPEATABLE READ, which is snapshot isolation: no cycle without two consecutive anti-dependencies
//!   (Cerone and Gotsman, "Analysing Snapshot Isolation", JACM 2018), so no lost update and no read
//!   skew.
//! - SERIALIZABLE: no cycle at all.
//!
//! At each level: nothing aborted or intermediate is read, and nothing older than what was committed
//! before the statement (READ COMMITTED) or the transaction began, which after a crash means that no
//! acknowledged commit is lost.

pub mod check;
pub mod driver;
pub mod generator;
pub mod history;
pub mod library;
pub mod outcome;
pub mod server;
pub mod target;

pub use driver::{run, Request};
pub use outcome::Outcome;
