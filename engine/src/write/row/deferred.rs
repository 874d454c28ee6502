//! Index entries of a bulk insert: deferred, and put into their indexes in the order of their keys.
//!
//! Rows come in any order of a secondary key. Put in at once, each entry would be a search of its own, in a
//! leaf that is seldom at hand, and leaves that are split in the middle would stay half empty. In the
//! order of the keys one leaf is filled after the other.
//!
//! Nobody can tell the difference. Others see no row of the transaction before its commit. A checkpoint may
//! hold rows without their entries, but recovery rolls back what was running then, and makes what
//! committed later again from the log, which has rows alone: their entries come with them. Commit puts the
//! entries in first, and so does whatever of the transaction reads the table. Entries of unique indexes are
//! not deferred: a row must be refused when it comes.

use std::sync::Arc;

use crate::error::Result;
use crate::ids::TableId;
use crate::knobs;
use crate::row::Value;
use crate::session::deferred_entries::{Deferred, Run};
use crate::session::scratch::Scratch;
use crate::session::transaction::Transaction;
use crate::table::open_table::{Table, TableTrees};
use crate::write::row::operation::Entries;

impl Transaction {
    /// Begins a bulk insert into a table: entries of indexes that are not unique are deferred, and put
    /// in in the order of their keys, which takes less time and leaves smaller indexes. They are put in
    /// by [`Transaction::end_bulk_insert`], and before that by a commit, by whatever reads or changes
    /// rows of the table, by a savepoint, and when those of all transactions take an eighth of the
    /// pool's size, in memory beside the pool.
    pub fn begin_bulk_insert(&mut self, table: &Arc<Table>) {
        // A table of another database is refused by the inserts.
        if self.deferred_of(table).is_some() || self.check_is_of(table).is_err() {
            return;
        }
        self.deferred.extend(Deferred::new(table, &self.shared));
    }

    /// Ends the bulk inserts into all tables.
    ///
    /// # Errors
    /// Those of writing pages and of waiting for locks; [`crate::Error::Interrupted`] when killed. What is still
    /// deferred then goes in at the next occasion, unless the transaction goes back to before the bulk insert.
    /// [`crate::Error::Deadlock`] and [`crate::Error::WriteConflict`], where one came before.
    pub fn end_bulk_insert(&mut self) -> Result<()> {
        self.put_deferred(None)?;
        self.deferred.clear();
        Ok(())
    }

    fn deferred_of(&self, table: &Table) -> Option<usize> {
        let of = |deferred: &Deferred| deferred.table.id() == table.id();
        self.deferred.iter().position(of)
    }

    /// Where too much is deferred for another row of a table, puts it in: before anything of that row
    /// is done, for it stays when the row is taken back.
    #[inline]
    pub(super) fn make_room_for_deferred(&mut self, table: &Table) -> Result<()> {
        match self.deferred_of(table) {
            Some(at) if self.deferred[at].is_too_much() => self.put_deferred(None),
            _ => Ok(()),
        }
    }

    /// Whether entries of a table's rows are deferred.
    pub(crate) fn defers_entries(&self, table: &Table) -> bool {
        self.deferred_of(table).is_some()
    }

    /// Inserts the row of `s.key`, whose payload is in `s`. What is deferred is no more than may be:
    /// [`Transaction::make_room_for_deferred`] was called before.
    pub(super) fn insert_encoded(
        &mut self,
        table: &Table,
        trees: &TableTrees,
        row: &[Value<'_>],
        s: &mut Scratch,
    ) -> Result<()> {
        let Some(at) = self.deferred_of(table) else {
            return self.retry_after_waits(table, trees, |op| op.insert(row, Entries::All, s));
        };
        let deferred = &mut self.deferred[at];
        let before = deferred.lengths();
        let result = match deferred.add(row, &s.key, &mut s.entry) {
            Ok(()) => {
                self.retry_after_waits(table, trees, |op| op.insert(row, Entries::OfUnique, s))
            }
            Err(error) => Err(error),
        };
        if result.is_err() {
            self.deferred[at].take_back_to(before);
        }
        result
    }

    /// Puts in what is deferred, of one table or of all.
    #[cold]
    pub(crate) fn put_deferred(&mut self, of: Option<&Table>) -> Result<()> {
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

    /// Forgets what is deferred: the rows are undone.
    pub(crate) fn forget_deferred(&mut self) {
        for deferred in &mut self.deferred {
            deferred.forget();
        }
    }

    /// As [`Transaction::forget_deferred`], for a table that is gone.
    pub(crate) fn forget_deferred_of(&mut self, table: TableId) {
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
                    self.tree_txn.check_killed()?;
                }
                self.retry_after_waits(table, &trees, |op| {
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
