//! The order of commits, and the set of running writers.
//!
//! A mutex, held briefly, puts beginnings and ends of writers in one order. Readers need two words of it: the newest
//! commit number and the oldest running writer. A writer's end stores them in the opposite order of a snapshot's
//! loads. So a snapshot that loads an oldest writer sees every end that made it the oldest.

use std::collections::VecDeque;
use std::sync::Arc;

use crossbeam_utils::CachePadded;

use crate::broken::Broken;
use crate::ids::{Csn, TxId};
use crate::lock::running_transaction::RunningTransaction;
use crate::mvcc::live_snapshots::{Horizon, LiveSnapshots};
use crate::mvcc::status::{Status, StatusDirectory};
use crate::planted::{is_planted, PlantedFault};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::Mutex;

/// How a writer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Commit,
    /// It was rolled back completely.
    Abort,
    /// It has written nothing. No record names it, and its end takes no commit number.
    Unused,
}

/// See the module's text.
pub(crate) struct CommitOrder {
    statuses: StatusDirectory,
    writers: Mutex<Writers>,
    last_csn: CachePadded<AtomicU64>,
    oldest: CachePadded<AtomicU64>,
    horizon_csn: CachePadded<AtomicU64>,
    horizon_low: AtomicU64,
    /// The isolation rule that a test build leaves out.
    pub broken: Broken,
}

struct Writers {
    /// Ascending by number. Ended writers are removed at once, so that a long transaction does not keep all later
    /// ones here.
    running: VecDeque<(TxId, Arc<RunningTransaction>)>,
}

impl CommitOrder {
    /// An order in which every transaction below `next` is frozen.
    pub fn new(next: TxId) -> Self {
        CommitOrder {
            statuses: StatusDirectory::new(next),
            writers: Mutex::new(Writers {
                running: VecDeque::new(),
            }),
            // 0 is "registering" in a snapshot slot, so commits count from 1.
            last_csn: CachePadded::new(AtomicU64::new(1)),
            oldest: CachePadded::new(AtomicU64::new(next.0)),
            horizon_csn: CachePadded::new(AtomicU64::new(0)),
            horizon_low: AtomicU64::new(next.0),
            broken: Broken::default(),
        }
    }

    /// Gives a writer its number.
    pub fn begin(&self, running: &Arc<RunningTransaction>) -> TxId {
        let mut writers = self.writers.lock();
        let txid = self.statuses.begin();
        // If no other writer runs, `oldest` is already the next number, which is this one.
        writers.running.push_back((txid, running.clone()));
        txid
    }

    /// Ends a writer: snapshots taken from here on see its changes, or its changes have been rolled back.
    pub fn end(&self, txid: TxId, end: End) -> Csn {
        let mut writers = self.writers.lock();
        let last = self.last_csn.load(Ordering::Relaxed);
        let csn = Csn(last + u64::from(end != End::Unused));
        self.statuses.finish(
            txid,
            match end {
                End::Commit => Status::Committed(csn),
                End::Abort | End::Unused => Status::Aborted(csn),
            },
        );
        let running = &mut writers.running;
        if let Ok(at) = running.binary_search_by_key(&txid, |(number, _)| *number) {
            running.remove(at);
        }
        let oldest = running
            .front()
            .map_or(self.statuses.next(), |(number, _)| *number);
        if is_planted(PlantedFault::OldestBeforeEnd) {
            self.oldest.store(oldest.0, Ordering::Release);
        }
        self.last_csn.store(csn.0, Ordering::Release);
        self.oldest.store(oldest.0, Ordering::Release);
        csn
    }

    /// Gives a change that belongs to no transaction its own commit number.
    ///
    /// A snapshot with a smaller number was taken before the change.
    pub fn pass(&self) -> Csn {
        let _one_at_a_time = self.writers.lock();
        let csn = self.last_csn.load(Ordering::Relaxed) + 1;
        self.last_csn.store(csn, Ordering::Release);
        Csn(csn)
    }

    /// Returns the newest state, which a snapshot taken at this moment holds.
    #[inline]
    pub fn newest(&self) -> Horizon {
        let low = TxId(self.oldest.load(Ordering::Acquire));
        let csn = Csn(self.last_csn.load(Ordering::Acquire));
        Horizon { csn, low }
    }

    /// Returns the status of a transaction.
    #[inline]
    pub fn status(&self, txid: TxId) -> Status {
        self.statuses.get(txid)
    }

    /// Returns the running writer with this number.
    pub fn running(&self, txid: TxId) -> Option<Arc<RunningTransaction>> {
        let writers = self.writers.lock();
        let running = &writers.running;
        let at = running
            .binary_search_by_key(&txid, |(number, _)| *number)
            .ok()?;
        Some(running[at].1.clone())
    }

    /// All running writers.
    pub fn all_running(&self) -> Vec<(TxId, Arc<RunningTransaction>)> {
        let writers = self.writers.lock();
        writers.running.iter().cloned().collect()
    }

    /// The number that the next writer gets.
    pub fn next_txid(&self) -> TxId {
        self.statuses.next()
    }

