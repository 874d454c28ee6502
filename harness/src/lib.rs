//! What measurements and proofs share: servers of their own, engines as targets, errors, seeds, the command line.
//!
//! A module calls only modules further down this list: [`command`] → [`engines`] → [`server`] → [`level`],
//! [`interrupt`] → [`error`], [`errors_told`], [`dice`] and [`arithmetic`].
#![forbid(unsafe_code)]

pub mod arithmetic;
pub mod command;
pub mod dice;
pub mod engines;
pub mod error;
pub mod errors_told;
pub mod interrupt;
pub mod level;
pub mod server;
