//! Proves isolation by random histories.
//!
//! Transactions that a seed determines run concurrently on few hot keys, through the library or through a server. The
//! driver records their operations and results. A checker searches the records for dependencies that the isolation
//! level forbids.
//!
//! The dependencies are those of Adya ("Weak Consistency", MIT 1999). Every version of a key has its own number, and
//! every write reads back the version that it replaced. The order of the versions is thus known and not guessed. The
//! levels allow:
//!
//! - READ COMMITTED: no cycle of write and read dependencies (G0, G1); every statement sees one consistent state.
//! - REPEATABLE READ, which is snapshot isolation: no cycle without two consecutive anti-dependencies (Cerone and
//!   Gotsman, "Analysing Snapshot Isolation", JACM 2018). This excludes lost updates and read skew.
//! - SERIALIZABLE: no cycle at all.
//!
//! At each level, no transaction reads an aborted or intermediate version. A statement (READ COMMITTED) or a
//! transaction (above it) reads nothing older than the versions committed before it began. After a crash, this means
//! that no acknowledged commit is lost.

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