    /// Makes every number below `next` frozen; has no effect while a writer runs.
    pub fn raise(&self, next: TxId) {
        let writers = self.writers.lock();
        if writers.running.is_empty() && next > self.statuses.next() {
            self.statuses.raise(next);
            self.oldest.store(next.0, Ordering::Release);
            self.horizon_low.store(next.0, Ordering::Release);
        }
    }

    /// Publishes a horizon, and drops the statuses that only older snapshots needed.
    ///
    /// Ignores a horizon older than the published one. Returns the published one.
    pub fn advance_horizon(&self, horizon: Horizon) -> Horizon {
        let csn = self
            .horizon_csn
            .fetch_max(horizon.csn.0, Ordering::AcqRel)
            .max(horizon.csn.0);
        let low = self
            .horizon_low
            .fetch_max(horizon.low.0, Ordering::AcqRel)
            .max(horizon.low.0);
        let _one_at_a_time = self.writers.lock();
        self.statuses.trim(TxId(low));
        Horizon {
            csn: Csn(csn),
            low: TxId(low),
        }
    }

    /// Returns whether `horizon` is newer than the published one.
    pub fn is_advanced_by(&self, horizon: Horizon) -> bool {
        horizon.csn > self.horizon_csn() || horizon.low.0 > self.horizon_low.load(Ordering::Acquire)
    }

    /// Every present and later snapshot sees transactions that ended up to this CSN.
    pub fn horizon_csn(&self) -> Csn {
        Csn(self.horizon_csn.load(Ordering::Acquire))
    }

    /// Returns whether every present and later snapshot sees what `txid` wrote.
    #[inline]
    pub fn is_frozen(&self, txid: TxId) -> bool {
        if txid.0 < self.horizon_low.load(Ordering::Acquire) {
            return true;
        }
        match self.status(txid) {
            Status::Committed(csn) => csn.0 <= self.horizon_csn.load(Ordering::Acquire),
            _ => false,
        }
    }

    /// Merges the statuses of ended transactions that neither a snapshot nor the horizon can tell apart.
    ///
    /// A transaction that the horizon has passed must stay passed, because purge has begun to free its undo.
    pub fn summarise(&self, live: &LiveSnapshots) {
        let _one_at_a_time = self.writers.lock();
        match is_planted(PlantedFault::SummariseOverHorizon) {
            true => self.statuses.summarise(live),
            false => self.statuses.summarise(&live.and(self.horizon_csn())),
        }
    }

    /// Bytes of the status directory.
    pub fn status_bytes(&self) -> usize {
        self.statuses.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snapshots_see_ends_in_order() {
        let order = CommitOrder::new(TxId(10));
        assert_eq!(order.newest().low, TxId(10));
        let people: Vec<_> = (0..3)
            .map(|_| RunningTransaction::new(Default::default()))
            .collect();
        let ids: Vec<_> = people.iter().map(|p| order.begin(p)).collect();
        assert_eq!(ids, [TxId(10), TxId(11), TxId(12)]);
        assert_eq!(order.newest().low, TxId(10));

        let second = order.end(ids[1], End::Commit);
        assert_eq!(
            order.newest(),
            Horizon {
                csn: second,
                low: TxId(10)
            }
        );
        assert!(order.running(ids[1]).is_none());
        assert!(order.running(ids[2]).is_some());

        let first = order.end(ids[0], End::Abort);
        assert!(first > second);
        assert_eq!(
            order.newest(),
            Horizon {
                csn: first,
                low: TxId(12)
            }
        );
        assert_eq!(order.status(ids[0]), Status::Aborted(first));
        let third = order.end(ids[2], End::Commit);
        assert_eq!(
            order.newest(),
            Horizon {
                csn: third,
                low: TxId(13)
            }
        );
        assert!(!order.is_frozen(ids[2]));
        order.advance_horizon(order.newest());
        assert!(order.is_frozen(ids[2]));
    }

    /// The snapshot that holds the horizon ends. Before the horizon moves, ends on both sides of it must not be
    /// merged into one number. Purge has freed undo up to the horizon.
    #[test]
    fn what_the_horizon_has_passed_stays_frozen() {
        let order = CommitOrder::new(TxId(1));
        let running = RunningTransaction::new(Default::default());
        // It keeps running, so `low` does not decide whether the later ones are frozen.
        order.begin(&running);
        let ended: Vec<TxId> = (0..3 * 8192)
            .map(|_| {
                let txid = order.begin(&running);
                order.end(txid, End::Commit);
                txid
            })
            .collect();
        let passed = ended[8192 + 100];
        let Status::Committed(csn) = order.status(passed) else {
            panic!("{passed} has committed");
        };
        let low = order.newest().low;
        order.advance_horizon(Horizon { csn, low });
        let frozen = |order: &CommitOrder| -> Vec<bool> {
            ended.iter().map(|txid| order.is_frozen(*txid)).collect()
        };
        let before = frozen(&order);
        assert!(before.contains(&true) && before.contains(&false));
        order.summarise(&LiveSnapshots::of(order.newest().csn, Vec::new()));
        assert!(before == frozen(&order), "what was passed is not any more");
    }
}
