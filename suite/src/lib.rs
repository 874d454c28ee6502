//! The measuring suite behind `peregrine bench`.
#![forbid(unsafe_code)]
