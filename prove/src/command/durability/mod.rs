//! Proofs of durability, and that damage is found.

pub(super) mod corruption;
pub(super) mod crash;
pub(super) mod full_disk;
pub(super) mod fuzz;
pub(super) mod simulated;
