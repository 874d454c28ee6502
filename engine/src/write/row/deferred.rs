//! Deferred index entries of a bulk insert, which it inserts later in the order of their keys.
//!
//! Rows come in any order of a secondary key. Entries inserted at once would each need a search of its own, in a leaf
//! that is seldom in the processor's cache or in memory. Leaves that split in the middle would stay half empty. In the
//! order of the keys, the inserts fill one leaf after the other.
//!
//! The delay is invisible. Others see no row of the transaction before its commit. A checkpoint may hold rows without
//! their entries; but recovery rolls back transactions that were running then, and repeats committed ones from the log.
//! The log has only rows: recovery makes their entries with them. A commit inserts the entries first, and so does any
//! operation of the transaction that reads the table. Entries of unique indexes are not deferred: an insert must refuse
//! a duplicate at once.

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
    /// Begins a bulk insert into a table: defers the entries of non-unique indexes.
    ///
    /// They are inserted later in the order of their keys, which takes less time and makes smaller indexes.
    /// [`Transaction::end_bulk_insert`] inserts them. Before that, a commit does, any operation that reads or changes
    /// rows of the table, and a savepoint; also an insert when the deferred entries of all transactions take more than
    /// an eighth of the pool's size. They take memory beside the pool.
    pub fn begin_bulk_insert(&mut self, table: &Arc<Table>) {
        // The inserts refuse a table of another database.
        if self.deferred_of(table).is_some() || self.check_is_of(table).is_err() {
            return;
        }
        self.deferred.extend(Deferred::new(table, &self.shared));
    }

    /// Ends the bulk inserts into all tables.
    ///
    /// # Errors
    /// Those of writing pages and of waiting for locks; [`crate::Error::Interrupted`] when killed. The remaining
    /// entries stay deferred until the next operation that needs them, or until the transaction goes back to before the
    /// bulk insert. [`crate::Error::Deadlock`], [`crate::Error::WriteConflict`] and [`crate::Error::LogLimit`], if one
    /// came before.
    pub fn end_bulk_insert(&mut self) -> Result<()> {
        self.put_deferred(None)?;
        self.deferred.clear();
        Ok(())
    }

    fn deferred_of(&self, table: &Table) -> Option<usize> {
        let of = |deferred: &Deferred| deferred.table.id() == table.id();
        self.deferred.iter().position(of)
    }

    /// Inserts the deferred entries if they take too much memory for another row of the table.
    ///
    /// Must be called before any work for that row: the entries stay if the row is undone.
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

    /// Inserts the row of `s.key`, whose payload is in `s`.
    ///
    /// The caller has called [`Transaction::make_room_for_deferred`] before.
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

    /// Inserts the deferred entries of one table or of all.
    #[cold]
    pub(crate) fn put_deferred(&mut self, of: Option<&Table>) -> Result<()> {
        // Check first: this saves the sort, and an optimistic table can't turn the error into another one.
        if let Some(error) = self.must_roll_back() {
            return Err(error.clone());
        }
        self.check_entries()?;
        let mut all = std::mem::take(&mut self.deferred);
        // The embedding program's code, which is told of waits, may panic: the entries are then lost with `all`.
        let result = self.whole_or_unwound(|txn| {
            all.iter_mut()
                .filter(|deferred| of.is_none_or(|table| table.id() == deferred.table.id()))
                .try_for_each(|deferred| txn.put_in(deferred))
        });
        self.deferred = all;
        result
    }

    /// Drops the deferred entries of rows that were undone.
    pub(crate) fn forget_deferred(&mut self) {
        for deferred in &mut self.deferred {
            deferred.forget();
        }
    }

    /// As [`Transaction::forget_deferred`], for a dropped table.
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
