//! Engines under stress:
//!
//! - many sessions at one row, and a ring of sessions that wait for each other
//! - a transaction larger than the cache, and reads of data larger than the cache
//! - a snapshot held while others write
//! - checkpoints and kills under full write load
//! - a mixed load within a hard memory limit
//! - very many tables, and very many locked rows
//! - a scan by several threads, and a join through a secondary key

pub mod batched_join;
pub mod checkpoint_stalls;
pub mod held_snapshot;
pub mod hot_row;
pub mod large_transaction;
pub mod larger_than_memory;
pub mod load;
pub mod locked_rows;
pub mod many_tables;
pub mod memory;
pub mod recovery_time;
mod refusal;
pub mod ring;
pub mod scan_threads;
pub mod size;
