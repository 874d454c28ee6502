//! Sessions in tables of their own, in addition to those of `session.rs`.
//!
//! They have NULL in columns and in a unique index, composite and descending keys, and prefixes of values. They also
//! have automatic values that several sessions reserve, and tables of one session. They read by cursors that outlive
//! statements and savepoints, by semi-consistent reads, and in the library's other ways.
//!
//! | file | holds |
//! |---|---|
//! | `rows.rs` | the table and its rows |
//! | `reading.rs` | all rows, read through an index |
//! | `session.rs` | a session, its transactions and their ends |
//! | `changes.rs` | its changes of rows, and its other changes |
//! | `statements.rs` | its reads |
//! | `counted.rs` | the table of automatic values |
//! | `found.rs` | the checks at the end and after a crash |

mod changes;
pub mod counted;
pub mod found;
pub mod reading;
pub mod rows;
pub mod session;
mod statements;
