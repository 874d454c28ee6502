//! The measuring suite behind `peregrine bench`: a private server, workloads with their right answers, a load
//! generator, results, and the report.
//!
//! A module calls only modules further down this list: [`report`] → [`histories`], [`bank`], [`statements`],
//! [`changes`], [`pushdown`], [`answers`], [`stress`], [`corruption`], [`fuzz`], [`full_disk`], [`embedded`],
//! [`cross_check`] and [`simulated`] → [`behaviour`] and [`runner`] and [`crash`] → [`results`] → [`workload`] and
//! [`stores`] → [`normal`] → [`server`] and [`engines`] → [`error`], [`errors_told`] and [`dice`].
// Only stores/lmdb.rs may contain unsafe code: opening LMDB's memory map is an unsafe call.
#![deny(unsafe_code)]

pub mod answers;
pub mod arithmetic;
pub mod bank;
pub mod behaviour;
pub mod changes;
pub mod corruption;
pub mod crash;
pub mod cross_check;
pub mod dice;
pub mod differential;
pub mod embedded;
pub mod engines;
pub mod error;
pub mod errors_told;
pub mod full_disk;
pub mod fuzz;
pub mod histories;
pub mod normal;
pub mod pushdown;
pub mod report;
pub mod results;
pub mod runner;
#[cfg(feature = "shaken")]
pub mod schedules;
pub mod server;
pub mod simulated;
pub mod statements;
pub mod stores;
pub mod stress;
pub mod workload;
