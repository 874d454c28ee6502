//! Schedules of the whole engine: sessions, purge, pruning, checkpoints, eviction, reading ahead, commits in groups,
//! crashes and recovery, on a simulated disk, in an order of threads that a seed decides. The same seed, with the
//! same knobs, does the same again.
//!
//! | file | holds |
//! |---|---|
//! | `plan.rs` | what a seed makes |
//! | `end.rs` | why a transaction ends, and what can have made it so |
//! | `session.rs` | a session, and the model of what it must see |
//! | `changes.rs`, `queries.rs` | its statements |
//! | `tables.rs` | what is in the database |
//! | `model/reading.rs`, `model/ledger.rs` | rows as they are read; what was committed |
//! | `model/snapshots.rs` | what a session sees of others' rows |
//! | `model/whole.rs` | what one commit of each session explains, over all tables |
//! | `model/now.rs` | what a session is at, for the others |
//! | `model/links.rs` | rows that all sessions change |
//! | `passing.rs` | a table that comes and goes |
//! | `disk.rs` | calls that fail, and the check of what is on the disk |
//! | `power.rs` | power that is lost, and what must be found then |
//! | `play.rs` | one schedule, and what must hold at its end |
//! | `varied/` | sessions in tables of other kinds |
//! | `work.rs` | many of them, in processes with different knobs |

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
pub mod tables;
pub mod varied;
pub mod work;
