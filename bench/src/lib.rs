//! The measurements behind `peregrine bench`: workloads with their right answers, a load generator, results, and the
//! report.
//!
//! A module calls only modules further down this list: [`report`], [`stress`], [`cross_check`] and [`embedded`] →
//! [`behaviour`] → [`runner`] → [`results`] → [`workload`] and [`stores`] → [`normal`].
// Only stores/lmdb.rs may contain unsafe code: opening LMDB's memory map is an unsafe call.
#![deny(unsafe_code)]

pub mod behaviour;
pub mod cross_check;
pub mod embedded;
pub mod normal;
pub mod report;
pub mod results;
pub mod runner;
pub mod stores;
pub mod stress;
pub mod workload;

#[cfg(test)]
mod fake;
