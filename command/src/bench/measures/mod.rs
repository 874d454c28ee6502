//! Measurements, and the check of their workloads.

pub(super) mod batched_join;
pub(super) mod check;
pub(super) mod checkpoints;
pub(super) mod embedded;
pub(super) mod larger_than_memory;
pub(super) mod locked_rows;
pub(super) mod many_tables;
pub(super) mod memory;
pub(super) mod null;
pub(super) mod report;
pub(super) mod run;
pub(super) mod scan_threads;
pub(super) mod stress;
pub(super) mod thresholds;
