//! The snapshots that transactions read by.

use crate::ids::{Csn, TxId};

/// The oldest registered snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Horizon {
    /// Every present and later snapshot sees transactions that ended up to this CSN.
    pub csn: Csn,
    /// Every present and later snapshot has a `low` of at least this number.
    pub low: TxId,
}

/// The snapshots that were registered at one moment.
///
/// A snapshot that is taken later is not older than `newest`. So no transaction reads by any other snapshot older
/// than `newest`.
#[derive(Clone, Debug)]
pub(crate) struct LiveSnapshots {
    newest: Csn,
    /// Ascending, without duplicates.
    csns: Vec<u64>,
}

impl LiveSnapshots {
    /// The newest end when the snapshots were collected.
    pub fn newest(&self) -> Csn {
        self.newest
    }

    /// All registered snapshots, ascending.
    pub fn all(&self) -> &[u64] {
        &self.csns
    }

    /// The snapshots older than `csn`, ascending.
    pub fn older_than(&self, csn: Csn) -> &[u64] {
        &self.csns[..self.csns.partition_point(|&live| live < csn.0)]
    }

    /// Makes the set from `csns`, collected after `newest` was the newest end.
    pub fn of(newest: Csn, mut csns: Vec<u64>) -> Self {
        csns.sort_unstable();
        csns.dedup();
        LiveSnapshots { newest, csns }
    }

    /// Returns a copy of the set with `csn` added.
    pub fn and(&self, csn: Csn) -> Self {
        let mut csns = self.csns.clone();
        csns.push(csn.0);
        LiveSnapshots::of(self.newest, csns)
    }

    /// Returns whether each present and later snapshot sees both of the ends `from` and `to`, or neither.
    ///
    /// If so, no snapshot sees a version that `from` made and `to` replaced.
    pub fn none_between(&self, from: Csn, to: Csn) -> bool {
        let next = self.csns.partition_point(|&csn| csn < from.0);
        to <= self.newest && self.csns.get(next).is_none_or(|&csn| csn >= to.0)
    }
}
