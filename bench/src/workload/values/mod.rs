//! The values of rows and the generators that draw them.

pub(super) mod distribution;
pub mod expression;
pub mod generator;
pub(super) mod scope;
pub(super) mod shuffle;
pub(super) mod words;
