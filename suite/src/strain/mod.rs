//! Servers under strain: many sessions at one row, a ring of sessions that wait for each other, a
//! transaction larger than the cache, and a snapshot held while others write.

pub mod held_snapshot;
pub mod hot_row;
pub mod large_transaction;
pub mod ring;
pub mod size;
