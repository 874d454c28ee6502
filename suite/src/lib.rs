//! The measuring suite behind `peregrine bench`.
#![forbid(unsafe_code)]

pub mod error;
pub mod server;
pub mod target;
