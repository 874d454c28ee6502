//! What runs while a server is under stress, and what the machine does meanwhile.

pub mod machine_pauses;
pub(super) mod memory_load;
pub mod write_load;
