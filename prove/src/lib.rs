//! The proofs behind `peregrine prove`: durability, isolation, right answers.
//!
//! A module calls only modules further down this list: [`changes`], [`differential`], [`fuzz`], [`answers`], [`bank`],
//! [`crash`], [`full_disk`], [`histories`] and `schedules` → [`statements`] and [`corruption`] → [`pushdown`] and
//! [`simulated`].
#![forbid(unsafe_code)]

pub mod answers;
pub mod bank;
pub mod changes;
pub mod corruption;
pub mod crash;
pub mod differential;
pub mod full_disk;
pub mod fuzz;
pub mod histories;
pub mod pushdown;
#[cfg(feature = "shaken")]
pub mod schedules;
pub mod simulated;
pub mod statements;
