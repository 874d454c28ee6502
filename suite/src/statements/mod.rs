//! Random statements of several sessions on one server, with plans that the server would not choose by itself.
//!
//! Writers change all tables. Judges need no second engine to say what is right: they ask each query several times in
//! one snapshot, each time by another plan, and get one answer. Where it differs, InnoDB is asked with the same rows:
//! the server has faults of its own. A judge's snapshot stays the same to its end; at the
//! end of a server's life all of its tables are checked. What the servers are started with is random, too.
//!
//! | file | holds |
//! |---|---|
//! | `life.rs` | one server's life: how it is started, its sessions, its end |
//! | `indexes.rs` | what the indexes of a table have, beside its rows |
//! | `run.rs` | lives, one after the other, and what came of them |
//! | `judge.rs` | who asks the same by many plans |
//! | `plan.rs` | a plan: settings of a session, and indexes that are forced or ignored |
//! | `query.rs` | queries whose plans differ most: index merges, loose scans, semi-joins, subqueries |
//! | `second_opinion.rs` | copies of the tables with InnoDB, for queries whose answers differ |
//! | `writer.rs` | who changes tables |

pub(crate) mod indexes;
mod judge;
mod life;
mod plan;
mod query;
mod run;
mod second_opinion;
mod writer;

pub use life::Life;
pub use run::{run, Outcome, Request};
