//! Versions: which of them a snapshot sees, in which order transactions committed, and how far back snapshots reach.
//!
//! - `version`: the header in front of each record; `freeze`: removes headers that no snapshot needs;
//! - `status`, `order`: how each transaction ended, and when;
//! - `snapshot`, `live_snapshots`: what a reader sees, and the snapshots that are in use;
//! - `undo_reclamation`: when an undo page can be freed.
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
