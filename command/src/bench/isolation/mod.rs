//! Proofs that sessions do not disturb each other.

pub(super) mod bank;
pub(super) mod behaviour;
pub(super) mod histories;
