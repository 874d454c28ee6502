//! The C interface of Peregrine: what the server plug-in calls.
//!
//! `include/peregrine.h`, with `peregrine_aggregate.h`, `peregrine_inspect.h`, `peregrine_prepared.h` and
//! `peregrine_told.h` beside it, is the contract;
//! each function's meaning stands there. This crate checks what comes from C++, keeps panics from leaving ([`guard`]), and translates the server's record
//! buffers and key images straight into the engine's values and back ([`record`], [`key_image`]),
//! so that the plug-in itself need not touch a row.
#![warn(missing_docs)]

mod aggregate_calls;
mod auto_increment_lock;
mod buffers;
pub mod c_types;
pub mod change_calls;
pub mod collation;
pub mod condition;
pub mod engine;
pub mod failure;
#[cfg(test)]
mod fixture;
pub mod guard;
pub mod handle;
pub mod inspect;
pub mod key_image;
pub mod layout;
mod planted;
pub mod plugin_knobs;
pub mod prepared;
pub mod record;
pub mod row_calls;
mod server_sessions;
mod session;
pub mod table;
pub mod told;
mod verify;
