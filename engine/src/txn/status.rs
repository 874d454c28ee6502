//! The status directory: how each transaction of this run ended, found by its number.
//!
//! One word a transaction, in chunks that are never moved: a reader finds the word without a
//! lock. Chunks whose transactions every snapshot sees are dropped from the front, so that the
//! directory's memory follows the span of live transactions and not the number of all.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use arc_swap::ArcSwap;

use crate::ids::{Csn, TxId};

const CHUNK: u64 = 8192;
const ABORTED: u64 = 1 << 63;

/// How a transaction stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It runs, or is rolling back.
    Active,
    /// It committed with this number. `Csn(0)` stands for "before every snapshot".
    Committed(Csn),
    /// It was rolled back completely, and its end took this number.
    Aborted(Csn),
    /// No transaction has been given this number: the record that names it is damaged.
    Unknown,
}

type Chunk = Box<[AtomicU64]>;

struct Window {
    /// The number of the first transaction of the first chunk.
    first: u64,
    chunks: Vec<Arc<Chunk>>,
}

/// Transaction number → status. Changes come from one caller at a time (the commit order's mutex);
/// look-ups from anywhere.
pub struct StatusDirectory {
    window: ArcSwap<Window>,
    /// One past the highest transaction number given.
    next: AtomicU64,
}

impl StatusDirectory {
    /// A directory in which every transaction below `next` is settled.
    pub fn new(next: TxId) -> Self {
        StatusDirectory {
            window: ArcSwap::from_pointee(Window {
                first: next.0,
                chunks: Vec::new(),
            }),
            next: AtomicU64::new(next.0),
        }
    }

    /// The number the next transaction gets.
    pub fn next(&self) -> TxId {
        TxId(self.next.load(Ordering::Acquire))
    }

    /// Gives the next number to a transaction, which is active from then on.
    pub fn begin(&self) -> TxId {
        let txid = self.next.load(Ordering::Relaxed);
        let window = self.window.load();
        if txid - window.first == window.chunks.len() as u64 * CHUNK {
            let mut chunks = window.chunks.clone();
            chunks.push(Arc::new((0..CHUNK).map(|_| AtomicU64::new(0)).collect()));
            self.window.store(Arc::new(Window {
                first: window.first,
                chunks,
            }));
        }
        self.next.store(txid + 1, Ordering::Release);
        TxId(txid)
    }

    /// Skips numbers, so that the next is at least `next`. Only before any [`begin`](Self::begin).
    pub fn raise(&self, next: TxId) {
        if next.0 > self.next.load(Ordering::Relaxed) {
            self.window.store(Arc::new(Window {
                first: next.0,
                chunks: Vec::new(),
            }));
            self.next.store(next.0, Ordering::Release);
        }
    }

    /// Notes the end of an active transaction.
    pub fn finish(&self, txid: TxId, status: Status) {
        let word = match status {
            Status::Committed(csn) => csn.0,
            Status::Aborted(csn) => csn.0 | ABORTED,
            Status::Active | Status::Unknown => return,
        };
        let window = self.window.load();
        if let Some(cell) = window.cell(txid) {
            cell.store(word, Ordering::Release);
        }
    }

    /// How transaction `txid` stands.
    pub fn get(&self, txid: TxId) -> Status {
        let window = self.window.load();
        if txid.0 < window.first {
            return Status::Committed(Csn(0));
        }
        // A number not given yet may still have a cell in the last chunk.
        if txid.0 >= self.next.load(Ordering::Acquire) {
            return Status::Unknown;
        }
        let Some(cell) = window.cell(txid) else {
            // The window is older than the number: it was given after the window was loaded.
            return Status::Active;
        };
        match cell.load(Ordering::Acquire) {
            0 => Status::Active,
            word if word & ABORTED != 0 => Status::Aborted(Csn(word & !ABORTED)),
            word => Status::Committed(Csn(word)),
        }
    }

    /// Drops chunks of transactions that all end below `settled`: every snapshot sees them.
    pub fn trim(&self, settled: TxId) {
        let window = self.window.load();
        let passed = settled.0.saturating_sub(window.first) / CHUNK;
        let passed = passed.min(window.chunks.len() as u64);
        if passed > 0 {
            self.window.store(Arc::new(Window {
                first: window.first + passed * CHUNK,
                chunks: window.chunks[passed as usize..].to_vec(),
            }));
        }
    }

    /// Bytes held, for the memory account.
    pub fn bytes(&self) -> usize {
        self.window.load().chunks.len() * CHUNK as usize * 8
    }
}

impl Window {
    fn cell(&self, txid: TxId) -> Option<&AtomicU64> {
        let index = txid.0.checked_sub(self.first)?;
        let chunk = self.chunks.get((index / CHUNK) as usize)?;
        chunk.get((index % CHUNK) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_transaction_has_its_own_end() {
        let directory = StatusDirectory::new(TxId(100));
        assert_eq!(directory.get(TxId(99)), Status::Committed(Csn(0)));
        assert_eq!(directory.get(TxId(100)), Status::Unknown);
        let count = 3 * CHUNK;
        for i in 0..count {
            let txid = directory.begin();
            assert_eq!(txid, TxId(100 + i));
            assert_eq!(directory.get(txid), Status::Active);
            match i % 3 {
                0 => directory.finish(txid, Status::Committed(Csn(i + 1))),
                1 => directory.finish(txid, Status::Aborted(Csn(i + 1))),
                _ => {}
            }
        }
        for i in 0..count {
            let expected = match i % 3 {
                0 => Status::Committed(Csn(i + 1)),
                1 => Status::Aborted(Csn(i + 1)),
                _ => Status::Active,
            };
            assert_eq!(directory.get(TxId(100 + i)), expected);
        }
        assert_eq!(directory.get(TxId(100 + count)), Status::Unknown);
    }

    #[test]
    fn trimmed_transactions_are_settled_and_cost_no_memory() {
        let directory = StatusDirectory::new(TxId(1));
        for _ in 0..5 * CHUNK {
            let txid = directory.begin();
            directory.finish(txid, Status::Committed(Csn(txid.0)));
        }
        let before = directory.bytes();
        directory.trim(TxId(2 * CHUNK + 1));
        assert_eq!(directory.bytes(), before / 5 * 3);
        assert_eq!(directory.get(TxId(2 * CHUNK)), Status::Committed(Csn(0)));
        let kept = TxId(2 * CHUNK + 1);
        assert_eq!(directory.get(kept), Status::Committed(Csn(kept.0)));
        directory.trim(directory.next());
        assert_eq!(directory.bytes(), 0);
        assert_eq!(directory.begin(), TxId(5 * CHUNK + 1));
        assert_eq!(directory.get(TxId(5 * CHUNK + 1)), Status::Active);
    }
}
