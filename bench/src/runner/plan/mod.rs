//! The plan of a run: cells, their order, and the user's request.

pub mod command_line;
pub mod matrix;
pub(super) mod planned;
pub mod plans;
pub mod profile;
pub mod request;
