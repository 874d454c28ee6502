//! One row operation inside the barrier: the clustered tree, the secondary trees, the log.

use smallvec::SmallVec;

use crate::error::{Error, Result};
use crate::row::payload::{LargeRef, RowRef};
use crate::row::{entry, Value};
use crate::session::scratch::Scratch;
use crate::table::large;
use crate::table::open_table::{Table, TableTrees};
use crate::tree::Tree;
use crate::txn::{self, BarrierGuard, Conflict, Delete, Put, PutMode};

/// How an operation inside the barrier ended.
pub(super) enum Step {
    Done,
    Wait(Conflict),
}

/// The index entries of a row that an operation inserts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entries {
    All,
    /// Those of unique indexes; the others are deferred.
    OfUnique,
}

/// The context of one operation.
pub(super) struct RowOperation<'a> {
    pub txn: &'a mut txn::TreeTransaction,
    pub inside: &'a BarrierGuard<'a>,
    pub table: &'a Table,
    pub trees: &'a TableTrees,
}

/// A row's values, for making its keys.
pub(super) type Row<'a> = SmallVec<[Value<'a>; 16]>;

pub(super) fn no_row() -> Error {
    Error::NotFound {
        what: "row",
        name: "of that key".into(),
    }
}

macro_rules! return_on_conflict {
    ($step:expr) => {
        if let Step::Wait(conflict) = $step {
            return Ok(Step::Wait(conflict));
        }
    };
}

fn impossible(what: &str) -> Error {
    Error::Internal(format!("a row and its index entries disagree: {what}"))
}

