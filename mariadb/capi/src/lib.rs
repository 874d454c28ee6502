//! The C interface of Peregrine: what the server plug-in calls.
//!
//! The contract is `include/peregrine.h`, with `peregrine_aggregate.h`, `peregrine_inspect.h`, `peregrine_prepared.h`
//! and `peregrine_told.h` beside it: each function is described there. This crate checks the arguments from C++
//! ([`calls`]) and stops panics at the boundary ([`guard`]). It translates the server's record buffers and key images
//! directly into the engine's values and back ([`rows`]). So the plug-in itself need not touch a row.
#![warn(missing_docs)]

pub mod c_types;
pub mod calls;
pub mod engine;
pub mod failure;
#[cfg(test)]
mod fixture;
pub mod guard;
pub mod handle;
mod planted;
pub mod rows;
mod server_sessions;
mod session;
pub mod table;
pub mod told;
