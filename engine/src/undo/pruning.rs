//! What pruning keeps for all transactions.

use std::time::{Duration, Instant};

use crate::knobs;
use crate::mvcc::undo_reclamation::UndoReclamation;
use crate::sync::atomic::AtomicU64;
use crate::sync::{Mutex, RwLock};

/// When pruning is worth its while.
#[derive(Clone, Copy)]
pub(crate) struct Pace {
    /// A snapshot that has stood for this long (and at most twice this) is *old*: [`knobs::prune_old`].
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

/// What pruning keeps for all transactions.
#[derive(Default)]
pub(crate) struct Pruning {
    /// Transactions that ended up to here are pruned; 0: no snapshot is old enough for that.
    pub below: AtomicU64,
    pub aim: Mutex<Aim>,
    /// Held shared while pages are emptied, and exclusively while the horizon moves: behind the
    /// horizon undo goes at once, and nobody may be on the way there.
    pub horizon: RwLock<()>,
    pub reclamation: UndoReclamation,
    pub pace: Mutex<Pace>,
    /// Pages emptied.
    pub emptied: AtomicU64,
}

/// Which snapshots are old.
#[derive(Default)]
pub(crate) struct Aim {
    pub noted: Option<Instant>,
    /// The snapshots that stood when they were last noted, and the time before.
    pub last: Vec<u64>,
    pub before: Vec<u64>,
}
