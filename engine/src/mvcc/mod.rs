//! Versions: which of them a snapshot sees, in which order transactions committed, and how far back anybody looks.
//!
//! - `version`: the header in front of each record; `freeze`: headers that tell nobody anything any more go;
//! - `status`, `order`: how each transaction ended, and when;
//! - `snapshot`, `live_snapshots`: what a reader sees, and which snapshots anybody reads by; `undo_reclamation`: when what they may
//!   have led to is free.
#![forbid(unsafe_code)]

pub(crate) mod freeze;
pub(crate) mod live_snapshots;
pub(crate) mod order;
pub(crate) mod snapshot;
#[cfg(feature = "broken")]
pub(crate) mod stale;
pub(crate) mod status;
pub(crate) mod undo_reclamation;
pub(crate) mod version;

pub use freeze::FrozenVersion;
pub use snapshot::ReadView;
pub use version::{encode_frozen, live_payload, Header, MAX_PAYLOAD};
