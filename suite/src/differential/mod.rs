//! Random tables and random statements, the same on `InnoDB` and on Peregrine: after each statement the same rows, the
//! same error, as many changed rows, the same warnings.
//!
//! [`crate::changes`] has tables that somebody chose; here every script draws its own. A script that shows a difference
//! is made short.
//!
//! | file | holds |
//! |---|---|
//! | `values.rs` | kinds of columns, and constants of each |
//! | `schema.rs` | random tables: keys, partitions, versions, periods, generated columns, triggers |
//! | `statements.rs` | random statements on them |
//! | `play.rs` | running a script on both engines, and comparing |
//! | `shrink.rs` | a shorter script with a difference |
//! | `run.rs` | many scripts, and what came of them |

mod play;
mod run;
mod schema;
mod shrink;
mod statements;
mod values;

pub use run::{run, Outcome, Request};

/// Stands in a statement for the engine's name.
const ENGINE: &str = "@ENGINE@";
