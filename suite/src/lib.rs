//! The measuring suite behind `peregrine bench`.
#![forbid(unsafe_code)]

pub mod error;
pub mod normal;
pub mod server;
pub mod target;
