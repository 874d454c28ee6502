//! Lists of running transactions, of the locks that they hold, and of the transactions that wait for each other.
//!
//! Transactions keep no data for these lists alone, so only the caller pays for them. The call visits the running
//! writers, the slots of snapshots and the shards of the lock table one after the other. Each part is true for its
//! moment, and work goes on between them.
//!
//! A row that its writer holds only by the row's header, without a waiter, is not listed. Most locks are of this
//! kind, and only the page knows them.

use std::collections::HashMap;
use std::sync::Arc;

use super::TransactionManager;
use crate::lock::row_name::{Row, RowName};
use crate::lock::running_transaction::{RunningTransaction, WaitState};
use crate::lock::table::LockMode;
use crate::settings::Isolation;
use crate::sync::atomic::Ordering;

/// The first of the numbers for transactions without a number, which have not written.
///
/// The number of the transaction's snapshot slot is added.
const UNNUMBERED: u64 = 1 << 48;

/// The state of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionState {
    /// It works, or its session is idle.
    Running,
    /// It waits for a row lock.
    LockWait,
    /// It is being rolled back.
    RollingBack,
    /// It is prepared, and waits for its coordinator to commit it or roll it back.
    Prepared,
}

/// A running transaction.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TransactionEntry {
    /// Its number; 2^48 or more for a transaction that has no number, because it has not written.
    pub id: u64,
    /// The number from [`super::TreeTransaction::set_session`], or 0.
    pub session: u64,
    /// Its state.
    pub state: TransactionState,
    /// Its isolation level.
    pub isolation: Isolation,
    /// When it began, or first wrote or locked, in microseconds since 1970. `None`: unknown.
    pub started_us: Option<u64>,
    /// When its present wait for a lock began, in microseconds since 1970.
    pub waits_since_us: Option<u64>,
    /// The lock for which it waits: a [`LockEntry::lock`].
    pub waits_for: Option<u64>,
    /// Rows inserted, updated and deleted.
    pub rows_changed: u64,
    /// Undo records: the cost of a rollback.
    pub undo_records: u64,
    /// Bytes of undo written.
    pub undo_bytes: u64,
    /// Entries of the lock table that it holds.
    pub rows_locked: u64,
    /// The number of its lock waits.
    pub lock_waits: u64,
    /// Ends of writing transactions since its snapshot, which the snapshot keeps from being purged; `None`: no
    /// snapshot.
    pub snapshot_age: Option<u64>,
}

/// The extent of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockExtent {
    /// One row, whether it exists or not.
    Row,
    /// The keys from the row's on up to, not including, this one (`None`: without end), whether rows exist there or
    /// not.
    Range(Option<RowName>),
}

/// A lock that a transaction holds or waits for.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LockEntry {
    /// The lock's number: that of its row.
    pub lock: u64,
    /// The transaction: a [`TransactionEntry::id`].
    pub transaction: u64,
    /// The row, or the beginning of the range.
    pub row: RowName,
    /// The extent of the lock.
    pub extent: LockExtent,
    /// Shared or exclusive.
    pub mode: LockMode,
    /// Whether the transaction holds the lock; false: it waits for it.
    pub granted: bool,
}

/// A transaction that waits, and one that is in its way.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LockWait {
    /// The lock: a [`LockEntry::lock`].
    pub lock: u64,
    /// The waiting transaction: a [`TransactionEntry::id`].
    pub requesting: u64,
    /// The transaction in its way: a [`TransactionEntry::id`].
    pub blocking: u64,
}

/// The lists.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Inspection {
    /// Running transactions, by number.
    pub transactions: Vec<TransactionEntry>,
    /// Locks with an entry in the lock table.
    pub locks: Vec<LockEntry>,
    /// Waits.
    pub waits: Vec<LockWait>,
    /// There are more locks than the caller asked for.
    pub truncated: bool,
}

/// The number under which lists show a transaction.
pub(super) fn shown_id(who: &RunningTransaction) -> u64 {
    match who.monitoring.txid.load(Ordering::Relaxed) {
        0 => UNNUMBERED + u64::from(who.wait_slot.snapshot_slot()),
        txid => txid,
    }
}

fn told(micros: u64) -> Option<u64> {
    (micros != 0).then_some(micros)
}

