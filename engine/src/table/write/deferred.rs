//! Index entries of a bulk insert: kept aside, and put into their indexes in the order of their keys.
//!
//! Rows come in any order of a secondary key. Put in at once, each entry would be a search of its own, in a
//! leaf that is seldom at hand, and leaves that are split in the middle would stay half empty. In the
//! order of the keys one leaf is filled after the other.
//!
//! Nobody can tell the difference. Others see no row of the transaction before its commit. A checkpoint may
//! hold rows without their entries, but recovery rolls back what was running then, and makes what
//! committed later again from the log, which has rows alone: their entries come with them. Commit puts the
//! entries in first, and so does whatever of the transaction reads the table. Entries of unique indexes are
//! not kept aside: a row must be refused when it comes.

use std::sync::Arc;

use smallvec::SmallVec;

use super::operation::Entries;
use super::{EntryBytes, Scratch};
use crate::error::{Error, Result};
use crate::ids::{TableId, PAGE_SIZE};
use crate::knobs;
use crate::planted::{is_planted, PlantedFault};
use crate::room;
use crate::row::Value;
use crate::sync::atomic::Ordering;
use crate::table::open_table::{IndexId, Table, TableTrees};
use crate::table::shared::Shared;
use crate::table::transaction::Transaction;

/// What a transaction keeps aside of one table.
pub(in crate::table) struct Deferred {
    table: Arc<Table>,
    /// Of each index that is not unique: its number, and its entries.
    runs: Vec<(IndexId, Run)>,
    /// Bytes of these that are counted with those of all transactions.
    counted: usize,
    shared: Arc<Shared>,
}

/// Entries of one index.
#[derive(Default)]
struct Run {
    /// Keys and payloads, one after the other.
    bytes: Vec<u8>,
    entries: Vec<Entry>,
}

/// Where an entry stands among a run's bytes.
#[derive(Clone, Copy)]
struct Entry {
    /// The front of the key, as a number: most comparisons need no more.
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
        room::reserve(&mut self.bytes, key.len() + payload.len(), what)?;
        room::reserve(&mut self.entries, 1, what)?;
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(payload);
        self.entries.push(place);
        Ok(())
    }

    fn key(&self, entry: Entry) -> &[u8] {
        &self.bytes[entry.at as usize..][..usize::from(entry.key_len)]
    }

    fn payload(&self, entry: Entry) -> &[u8] {
        let at = entry.at as usize + usize::from(entry.key_len);
        &self.bytes[at..][..usize::from(entry.payload_len)]
    }

    fn sort(&mut self) {
        let mut entries = std::mem::take(&mut self.entries);
        entries.sort_unstable_by(|&a, &b| {
            let heads = a.head.cmp(&b.head);
            heads.then_with(|| self.key(a).cmp(self.key(b)))
        });
        self.entries = entries;
    }

    /// Takes the last entries back, so that `entries` remain.
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

/// How many entries each run has.
type Lengths = SmallVec<[usize; 8]>;

impl Deferred {
    fn lengths(&self) -> Lengths {
        let lengths = self.runs.iter().map(|(_, run)| run.entries.len());
        lengths.collect()
    }

    /// Keeps a row's entries aside.
    fn add(
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

    fn used_bytes(&self) -> usize {
        self.runs.iter().map(|(_, run)| run.used_bytes()).sum()
    }

    /// Counts what has come since with what all transactions keep aside; whether that is too much.
    fn is_too_much(&mut self) -> bool {
        let used = self.used_bytes();
        if used <= self.counted {
            return false;
        }
        let more = (used - self.counted).next_multiple_of(knobs::deferred_step());
        self.counted += more;
        let shared = &self.shared;
        let before = shared.deferred_bytes.fetch_add(more, Ordering::Relaxed);
        let pool = shared.registry.pool().core().frames.count() * PAGE_SIZE;
        before + more
            > (pool / knobs::deferred_part_of_pool())
                .clamp(knobs::deferred_least(), knobs::deferred_most())
    }

    /// Forgets what is kept aside: it is in the indexes now, or the rows are undone.
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
    /// Where a panic takes it along, too, it counts no more.
    fn drop(&mut self) {
        if !is_planted(PlantedFault::CountLostAside) {
            self.forget();
        }
    }
}

impl Transaction {
    /// Begins a bulk insert into a table: entries of indexes that are not unique are kept aside, and put
    /// in in the order of their keys, which takes less time and leaves smaller indexes. They are put in
    /// by [`Transaction::end_bulk_insert`], and before that by a commit, by whatever reads or changes
    /// rows of the table, by a savepoint, and when those of all transactions take an eighth of the
    /// pool's size, in memory beside the pool.
    pub fn begin_bulk_insert(&mut self, table: &Arc<Table>) {
        // A table of another database is refused by the inserts.
        if self.deferred_of(table).is_some() || self.check_is_of(table).is_err() {
            return;
        }
        let indexes = table.layout.indexes.iter().zip(1..);
        let runs: Vec<_> = indexes
            .filter(|(index, _)| !index.unique)
            .map(|(_, n)| (n, Run::default()))
            .collect();
        if !runs.is_empty() {
            self.deferred.push(Deferred {
                table: Arc::clone(table),
                runs,
                counted: 0,
                shared: self.shared.clone(),
            });
        }
    }

