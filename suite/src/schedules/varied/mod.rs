//! Sessions beside those of `session.rs`, in tables of their own: NULL in columns and in a unique index, composite and
//! descending keys, prefixes of values, automatic values that several sessions reserve, tables of one session, cursors
//! that outlive statements and savepoints, semi-consistent reads, and the other ways in which a library's user reads.
//!
//! | file | holds |
//! |---|---|
//! | `rows.rs` | the table and its rows |
//! | `session.rs` | a session, its transactions and their ends |
//! | `changes.rs` | its changes of rows, and what else changes something |
//! | `statements.rs` | its reads |
//! | `counted.rs` | the table of automatic values |
//! | `found.rs` | what must be there in the end, and after a crash |

mod changes;
pub mod counted;
pub mod found;
pub mod rows;
pub mod session;
pub mod statements;

pub use changes::OF_ONE_SESSION;
