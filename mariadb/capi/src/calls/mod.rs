//! The functions that C++ calls, by subject.

pub mod aggregates;
pub mod auto_increment_lock;
pub mod changes;
pub mod inspect;
pub mod plugin_knobs;
pub mod prepared;
pub mod rows;
pub mod verify;
