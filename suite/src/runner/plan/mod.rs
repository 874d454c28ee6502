//! What is to be measured: cells, their order, and what the user asked for.

pub mod command_line;
pub mod matrix;
pub(super) mod planned;
pub mod plans;
pub mod profile;
pub mod request;
