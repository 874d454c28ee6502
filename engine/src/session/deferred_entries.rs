//! The index entries that a bulk insert defers.
//!
//! `write/row/deferred.rs` says why, and inserts them.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::error::{Error, Result};
use crate::ids::PAGE_SIZE;
use crate::planted::{is_planted, PlantedFault};
use crate::row::Value;
use crate::session::scratch::EntryBytes;
use crate::sync::atomic::Ordering;
use crate::table::open_table::{IndexId, Table};
use crate::table::shared::Shared;
use crate::{fallible, knobs};

/// The deferred entries of one table in a transaction.
pub(crate) struct Deferred {
    pub table: Arc<Table>,
    /// For each non-unique index its number and its entries.
    pub runs: Vec<(IndexId, Run)>,
    /// Bytes of these that `Shared::deferred_bytes` counts.
    counted: usize,
    shared: Arc<Shared>,
}

/// Entries of one index.
#[derive(Default)]
pub(crate) struct Run {
    /// Keys and payloads, one after the other.
    bytes: Vec<u8>,
    pub entries: Vec<Entry>,
}

/// The place of an entry among a run's bytes.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    /// The first bytes of the key, as a number: most comparisons need no more.
    head: u64,
    at: u32,
    key_len: u16,
    payload_len: u16,
}

impl Run {
    fn add(&mut self, entry: &EntryBytes) -> Result<()> {
        let (key, payload) = (&entry.key, &entry.payload);
        let too_many = |_| Error::TooLarge("the entries of a bulk insert".into());
        let mut head = [0; 8];
        let front = key.len().min(8);
        head[..front].copy_from_slice(&key[..front]);
        let place = Entry {
            head: u64::from_be_bytes(head),
            at: u32::try_from(self.bytes.len()).map_err(too_many)?,
            key_len: u16::try_from(key.len()).map_err(too_many)?,
            payload_len: u16::try_from(payload.len()).map_err(too_many)?,
        };
        let what = "the entries of a bulk insert";
        fallible::reserve(&mut self.bytes, key.len() + payload.len(), what)?;
        fallible::reserve(&mut self.entries, 1, what)?;
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(payload);
        self.entries.push(place);
        Ok(())
    }

    pub fn key(&self, entry: Entry) -> &[u8] {
        &self.bytes[entry.at as usize..][..usize::from(entry.key_len)]
    }

    pub fn payload(&self, entry: Entry) -> &[u8] {
        let at = entry.at as usize + usize::from(entry.key_len);
        &self.bytes[at..][..usize::from(entry.payload_len)]
    }

    pub fn sort(&mut self) {
        let mut entries = std::mem::take(&mut self.entries);
        entries.sort_unstable_by(|&a, &b| {
            let heads = a.head.cmp(&b.head);
            heads.then_with(|| self.key(a).cmp(self.key(b)))
        });
        self.entries = entries;
    }

    /// Removes the last entries, so that `entries` remain.
    fn truncate(&mut self, entries: usize) {
        if let Some(first) = self.entries.get(entries) {
            self.bytes.truncate(first.at as usize);
            self.entries.truncate(entries);
        }
    }

    fn used_bytes(&self) -> usize {
        self.bytes.len() + self.entries.len() * size_of::<Entry>()
    }
}

/// The number of entries of each run.
pub(super) type Lengths = SmallVec<[usize; 8]>;

impl Deferred {
    /// For the non-unique indexes of a table; `None` if it has none.
    pub fn new(table: &Arc<Table>, shared: &Arc<Shared>) -> Option<Deferred> {
        let indexes = table.layout.indexes.iter().zip(1..);
        let runs: Vec<_> = indexes
            .filter(|(index, _)| !index.unique)
            .map(|(_, n)| (n, Run::default()))
            .collect();
        if runs.is_empty() {
            return None;
        }
        Some(Deferred {
            table: Arc::clone(table),
            runs,
            counted: 0,
            shared: shared.clone(),
        })
    }

    pub fn lengths(&self) -> Lengths {
        let lengths = self.runs.iter().map(|(_, run)| run.entries.len());
        lengths.collect()
    }

    /// Defers a row's entries.
    pub fn add(
        &mut self,
        row: &[Value<'_>],
        clustered_key: &[u8],
        entry: &mut EntryBytes,
    ) -> Result<()> {
        for (index, run) in &mut self.runs {
            let layout = &self.table.layout.indexes[*index - 1];
            entry.encode(&self.table, layout, row, clustered_key)?;
            run.add(entry)?;
        }
        Ok(())
    }

    /// Removes the entries that were added since the runs had these lengths.
    pub fn take_back_to(&mut self, before: Lengths) {
        let runs = self.runs.iter_mut();
        runs.zip(before).for_each(|((_, run), n)| run.truncate(n));
    }

    fn used_bytes(&self) -> usize {
        self.runs.iter().map(|(_, run)| run.used_bytes()).sum()
    }

    /// Counts entries added since the last call among those of all transactions; returns whether they are too many.
    pub fn is_too_much(&mut self) -> bool {
        let used = self.used_bytes();
        if used <= self.counted {
            return false;
        }
        let more = (used - self.counted).next_multiple_of(knobs::deferred_step());
        self.counted += more;
        let shared = &self.shared;
        let before = shared.deferred_bytes.fetch_add(more, Ordering::Relaxed);
        let pool = shared.registry.pool().buffer_pool().frames.count() * PAGE_SIZE;
        before + more
            > (pool / knobs::deferred_part_of_pool())
                .clamp(knobs::deferred_least(), knobs::deferred_most())
    }

    /// Drops the entries: they are in the indexes, or their rows are undone.
    pub fn forget(&mut self) {
        for (_, run) in &mut self.runs {
            *run = Run::default();
        }
        let counted = std::mem::take(&mut self.counted);
        if counted > 0 {
            let all = &self.shared.deferred_bytes;
            all.fetch_sub(counted, Ordering::Relaxed);
        }
    }
}

impl Drop for Deferred {
    /// Also when a panic drops it, its bytes must not stay counted.
    fn drop(&mut self) {
        if !is_planted(PlantedFault::CountLostDeferred) {
            self.forget();
        }
    }
}