impl RowOperation<'_> {
    pub fn insert(&mut self, row: &[Value<'_>], entries: Entries, s: &mut Scratch) -> Result<Step> {
        s.found.clear();
        let put = self.txn.try_put(
            self.inside,
            &self.trees.clustered,
            &s.key,
            &s.payload,
            PutMode::Insert,
            None,
        )?;
        match put {
            Put::Done { .. } => {}
            Put::Conflict(conflict) => return Ok(Step::Wait(conflict)),
            Put::Changed => return Err(Error::WriteConflict),
            Put::Duplicate => {
                s.found.extend_from_slice(&s.key);
                return Err(Error::Duplicate { index: 0 });
            }
            Put::Missing => return Err(impossible("insert")),
        }
        for n in 1..=self.table.layout.indexes.len() {
            let index = &self.table.layout.indexes[n - 1];
            if entries == Entries::OfUnique && !index.unique {
                continue;
            }
            s.entry.encode(self.table, index, row, &s.key)?;
            return_on_conflict!(self.put_entry(
                n,
                s.entry.both(),
                PutMode::Insert,
                &mut s.found
            )?);
        }
        self.log_put(s)?;
        Ok(Step::Done)
    }

    fn log_put(&mut self, s: &Scratch) -> Result<()> {
        if !self.table.state.is_logged() {
            return Ok(());
        }
        let redo = if s.redo.is_empty() {
            &s.payload
        } else {
            &s.redo
        };
        self.txn
            .log_put(self.inside, self.table.id(), &s.key, &[redo])
    }

    fn put_entry(
        &mut self,
        index: usize,
        (key, payload): (&[u8], &[u8]),
        mode: PutMode,
        found: &mut Vec<u8>,
    ) -> Result<Step> {
        let tree = &self.trees.indexes[index - 1];
        let unique = self.table.layout.indexes[index - 1].unique;
        let put = self.txn.try_put(
            self.inside,
            tree,
            key,
            payload,
            mode,
            unique.then_some(&mut *found),
        )?;
        match put {
            Put::Done { .. } => Ok(Step::Done),
            Put::Conflict(conflict) => Ok(Step::Wait(conflict)),
            Put::Changed => Err(Error::WriteConflict),
            Put::Duplicate if unique => {
                let row = entry::clustered_key(key, found)?.to_vec();
                *found = row;
                Err(Error::Duplicate { index })
            }
            Put::Duplicate => Err(impossible("an entry exists before its row")),
            Put::Missing => Err(impossible("an entry is missing")),
        }
    }

    /// Inserts an entry of a non-unique index, for a row that this transaction has inserted.
    pub fn insert_entry(&mut self, index: usize, key: &[u8], payload: &[u8]) -> Result<Step> {
        self.put_entry(index, (key, payload), PutMode::Insert, &mut Vec::new())
    }

    fn delete_entry(&mut self, tree: &Tree, key: &[u8]) -> Result<Step> {
        match self.txn.try_delete(self.inside, tree, key, None)? {
            Delete::Done => Ok(Step::Done),
            Delete::Conflict(conflict) => Ok(Step::Wait(conflict)),
            Delete::Changed => Err(Error::WriteConflict),
            Delete::Missing => Err(impossible("an entry is missing")),
        }
    }

    /// Replaces the row of `s.key` by `row`, which has the same key.
    ///
    /// Without `old_row`, reads the old row from the tree; it then has no values outside. `goes`: values that no longer
    /// belong to the row.
    pub fn update(
        &mut self,
        row: &[Value<'_>],
        old_row: Option<&[Value<'_>]>,
        goes: &[LargeRef],
        s: &mut Scratch,
    ) -> Result<Step> {
        let layout = &self.table.layout;
        s.found.clear();
        s.old.clear();
        let put = self.txn.try_put(
            self.inside,
            &self.trees.clustered,
            &s.key,
            &s.payload,
            PutMode::Update,
            old_row.is_none().then_some(&mut s.old),
        )?;
        match put {
            Put::Done { .. } => {}
            Put::Conflict(conflict) => return Ok(Step::Wait(conflict)),
            Put::Changed => return Err(Error::WriteConflict),
            Put::Missing => return Err(no_row()),
            Put::Duplicate => return Err(impossible("update")),
        }
        let decoded: Row<'_>;
        let old_row = match old_row {
            Some(old) => old,
            None if layout.indexes.is_empty() => &[],
            None => {
                let old = RowRef::new(layout, &s.key, &s.old)?;
                decoded = (0..layout.columns.len())
                    .map(|i| old.get(i))
                    .collect::<Result<_>>()?;
                &decoded
            }
        };
        for (n, index) in layout.indexes.iter().enumerate() {
            if index
                .parts
                .iter()
                .all(|p| old_row[p.column] == row[p.column])
            {
                continue;
            }
            s.old_entry.encode(self.table, index, old_row, &s.key)?;
            s.entry.encode(self.table, index, row, &s.key)?;
            if s.old_entry.key != s.entry.key {
                let tree = &self.trees.indexes[n];
                // In this order: a reader that copies a leaf between the two finds an entry of the row.
                return_on_conflict!(self.put_entry(
                    n + 1,
                    s.entry.both(),
                    PutMode::Insert,
                    &mut s.found
                )?);
                return_on_conflict!(self.delete_entry(tree, &s.old_entry.key)?);
            } else if s.old_entry.payload != s.entry.payload {
                return_on_conflict!(self.put_entry(
                    n + 1,
                    s.entry.both(),
                    PutMode::Update,
                    &mut s.found
                )?);
            }
        }
        self.free_on_purge(goes)?;
        self.log_put(s)?;
        Ok(Step::Done)
    }

    /// Has purge free values that the new row version does not refer to.
    fn free_on_purge(&mut self, values: &[LargeRef]) -> Result<()> {
        if let (Some(tree), false) = (&self.trees.large, values.is_empty()) {
            for &value in values {
                let note = large::note(tree.id(), value);
                self.txn.note_on_purge(self.inside, &note)?;
            }
        }
        Ok(())
    }

    pub fn delete(&mut self, key: &[u8], s: &mut Scratch) -> Result<Step> {
        let layout = &self.table.layout;
        s.old.clear();
        match self
            .txn
            .try_delete(self.inside, &self.trees.clustered, key, Some(&mut s.old))?
        {
            Delete::Done => {}
            Delete::Conflict(conflict) => return Ok(Step::Wait(conflict)),
            Delete::Changed => return Err(Error::WriteConflict),
            Delete::Missing => return Err(no_row()),
        }
        if self.trees.large.is_some() {
            let mut goes = Vec::new();
            large::references(layout, self.trees, key, &s.old, &mut goes)?;
            self.free_on_purge(&goes)?;
            large::bring_inside(self.trees, &mut s.old)?;
        }
        if !layout.indexes.is_empty() {
            let old = RowRef::new(layout, key, &s.old)?;
            let mut buffers = Vec::new();
            let row: Row<'_> = if self.trees.large.is_some() {
                large::values(layout, self.trees, old, false, &mut buffers)?.into()
            } else {
                (0..layout.columns.len())
                    .map(|i| old.get(i))
                    .collect::<Result<_>>()?
            };
            for (index, tree) in layout.indexes.iter().zip(&self.trees.indexes) {
                s.old_entry.encode(self.table, index, &row, key)?;
                return_on_conflict!(self.delete_entry(tree, &s.old_entry.key)?);
            }
        }
        if self.table.state.is_logged() {
            self.txn.log_delete(self.inside, self.table.id(), key)?;
        }
        Ok(Step::Done)
    }

    pub fn delete_and_insert(
        &mut self,
        old_key: &[u8],
        row: &[Value<'_>],
        s: &mut Scratch,
    ) -> Result<Step> {
        return_on_conflict!(self.delete(old_key, s)?);
        self.insert(row, Entries::All, s)
    }
}