impl TransactionManager {
    /// Lists running transactions and about `most_locks` locks at most.
    pub fn inspect(&self, most_locks: usize) -> Inspection {
        let mut seen: HashMap<*const RunningTransaction, Arc<RunningTransaction>> = HashMap::new();
        let mut found = Inspection::default();
        self.locks().look(|row, name, holders, waiters| {
            if found.locks.len() >= most_locks {
                found.truncated = true;
                return false;
            }
            let held = holders.iter().map(|h| (&h.who, h.mode, true));
            let awaited = waiters.iter().map(|w| (&w.who, w.mode, false));
            for (who, mode, granted) in held.chain(awaited) {
                seen.entry(Arc::as_ptr(who)).or_insert_with(|| who.clone());
                found.locks.push(LockEntry {
                    lock: row.0,
                    transaction: shown_id(who),
                    row: *name,
                    extent: LockExtent::Row,
                    mode,
                    granted,
                });
            }
            for (place, waiter) in waiters.iter().enumerate() {
                let excludes =
                    |mode| mode == LockMode::Exclusive || waiter.mode == LockMode::Exclusive;
                let before = found.waits.len();
                let blocking = holders.iter().filter(|h| excludes(h.mode)).map(|h| &h.who);
                found.waits.extend(
                    blocking
                        .filter(|who| !Arc::ptr_eq(who, &waiter.who))
                        .map(|who| wait(row, &waiter.who, who)),
                );
                if found.waits.len() == before {
                    // No holder is in the way, so a waiter ahead in the queue is.
                    let ahead = waiters.iter().take(place).rev();
                    let ahead = ahead.filter(|w| excludes(w.mode)).take(1);
                    found
                        .waits
                        .extend(ahead.map(|w| wait(row, &waiter.who, &w.who)));
                }
            }
            true
        });
        let mut range =
            |tree, who: &Arc<RunningTransaction>, mode, from: &[u8], to: Option<&[u8]>| {
                if found.locks.len() >= most_locks {
                    found.truncated = true;
                    return false;
                }
                seen.entry(Arc::as_ptr(who)).or_insert_with(|| who.clone());
                found.locks.push(LockEntry {
                    lock: Row::new(tree, from).0,
                    transaction: shown_id(who),
                    row: RowName::new(tree, from),
                    extent: LockExtent::Range(to.map(|to| RowName::new(tree, to))),
                    mode,
                    granted: true,
                });
                true
            };
        self.ranges().look(&mut range);
        for escalated in self.locks().escalated() {
            escalated.look(&mut range);
        }
        for (_, who) in self.order().all_running() {
            seen.entry(Arc::as_ptr(&who)).or_insert(who);
        }
        let newest = self.order().newest().csn.0;
        let mut snapshots: HashMap<u32, u64> = self
            .snapshots()
            .registered()
            .into_iter()
            .map(|(slot, csn)| (slot, newest.saturating_sub(csn.0)))
            .collect();
        found.transactions = seen
            .values()
            .map(|who| self.entry_of(who, snapshots.remove(&who.wait_slot.snapshot_slot())))
            .collect();
        let readers = snapshots.into_iter();
        found
            .transactions
            .extend(readers.map(|(slot, age)| self.entry_of_reader(slot, age)));
        found.transactions.sort_by_key(|entry| entry.id);
        found
    }

    fn entry_of(&self, who: &RunningTransaction, snapshot_age: Option<u64>) -> TransactionEntry {
        let shown = &who.monitoring;
        let waits_for = match who.wait_slot.state() {
            WaitState::Queued(row) => Some(row.0),
            _ => None,
        };
        TransactionEntry {
            id: shown_id(who),
            state: if shown.rolling_back.load(Ordering::Relaxed) {
                TransactionState::RollingBack
            } else if shown.prepared.load(Ordering::Relaxed) {
                TransactionState::Prepared
            } else if waits_for.is_some() {
                TransactionState::LockWait
            } else {
                TransactionState::Running
            },
            started_us: told(shown.started_us.load(Ordering::Relaxed)),
            waits_since_us: waits_for
                .and_then(|_| told(shown.waits_since_us.load(Ordering::Relaxed))),
            waits_for,
            rows_changed: shown.rows_changed.load(Ordering::Relaxed),
            undo_records: who.undo_records(),
            undo_bytes: shown.undo_bytes.load(Ordering::Relaxed),
            rows_locked: who.held_rows() as u64,
            lock_waits: shown.lock_waits.load(Ordering::Relaxed),
            ..self.entry_of_reader(who.wait_slot.snapshot_slot(), 0)
        }
        .with_snapshot(snapshot_age)
    }

    /// A transaction of which only the slot is known.
    fn entry_of_reader(&self, slot: u32, snapshot_age: u64) -> TransactionEntry {
        let owner = self.snapshots().owner(slot);
        let isolation = owner.map_or(0, |o| o.isolation.load(Ordering::Relaxed));
        TransactionEntry {
            id: UNNUMBERED + u64::from(slot),
            session: owner.map_or(0, |o| o.session.load(Ordering::Relaxed)),
            state: TransactionState::Running,
            isolation: [
                Isolation::ReadCommitted,
                Isolation::RepeatableRead,
                Isolation::Serializable,
            ]
            .into_iter()
            .find(|&level| level as u8 == isolation)
            .unwrap_or_default(),
            started_us: owner.and_then(|o| told(o.started_us.load(Ordering::Relaxed))),
            waits_since_us: None,
            waits_for: None,
            rows_changed: 0,
            undo_records: 0,
            undo_bytes: 0,
            rows_locked: 0,
            lock_waits: 0,
            snapshot_age: Some(snapshot_age),
        }
    }
}

impl TransactionEntry {
    fn with_snapshot(self, snapshot_age: Option<u64>) -> Self {
        TransactionEntry {
            snapshot_age,
            ..self
        }
    }
}

fn wait(row: Row, requesting: &RunningTransaction, blocking: &RunningTransaction) -> LockWait {
    LockWait {
        lock: row.0,
        requesting: shown_id(requesting),
        blocking: shown_id(blocking),
    }
}
