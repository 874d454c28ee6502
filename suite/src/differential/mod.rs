//! Random tables and random statements, the same on `InnoDB` and on Peregrine: after each statement the same rows, the
//! same error, as many changed rows, the same warnings. Statements go as text or by the binary protocol; in some scripts the
//! server is killed or stopped, and started again.
//!
//! [`crate::changes`] has tables that somebody chose; here every script draws its own. A script that shows a difference
//! is made short.
//!
//! | file | holds |
//! |---|---|
//! | `values.rs` | kinds of columns, and constants of each |
//! | `schema.rs` | random tables: keys, partitions, versions, periods, generated columns, triggers |
//! | `statements.rs` | random statements on them, and those that belong together |
//! | `changes.rs` | of these, changes of rows |
//! | `units.rs` | of these, transactions of other levels and by XA, and temporary tables |
//! | `play.rs` | running a script on both engines, and comparing |
//! | `looks.rs` | comparing the tables, by themselves and through each index |
//! | `shrink.rs` | a shorter script with a difference |
//! | `run.rs` | many scripts, and what came of them |

mod changes;
mod looks;
mod play;
mod run;
mod schema;
mod shrink;
mod statements;
mod units;
mod values;

pub use run::{run, Outcome, Request};

/// Stands in a statement for the engine's name.
const ENGINE: &str = "@ENGINE@";
/// Stands before a statement that goes by the binary protocol.
const BINARY: &str = "/* binary */ ";
/// Stands in a script where the server is killed, and started again.
const KILL: &str = "-- the server is killed, and started again";
/// Stands in a script where the server is stopped in order, and started again.
const STOP: &str = "-- the server is stopped, and started again";

/// A statement without how it is sent.
fn bare(sql: &str) -> &str {
    sql.strip_prefix(BINARY).unwrap_or(sql)
}
