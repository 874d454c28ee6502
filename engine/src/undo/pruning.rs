//! The state of pruning that all transactions share.

use std::time::{Duration, Instant};

use crate::knobs;
use crate::mvcc::undo_reclamation::UndoReclamation;
use crate::sync::atomic::AtomicU64;
use crate::sync::{Mutex, RwLock};

/// The limits that decide when pruning is worthwhile.
#[derive(Clone, Copy)]
pub(crate) struct Pace {
    /// A snapshot held for this long (or at most twice this long) is *old*: [`knobs::prune_old`].
    pub old: Duration,
    /// [`knobs::prune_recheck_interval`].
    pub again: Duration,
    /// [`knobs::prune_few`].
    pub few: u64,
}

impl Default for Pace {
    fn default() -> Self {
        Pace {
            old: knobs::prune_old(),
            again: knobs::prune_recheck_interval(),
            few: knobs::prune_few(),
        }
    }
}

/// The state of pruning that all transactions share.
#[derive(Default)]
pub(crate) struct Pruning {
    /// Undo of transactions that ended up to this CSN is pruned; 0: no snapshot is old enough.
    pub below: AtomicU64,
    pub aim: Mutex<Aim>,
    /// Held shared while pages are emptied, and exclusively while the horizon moves.
    ///
    /// Behind the horizon, undo pages are freed at once, so no pruning thread may be about to read one.
    pub horizon: RwLock<()>,
    pub reclamation: UndoReclamation,
    pub pace: Mutex<Pace>,
    /// The number of pages emptied.
    pub emptied: AtomicU64,
}

/// The snapshots of earlier looks, which tell old snapshots from young ones.
#[derive(Default)]
pub(crate) struct Aim {
    pub noted: Option<Instant>,
    /// The snapshots held at the last look, and at the one before.
    pub last: Vec<u64>,
    pub before: Vec<u64>,
}
