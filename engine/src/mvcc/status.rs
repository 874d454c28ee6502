//! The status directory: how each transaction of this run ended, found by its number.
//!
//! The directory has one word for each transaction, in chunks that never move, so a reader finds the word without a
//! lock. Chunks whose transactions every snapshot sees are dropped from the front. So the directory's memory follows
//! the span of live transactions, not the number of all transactions. An old snapshot or a long transaction can keep
//! that span wide. Therefore a chunk of ended transactions keeps one number for all of them if no snapshot lies
//! between their ends: no reader can tell them apart.

use std::sync::Arc;

use arc_swap::ArcSwap;

use crate::ids::{Csn, TxId};
use crate::knobs;
use crate::mvcc::live_snapshots::LiveSnapshots;
use crate::planted::{is_planted, PlantedFault};
use crate::sync::atomic::{AtomicU64, Ordering};

const ABORTED: u64 = 1 << 63;

/// The status of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It runs, or is rolling back.
    Active,
    /// It committed with this number. `Csn(0)` means "before every snapshot".
    Committed(Csn),
    /// It was rolled back completely, and its end took this number.
    Aborted(Csn),
    /// No transaction has been given this number: the record that names it is damaged.
    Unknown,
}

enum Chunk {
    /// A word for each transaction.
    Each(Box<[AtomicU64]>),
    /// All have ended, and no snapshot lies between their ends.
    Ended {
        /// The newest end.
        csn: u64,
        aborted: Aborted,
    },
}

/// The transactions of a chunk that were rolled back, by their places.
///
/// If many transactions wait for one row, most are in this set: each gives its number back before it waits.
enum Aborted {
    /// The places, ascending.
    Few(Box<[u16]>),
    /// A bitmap: a set bit means rolled back.
    Many(Box<[u64]>),
}

struct Window {
    /// The number of the first transaction of the first chunk.
    first: u64,
    chunks: Vec<Arc<Chunk>>,
}

/// Maps a transaction number to its status.
///
/// The commit order's mutex lets one caller at a time change it. Any thread looks up without a lock.
pub struct StatusDirectory {
    window: ArcSwap<Window>,
    /// One past the highest transaction number given.
    next: AtomicU64,
}

impl StatusDirectory {
    /// A directory in which every transaction below `next` is frozen.
    pub fn new(next: TxId) -> Self {
        StatusDirectory {
            window: ArcSwap::from_pointee(Window {
                first: next.0,
                chunks: Vec::new(),
            }),
            next: AtomicU64::new(next.0),
        }
    }

    /// The number that the next transaction gets.
    pub fn next(&self) -> TxId {
        TxId(self.next.load(Ordering::Acquire))
    }

