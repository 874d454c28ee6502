//! Random statements of several sessions on one server, with plans that the server itself would not choose.
//!
//! Writers change all tables. Judges need no second engine for the right answer: in one snapshot they ask each query
//! several times, each time by another plan, and must get the same answer. If an answer differs, a judge asks InnoDB
//! with the same rows, because the server has faults of its own. A judge's snapshot must stay the same until its end.
//! At the end of a server's life, all its tables are checked. The options of the servers are random, too.
//!
//! | file | holds |
//! |---|---|
//! | `request.rs` | the number of statements, and the seed |
//! | `life.rs` | one server's life: its options, its sessions, its end |
//! | `shared.rs` | the state that the sessions of a life share |
//! | `indexes.rs` | the contents of a table's indexes, compared with its rows |
//! | `run.rs` | lives, one after the other, and their outcome |
//! | `judge.rs` | a judge, which asks the same query by many plans |
//! | `plan.rs` | a plan: settings of a session, and indexes that are forced or ignored |
//! | `query.rs` | queries whose plans differ most: index merges, loose scans, semi-joins, subqueries |
//! | `second_opinion.rs` | copies of the tables with InnoDB, for queries whose answers differ |
//! | `writer.rs` | a writer, which changes tables |

pub(crate) mod indexes;
mod judge;
mod life;
mod plan;
mod query;
mod request;
mod run;
mod second_opinion;
mod shared;
mod writer;

pub use life::Life;
pub use request::Request;
pub use run::{run, Outcome};

/// The schema of all tables.
const SCHEMA: &str = "statements";
