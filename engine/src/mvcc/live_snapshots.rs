//! Which snapshots anybody reads by.

use crate::ids::{Csn, TxId};

/// The oldest registered snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Horizon {
    /// Every snapshot, now and later, sees what ended up to here.
    pub csn: Csn,
    /// Every snapshot, now and later, has `low` at least here.
    pub low: TxId,
}

/// The snapshots that were registered at a moment: with those taken later, which are not older
/// than `newest`, all that anybody reads by.
#[derive(Clone, Debug)]
pub(crate) struct LiveSnapshots {
    newest: Csn,
    /// Ascending.
    csns: Vec<u64>,
}

impl LiveSnapshots {
    /// The newest end when they were looked for.
    pub fn newest(&self) -> Csn {
        self.newest
    }

    /// All that were registered, ascending.
    pub fn all(&self) -> &[u64] {
        &self.csns
    }

    /// The snapshots older than `csn`, ascending.
    pub fn older_than(&self, csn: Csn) -> &[u64] {
        &self.csns[..self.csns.partition_point(|&live| live < csn.0)]
    }

    /// The snapshots `csns`, seen after `newest` was the newest end.
    pub fn of(newest: Csn, mut csns: Vec<u64>) -> Self {
        csns.sort_unstable();
        csns.dedup();
        LiveSnapshots { newest, csns }
    }

    /// These, and one more.
    pub fn and(&self, csn: Csn) -> Self {
        let mut csns = self.csns.clone();
        csns.push(csn.0);
        LiveSnapshots::of(self.newest, csns)
    }

    /// Whether every snapshot, now and later, sees either both the end `from` and the end `to`, or
    /// neither; so nobody sees a version that `from` made and `to` replaced.
    pub fn none_between(&self, from: Csn, to: Csn) -> bool {
        let next = self.csns.partition_point(|&csn| csn < from.0);
        to <= self.newest && self.csns.get(next).is_none_or(|&csn| csn >= to.0)
    }
}
