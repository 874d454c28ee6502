//! Schedules of the whole engine: sessions, purge, pruning, checkpoints, eviction, reading ahead, commits in groups,
//! crashes and recovery, on a simulated disk, in an order of threads that a seed decides. The same seed, with the
//! same knobs, does the same again.
//!
//! | file | holds |
//! |---|---|
//! | `plan.rs` | what a seed makes |
//! | `session.rs` | a session, and the model of what it must see |
//! | `changes.rs`, `queries.rs` | its statements |
//! | `tables.rs` | what is in the database |
//! | `reading.rs`, `ledger.rs` | rows as they are read; what was committed |
//! | `links.rs` | rows that all sessions change |
//! | `disk.rs` | calls that fail, and the check of what is on the disk |
//! | `power.rs` | power that is lost, and what must be found then |
//! | `play.rs` | one schedule, and what must hold at its end |
//! | `varied/` | sessions in tables of other kinds |
//! | `work.rs` | many of them, in processes with different knobs |

mod changes;
mod disk;
pub mod ledger;
pub mod links;
pub mod plan;
pub mod play;
pub mod power;
mod queries;
pub mod reading;
pub mod session;
pub mod tables;
pub mod varied;
pub mod work;
