//! The measuring suite behind `peregrine bench`: a private server, the workload with its right
//! answers, a closed-loop load generator, results, and the report.
//!
//! Calls go down this list only: [`report`] → [`histories`], [`bank`], [`strain`], [`corruption`], [`fuzz`]
//! and [`simulated`] → [`behaviour`] and [`runner`] and [`crash`] → [`results`] → [`normal`] → [`server`] and [`target`] → [`error`].
#![forbid(unsafe_code)]

pub mod arithmetic;
pub mod bank;
pub mod behaviour;
pub mod corruption;
pub mod crash;
pub mod error;
pub mod fuzz;
pub mod histories;
pub mod normal;
pub mod report;
pub mod results;
pub mod runner;
pub mod server;
pub mod simulated;
pub mod strain;
pub mod target;
