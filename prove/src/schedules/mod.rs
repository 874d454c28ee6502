//! Schedules of the whole engine on a simulated disk: sessions, purge, pruning, checkpoints, eviction, read-ahead,
//! group commit, crashes and recovery.
//!
//! A seed decides the order of the threads. The same seed with the same knobs repeats the same schedule.
//!
//! | file | holds |
//! |---|---|
//! | `plan.rs` | the plan that a seed draws |
//! | `end.rs` | the reasons for which a transaction ends, and whether something provoked them |
//! | `session.rs` | a session, and the model of what it must see |
//! | `changes.rs`, `queries.rs` | its statements |
//! | `snapshots.rs` | the rows of others that a session sees |
//! | `tables.rs` | the tables of the database |
//! | `model/reading.rs`, `model/ledger.rs` | rows as they are read; the commits of each session |
//! | `model/whole.rs` | the check of one commit of each session over all tables |
//! | `model/now.rs` | the state of a session that others may know |
//! | `model/links.rs` | shared rows, which all sessions change |
//! | `passing.rs` | the passing table, which is created and dropped |
//! | `disk.rs` | calls that fail, and the check of the disk's contents |
//! | `power.rs` | power loss, and what must be found after it |
//! | `play.rs` | one schedule, and the checks at its end |
//! | `varied/` | sessions in tables of other kinds |
//! | `work.rs` | many schedules, in processes with different knobs |

mod changes;
mod disk;
mod end;
pub mod model;
mod passing;
pub mod plan;
pub mod play;
pub mod power;
mod queries;
pub mod session;
mod snapshots;
pub mod tables;
pub mod varied;
pub mod work;