    /// Ends the bulk inserts into all tables.
    ///
    /// # Errors
    /// Those of writing pages and of waiting for locks; [`Error::Interrupted`] when killed. What is still
    /// aside then goes in at the next occasion, unless the transaction goes back to before the bulk insert.
    /// [`Error::Deadlock`] and [`Error::WriteConflict`], where one came before.
    pub fn end_bulk_insert(&mut self) -> Result<()> {
        self.put_deferred(None)?;
        self.deferred.clear();
        Ok(())
    }

    fn deferred_of(&self, table: &Table) -> Option<usize> {
        let of = |deferred: &Deferred| deferred.table.id() == table.id();
        self.deferred.iter().position(of)
    }

    /// Where too much is kept aside for another row of a table, puts it in: before anything of that row
    /// is done, for it stays when the row is taken back.
    #[inline]
    pub(super) fn make_room_aside(&mut self, table: &Table) -> Result<()> {
        match self.deferred_of(table) {
            Some(aside) if self.deferred[aside].is_too_much() => self.put_deferred(None),
            _ => Ok(()),
        }
    }

    /// Whether entries of a table's rows are kept aside.
    pub(in crate::table) fn keeps_aside(&self, table: &Table) -> bool {
        self.deferred_of(table).is_some()
    }

    /// Inserts the row of `s.key`, whose payload is in `s`. What is kept aside is no more than may be:
    /// [`Transaction::make_room_aside`] was called before.
    pub(super) fn insert_encoded(
        &mut self,
        table: &Table,
        trees: &TableTrees,
        row: &[Value<'_>],
        s: &mut Scratch,
    ) -> Result<()> {
        let Some(aside) = self.deferred_of(table) else {
            return self.attempt(table, trees, |op| op.insert(row, Entries::All, s));
        };
        let deferred = &mut self.deferred[aside];
        let before = deferred.lengths();
        let result = match deferred.add(row, &s.key, &mut s.entry) {
            Ok(()) => self.attempt(table, trees, |op| op.insert(row, Entries::OfUnique, s)),
            Err(error) => Err(error),
        };
        if result.is_err() {
            let runs = self.deferred[aside].runs.iter_mut();
            runs.zip(before).for_each(|((_, run), n)| run.truncate(n));
        }
        result
    }

    /// Puts in what is kept aside, of one table or of all.
    #[cold]
    pub(in crate::table) fn put_deferred(&mut self, of: Option<&Table>) -> Result<()> {
        // Nothing is sorted in vain, and an optimistic table makes no other error of it.
        if let Some(error) = self.must_roll_back() {
            return Err(error.clone());
        }
        self.check_entries()?;
        let mut all = std::mem::take(&mut self.deferred);
        // A panic of who is told of a wait takes them along.
        let result = self.whole_or_unwound(|txn| {
            all.iter_mut()
                .filter(|deferred| of.is_none_or(|table| table.id() == deferred.table.id()))
                .try_for_each(|deferred| txn.put_in(deferred))
        });
        self.deferred = all;
        result
    }

    /// Forgets what is kept aside: the rows are undone.
    pub(in crate::table) fn forget_deferred(&mut self) {
        for deferred in &mut self.deferred {
            deferred.forget();
        }
    }

    /// As [`Transaction::forget_deferred`], for a table that is gone.
    pub(in crate::table) fn forget_deferred_of(&mut self, table: TableId) {
        for deferred in self.deferred.iter_mut().filter(|d| d.table.id() == table) {
            deferred.forget();
        }
        self.deferred
            .retain(|deferred| deferred.table.id() != table);
    }

    fn put_in(&mut self, deferred: &mut Deferred) -> Result<()> {
        let table = &deferred.table;
        let trees = table.trees.load();
        for (index, run) in &mut deferred.runs {
            run.sort();
            let mut done = 0;
            let result = run.entries.iter().try_for_each(|&entry| {
                if done % knobs::entries_a_look() == 0 {
                    self.inner.check_killed()?;
                }
                self.attempt(table, &trees, |op| {
                    op.insert_entry(*index, run.key(entry), run.payload(entry))
                })?;
                done += 1;
                Ok(())
            });
            if result.is_err() {
                run.entries.drain(..done);
                return result;
            }
            *run = Run::default();
        }
        deferred.forget();
        Ok(())
    }
}
