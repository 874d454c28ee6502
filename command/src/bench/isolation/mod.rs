//! Proofs that sessions, and the engine's own threads, do not disturb each other.

pub(super) mod bank;
pub(super) mod behaviour;
pub(super) mod histories;
#[cfg(feature = "shaken")]
pub(super) mod schedules;
