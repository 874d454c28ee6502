//! The behaviour of engines when sessions conflict, measured on a server and shown side by side.
//!
//! The module plays the published anomaly scripts at each isolation level, the deadlock of two sessions, and the update
//! of one row by two sessions.
//!
//! The scripts are those of Hermitage by Martin Kleppmann. Hermitage tests for the anomalies that two papers define:
//! Adya, "Weak Consistency", MIT 1999, and Bailis et al., "Highly Available Transactions", VLDB 2013.

pub mod anomalies;
pub mod conflict;
pub mod deadlock;
pub mod findings;
pub mod matrix;
pub mod player;
pub mod probe;
pub mod script;
pub mod sleeping;

pub use findings::Findings;
pub use probe::{run, Request};
