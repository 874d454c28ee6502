//! Proofs of isolation between sessions and the engine's own threads.

pub(super) mod bank;
pub(super) mod histories;
#[cfg(feature = "shaken")]
pub(super) mod schedules;
