//! What stands in rows: values and how they are drawn.

pub mod data_file;
pub(super) mod distribution;
pub mod expression;
pub mod generator;
pub(super) mod scope;
pub(super) mod shuffle;
pub(super) mod words;
