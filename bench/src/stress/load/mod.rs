//! The loads of a server under stress, and the pauses of the machine.

pub mod machine_pauses;
pub(super) mod memory_load;
pub mod write_load;