    /// Gives the next number to a transaction, which is active from then on.
    pub fn begin(&self) -> TxId {
        let txid = self.next.load(Ordering::Relaxed);
        let window = self.window.load();
        if txid - window.first == window.chunks.len() as u64 * knobs::status_chunk() {
            let mut chunks = window.chunks.clone();
            chunks.push(Arc::new(Chunk::new()));
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

    /// Records the end of an active transaction.
    pub fn finish(&self, txid: TxId, status: Status) {
        let word = match status {
            Status::Committed(csn) => csn.0,
            Status::Aborted(csn) => csn.0 | ABORTED,
            Status::Active | Status::Unknown => return,
        };
        let window = self.window.load();
        // A chunk with an active transaction is never summarised.
        if let Some((Chunk::Each(words), at)) = window.place(txid) {
            words[at].store(word, Ordering::Release);
        }
    }

    /// Returns the status of transaction `txid`.
    pub fn get(&self, txid: TxId) -> Status {
        let window = self.window.load();
        if txid.0 < window.first {
            return Status::Committed(Csn(0));
        }
        // A number that no transaction has yet may already have a word in the last chunk.
        if txid.0 >= self.next.load(Ordering::Acquire) {
            return Status::Unknown;
        }
        match window.place(txid) {
            Some((Chunk::Each(words), at)) => match words[at].load(Ordering::Acquire) {
                0 => Status::Active,
                word if word & ABORTED != 0 => Status::Aborted(Csn(word & !ABORTED)),
                word => Status::Committed(Csn(word)),
            },
            Some((Chunk::Ended { csn, aborted }, at)) => match aborted.has(at) {
                true => Status::Aborted(Csn(*csn)),
                false => Status::Committed(Csn(*csn)),
            },
            // The number was given after this thread loaded the window.
            None => Status::Active,
        }
    }

    /// Keeps one number for each chunk of ended transactions if no snapshot lies between their ends.
    pub fn summarise(&self, live: &LiveSnapshots) {
        let window = self.window.load();
        let mut chunks: Option<Vec<Arc<Chunk>>> = None;
        // The last chunk's numbers are still being given.
        let full = window.chunks.len().saturating_sub(1);
        for (number, chunk) in window.chunks[..full].iter().enumerate() {
            if let Some(summary) = chunk.summary(live) {
                let chunks = chunks.get_or_insert_with(|| window.chunks.clone());
                chunks[number] = Arc::new(summary);
            }
        }
        if let Some(chunks) = chunks {
            self.window.store(Arc::new(Window {
                first: window.first,
                chunks,
            }));
        }
    }

    /// Drops chunks of transactions whose numbers are all below `frozen`: every snapshot sees them.
    pub fn trim(&self, frozen: TxId) {
        let window = self.window.load();
        let passed = frozen.0.saturating_sub(window.first) / knobs::status_chunk();
        let passed = passed.min(window.chunks.len() as u64);
        if passed > 0 {
            self.window.store(Arc::new(Window {
                first: window.first + passed * knobs::status_chunk(),
                chunks: window.chunks[passed as usize..].to_vec(),
            }));
        }
    }

    /// Bytes in use, for the memory account.
    pub fn bytes(&self) -> usize {
        self.window.load().chunks.iter().map(|c| c.bytes()).sum()
    }
}

impl Chunk {
    fn new() -> Chunk {
        Chunk::Each(
            (0..knobs::status_chunk())
                .map(|_| AtomicU64::new(0))
                .collect(),
        )
    }

    fn bytes(&self) -> usize {
        match self {
            Chunk::Each(words) => words.len() * 8,
            Chunk::Ended { aborted, .. } => size_of::<Chunk>() + aborted.bytes(),
        }
    }

    /// Returns the chunk's short form if no snapshot can tell it from the chunk.
    fn summary(&self, live: &LiveSnapshots) -> Option<Chunk> {
        let Chunk::Each(words) = self else {
            return None;
        };
        let (mut oldest, mut newest) = (u64::MAX, 0);
        let mut aborted = Vec::new();
        for (at, word) in words.iter().enumerate() {
            match word.load(Ordering::Acquire) {
                0 => return None,
                word if word & ABORTED != 0 => {
                    aborted.push(at as u16);
                    if aborted.len() > knobs::most_aborted_in_chunk()
                        && is_planted(PlantedFault::KeepManyAborted)
                    {
                        return None;
                    }
                    newest = newest.max(word & !ABORTED);
                    oldest = oldest.min(word & !ABORTED);
                }
                word => {
                    oldest = oldest.min(word);
                    newest = newest.max(word);
                }
            }
        }
        let alike = live.none_between(Csn(oldest), Csn(newest));
        alike.then(|| Chunk::Ended {
            csn: newest,
            aborted: Aborted::new(aborted, words.len()),
        })
    }
}

impl Aborted {
    /// Makes the set of these places, ascending, of a chunk of `count` transactions.
    fn new(places: Vec<u16>, count: usize) -> Aborted {
        if places.len() <= knobs::most_aborted_in_chunk() {
            return Aborted::Few(places.into());
        }
        let mut bits = vec![0u64; count.div_ceil(64)];
        for place in places.into_iter().map(usize::from) {
            bits[place / 64] |= 1 << (place % 64);
        }
        Aborted::Many(bits.into())
    }

    /// Returns whether the transaction at a place was rolled back.
    fn has(&self, place: usize) -> bool {
        match self {
            Aborted::Few(places) => places.binary_search(&(place as u16)).is_ok(),
            Aborted::Many(bits) => (bits[place / 64] >> (place % 64)) & 1 == 1,
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Aborted::Few(places) => places.len() * 2,
            Aborted::Many(bits) => bits.len() * 8,
        }
    }
}

impl Window {
    /// The chunk of a transaction, and its place there.
    fn place(&self, txid: TxId) -> Option<(&Chunk, usize)> {
        let index = txid.0.checked_sub(self.first)?;
        let chunk = self.chunks.get((index / knobs::status_chunk()) as usize)?;
        Some((chunk, (index % knobs::status_chunk()) as usize))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_transaction_has_its_own_end() {
        let chunk = knobs::status_chunk();
        let directory = StatusDirectory::new(TxId(100));
        assert_eq!(directory.get(TxId(99)), Status::Committed(Csn(0)));
        assert_eq!(directory.get(TxId(100)), Status::Unknown);
        let count = 3 * chunk;
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
    fn trimmed_transactions_are_frozen_and_cost_no_memory() {
        let chunk = knobs::status_chunk();
        let directory = StatusDirectory::new(TxId(1));
        for _ in 0..5 * chunk {
            let txid = directory.begin();
            directory.finish(txid, Status::Committed(Csn(txid.0)));
        }
        let before = directory.bytes();
        directory.trim(TxId(2 * chunk + 1));
        assert_eq!(directory.bytes(), before / 5 * 3);
        assert_eq!(directory.get(TxId(2 * chunk)), Status::Committed(Csn(0)));
        let kept = TxId(2 * chunk + 1);
        assert_eq!(directory.get(kept), Status::Committed(Csn(kept.0)));
        directory.trim(directory.next());
        assert_eq!(directory.bytes(), 0);
        assert_eq!(directory.begin(), TxId(5 * chunk + 1));
        assert_eq!(directory.get(TxId(5 * chunk + 1)), Status::Active);
    }

    #[test]
    fn nobody_can_tell_a_summary_from_what_it_stands_for() {
        let chunk = knobs::status_chunk();
        let directory = StatusDirectory::new(TxId(1));
        let running = TxId(5 * chunk + 7);
        for i in 0..8 * chunk {
            let txid = directory.begin();
            match txid {
                _ if txid == running => {}
                _ if i % 1000 == 3 => directory.finish(txid, Status::Aborted(Csn(i + 2))),
                _ => directory.finish(txid, Status::Committed(Csn(i + 2))),
            }
        }
        let all = (1..=8 * chunk).map(TxId);
        let before: Vec<Status> = all.clone().map(|txid| directory.get(txid)).collect();
        let (full, snapshot) = (directory.bytes(), 2 * chunk + 100);
        let live = LiveSnapshots::of(Csn(7 * chunk + 1), vec![snapshot]);
        directory.summarise(&live);
        // These chunks are unchanged: the snapshot's, the running transaction's and the newest.
        assert!(crate::knobs::SHAKEN || directory.bytes() < full / 8 * 4);
        assert!(directory.bytes() > full / 8 * 3);
        for (txid, before) in all.zip(before) {
            let now = directory.get(txid);
            match (before, now) {
                (Status::Committed(was), Status::Committed(is)) => {
                    for view in [snapshot, 7 * chunk + 1, u64::MAX] {
                        assert_eq!(was.0 <= view, is.0 <= view, "{txid}");
                    }
                }
                (Status::Aborted(_), Status::Aborted(_)) => {}
                _ => assert_eq!(before, now, "{txid}"),
            }
        }
        directory.finish(running, Status::Committed(Csn(9 * chunk)));
        directory.summarise(&LiveSnapshots::of(Csn(9 * chunk), vec![]));
        assert!(directory.bytes() < full / 8 * 2);
        directory.trim(directory.next());
        assert_eq!(directory.bytes(), 0);
    }

    /// Transactions that wait for one row give their numbers back; these numbers then count as rolled back.
    #[test]
    fn many_that_were_rolled_back_take_a_bit_each() {
        let chunk = knobs::status_chunk();
        let directory = StatusDirectory::new(TxId(1));
        for i in 0..4 * chunk {
            let txid = directory.begin();
            match i % 3 {
                0 => directory.finish(txid, Status::Committed(Csn(i + 2))),
                _ => directory.finish(txid, Status::Aborted(Csn(i + 2))),
            }
        }
        let full = directory.bytes();
        directory.summarise(&LiveSnapshots::of(Csn(4 * chunk + 1), vec![]));
        // The newest chunk is unchanged. With small chunks, the fixed size of a merged chunk counts.
        assert!(crate::knobs::SHAKEN || directory.bytes() < full / 4 + full / 8);
        for i in 0..4 * chunk {
            let is_aborted = matches!(directory.get(TxId(i + 1)), Status::Aborted(_));
            assert_eq!(is_aborted, i % 3 != 0, "{i}");
        }
    }
}
