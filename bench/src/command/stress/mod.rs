//! Measurements of one question each: load, memory, locks, checkpoints, threads.

pub(super) mod batched_join;
pub(super) mod checkpoints;
pub(super) mod larger_than_memory;
pub(super) mod locked_rows;
pub(super) mod many_tables;
pub(super) mod memory;
pub(super) mod scan_threads;
pub(super) mod sessions;
