//! What engines do when sessions meet: the published anomaly scripts at each isolation level, the
//! deadlock of two sessions, and the update of one row by two sessions, played on a server and set
//! side by side.
//!
//! The scripts are those of Martin Kleppmann's Hermitage, a set of tests for the anomalies defined by
//! Adya ("Weak Consistency", MIT 1999) and Bailis et al. ("Highly Available Transactions", VLDB 2013).

pub mod anomalies;
pub mod conflict;
pub mod deadlock;
pub mod findings;
pub mod level;
pub mod matrix;
pub mod player;
pub mod probe;
pub mod script;
pub mod sleeping;

pub use findings::Findings;
pub use probe::{run, Request};
