//! The `peregrine` command.
#![forbid(unsafe_code)]
fn main() {}
