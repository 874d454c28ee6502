//! Statistics for the optimizer of the embedding program: ranges, cardinalities, sizes.
//!
//! Cardinality is sampled. A walk over an index counts how often a key prefix changes from entry to entry. If a prefix
//! fills the rest of a leaf, the walk seeks the next different one instead of reading on. So an index with few
//! different values is counted exactly; of one with many values, only the beginning is. The rest is estimated from
//! several pieces spread over its leaves, scaled by the number of entries.

use super::key_prefix::successor;
use super::large;
use super::open_table::{IndexId, Table, TableTrees};
use crate::error::{Error, Result};
use crate::ids::PAGE_SIZE;
use crate::knobs;
use crate::mvcc::live_payload;
use crate::planted::{is_planted, PlantedFault};
use crate::row::payload::{self, Field, LargeRef, RowRef};
use crate::row::{entry, Value};
use crate::sync::Moment;
use crate::tree::{LeafImage, Position, Tree};

#[cfg(test)]
mod tests;

/// Bytes of a row, or of an index entry, if no better estimate exists.
const GUESSED_BYTES: u64 = 100;

impl Table {
    /// The approximate number of index entries between two encoded key prefixes, both inclusive.
    ///
    /// Every entry that starts with `hi` counts as inside. `None` is open.
    ///
    /// # Errors
    /// `Error::NotFound` for an unknown index; those of reading pages.
    pub fn estimate_range(
        &self,
        index: IndexId,
        lo: Option<&[u8]>,
        hi: Option<&[u8]>,
    ) -> Result<u64> {
        let trees = self.trees.load();
        let tree = trees.index(index)?;
        let behind = hi.and_then(successor);
        tree.estimate_range(lo, behind.as_deref())
    }

    /// The approximate number of different values of each prefix of an index's key: element n is for the first n + 1
    /// parts.
    ///
    /// Sampled at the first call, and kept until [`Table::analyze`], or until the table has grown or shrunk by half.
    ///
    /// # Errors
    /// `Error::NotFound` for an unknown index; those of reading pages.
    pub fn cardinality(&self, index: IndexId) -> Result<Vec<u64>> {
        self.key_layout(index)?;
        let rows = self.estimate_rows();
        {
            let known = self.statistics.lock();
            let near = known.rows / 2..=known.rows + known.rows / 2 + 100;
            let found = known.cardinality.get(index).and_then(Option::as_ref);
            if let (Some(found), true) = (found, near.contains(&rows)) {
                return Ok(found.clone());
            }
        }
        let sampled = self.analyze();
        let known = self.statistics.lock();
        match known.cardinality.get(index).cloned().flatten() {
            // Perhaps only another index can't be read.
            Some(found) => Ok(found),
            None => sampled.map(|()| Vec::new()),
        }
    }

    /// Samples the indexes anew for [`Table::cardinality`].
    ///
    /// # Errors
    /// Those of reading pages. Indexes that can be read are sampled nevertheless.
    pub fn analyze(&self) -> Result<()> {
        let rows = self.estimate_rows();
        let trees = self.trees.load();
        let mut cardinality = Vec::new();
        let mut sampled = Ok(());
        for index in 0..=self.layout.indexes.len() {
            cardinality.push(match self.sample(&trees, index) {
                Ok(found) => Some(found),
                Err(error) if is_planted(PlantedFault::EstimateAllOrNothing) => return Err(error),
                Err(error) => {
                    sampled = sampled.and(Err(error));
                    None
                }
            });
        }
        let mut known = self.statistics.lock();
        known.cardinality = cardinality;
        known.rows = rows;
        known.sizes = None;
        known.guessed = None;
        sampled
    }

    /// Counts the different values of each prefix of an index's key.
    fn sample(&self, trees: &TableTrees, index: IndexId) -> Result<Vec<u64>> {
        let tree = trees.index(index)?;
        let parts = self.key_layout(index)?.parts.len();
        let total = tree.estimate_records()?;
        let unique = self.key_layout(index)?.unique;
        let mut sample = Sample::new(self, trees, tree, index);
        let mut found: Vec<u64> = Vec::new();
        for part in 1..=parts {
            let n = if unique && part == parts {
                total
            } else {
                sample.distinct(part, total)?
            };
            // A longer prefix has at least as many values, and at most as many as there are entries.
            let least = found.last().copied().unwrap_or(0);
            found.push(n.max(least).min(total.max(1)));
        }
        Ok(found)
    }

    /// Bytes of the table's pages: of rows and large values, and of secondary indexes.
    ///
    /// # Errors
    /// Those of reading pages.
    pub fn size_bytes(&self) -> Result<(u64, u64)> {
        if let Some((when, sizes)) = self.statistics.lock().sizes {
            if crate::sync::since(when) < knobs::sizes_last() {
                return Ok(sizes);
            }
        }
        let sizes = self.sizes(&mut page_bytes)?;
        self.statistics.lock().sizes = Some((crate::sync::now(), sizes));
        Ok(sizes)
    }

    /// As [`Table::size_bytes`], but never fails: guesses the size of a tree that can't be read from the number of
    /// rows.
    ///
    /// The first time, also returns the error.
    pub fn guess_size_bytes(&self) -> ((u64, u64), Option<Error>) {
        let guessed = self.statistics.lock().guessed;
        if let Some((when, sizes)) = guessed {
            // Do not read damaged pages for each statement.
            if crate::sync::since(when) < knobs::sizes_last() {
                return (sizes, None);
            }
        }
        let mut failed = match self.size_bytes() {
            Ok(sizes) => return (sizes, None),
            Err(error) => Some(error),
        };
        let guess = self.estimate_rows().saturating_mul(GUESSED_BYTES);
        let or_guess =
            &mut |tree: &Tree| Ok(page_bytes(tree).unwrap_or(guess.max(PAGE_SIZE as u64)));
        let sizes = self.sizes(or_guess).unwrap_or((guess, guess));
        let mut known = self.statistics.lock();
        known.guessed = Some((crate::sync::now(), sizes));
        if std::mem::replace(&mut known.told, true) {
            failed = None;
        }
        (sizes, failed)
    }

    /// Adds up `of` over the trees.
    fn sizes(&self, of: &mut dyn FnMut(&Tree) -> Result<u64>) -> Result<(u64, u64)> {
        let trees = self.trees.load();
        let mut rows = of(&trees.clustered)?;
        if let Some(large) = &trees.large {
            rows = rows.saturating_add(of(large)?);
        }
        let mut indexes: u64 = 0;
        for tree in &trees.indexes {
            indexes = indexes.saturating_add(of(tree)?);
        }
        Ok((rows, indexes))
    }
}

/// Bytes of a tree's pages.
fn page_bytes(tree: &Tree) -> Result<u64> {
    let stats = tree.stats()?;
    Ok((stats.inner_pages + stats.leaf_pages) * PAGE_SIZE as u64)
}

/// A count of different prefixes of an index's keys.
struct Sample<'a> {
    table: &'a Table,
    trees: &'a TableTrees,
    tree: &'a Tree,
    index: IndexId,
    image: LeafImage,
    key: Vec<u8>,
    /// The prefix counted last; empty before the first.
    last: Vec<u8>,
}

/// Result for a piece of an index.
struct Piece {
    distinct: u64,
    /// Where the piece ended; `None` at the end of the index.
    stopped: Option<Vec<u8>>,
}

impl<'a> Sample<'a> {
    fn new(table: &'a Table, trees: &'a TableTrees, tree: &'a Tree, index: IndexId) -> Self {
        Sample {
            table,
            trees,
            tree,
            index,
            image: LeafImage::new(),
            key: Vec::new(),
            last: Vec::new(),
        }
    }

    /// The approximate number of different prefixes of `parts` parts among `total` entries.
    fn distinct(&mut self, parts: usize, total: u64) -> Result<u64> {
        let first = self.piece(Position::First, parts, knobs::statistics_first_leaves())?;
        let Some(stopped) = first.stopped else {
            return Ok(first.distinct);
        };
        let counted = self.tree.estimate_range(None, Some(&stopped))?;
        // Cut by leaves, not by key values: a key far behind all others would make the cuts miss them.
        let cuts = self.tree.cuts(&stopped, None, knobs::statistics_pieces())?;
        let (mut distinct, mut entries) = (0, 0);
        let mut passed = stopped;
        for from in cuts {
            if from < passed {
                continue;
            }
            let at = Position::AtOrAfter(&from);
            let piece = self.piece(at, parts, knobs::statistics_piece_leaves())?;
            distinct += piece.distinct;
            let to = piece.stopped.as_deref();
            entries += self.tree.estimate_range(Some(&from), to)?;
            match piece.stopped {
                Some(stopped) => passed = stopped,
                None => break,
            }
        }
        let (of, among) = match entries {
            0 => (first.distinct, counted),
            _ => (distinct, entries),
        };
        let share = (of as f64 / among.max(1) as f64).min(1.0);
        let rest = total.saturating_sub(counted);
        Ok(first.distinct + (share * rest as f64) as u64)
    }

    /// Counts different prefixes from a position on, over `leaves` leaves.
    fn piece(&mut self, from: Position<'_>, parts: usize, leaves: usize) -> Result<Piece> {
        let mut distinct = 0;
        self.last.clear();
        let mut more = self.tree.copy_leaf(from, &mut self.image)?;
        let mut at = match from {
            Position::AtOrAfter(key) if more => self.image.lower_bound(key).0,
            _ => 0,
        };
        for _ in 0..leaves {
            if !more {
                return Ok(Piece {
                    distinct,
                    stopped: None,
                });
            }
            let mut ended_same = false;
            while at < self.image.count() {
                self.image.key(at, &mut self.key);
                if !self.last.is_empty() && self.key.starts_with(&self.last) {
                    ended_same = true;
                } else if let Some(end) = self.prefix_end(at, parts)? {
                    ended_same = false;
                    distinct += 1;
                    self.last.clear();
                    self.last.extend_from_slice(&self.key[..end]);
                }
                at += 1;
            }
            at = 0;
            match successor(&self.last) {
                // The prefix may go on for many leaves: skip them.
                Some(next) if ended_same => {
                    more = self
                        .tree
                        .copy_leaf(Position::AtOrAfter(&next), &mut self.image)?;
                    at = if more {
                        self.image.lower_bound(&next).0
                    } else {
                        0
                    };
                }
                _ => more = self.tree.copy_next_leaf(&mut self.image)?,
            }
        }
        Ok(Piece {
            distinct,
            stopped: more.then(|| self.last.clone()),
        })
    }

    /// Where the first `parts` parts of record `at`'s key end.
    ///
    /// `None` for a deleted record, and for one whose end can't be found any more.
    fn prefix_end(&self, at: usize, parts: usize) -> Result<Option<usize>> {
        let Some(payload) = live_payload(self.image.value(at))? else {
            return Ok(None);
        };
        let layout = self.table.key_layout(self.index)?;
        if self.index != 0 {
            return entry::end_of(layout, parts, &self.key, payload).map(Some);
        }
        if let Some(end) = layout.end_of(parts, &self.key) {
            return Ok(Some(end));
        }
        self.table.state.moments.come_to(Moment::RowSampled);
        // A collated part: only its value tells its length. Values outside the leaf may be gone since the leaf was
        // copied, and the row changed or deleted.
        let outside = match payload::outside_row(payload) {
            Some(whole) => match self.read(whole, u64::MAX)? {
                Some(bytes) => Some(bytes),
                None => return Ok(None),
            },
            None => None,
        };
        let payload = outside.as_deref().unwrap_or(payload);
        let row = RowRef::new(&self.table.layout, &self.key, payload)?;
        let mut prefix = Vec::new();
        for part in &layout.parts[..parts] {
            let bytes;
            let value = match row.field(part.column)? {
                Field::Value(value) => value,
                Field::Outside(at) if is_planted(PlantedFault::SampleWholeRows) => {
                    Value::OutOfRow(at.len)
                }
                Field::Outside(at) => match self.read(at, self.needed_of(part.column))? {
                    Some(found) => {
                        bytes = found;
                        Value::Bytes(&bytes)
                    }
                    None => return Ok(None),
                },
            };
            part.encode(value, self.table.collations(), &mut prefix)?;
        }
        Ok(Some(prefix.len().min(self.key.len())))
    }

    /// The first `limit` bytes of a value outside its leaf; `None` if it is gone.
    fn read(&self, value: LargeRef, limit: u64) -> Result<Option<Vec<u8>>> {
        if is_planted(PlantedFault::SampleWholeRows) {
            let mut bytes = Vec::new();
            large::read(self.trees, value, limit, &mut bytes)?;
            return Ok(Some(bytes));
        }
        large::read_if_there(self.trees, value, limit)
    }

    /// Bytes of a column that keys need.
    fn needed_of(&self, column: usize) -> u64 {
        self.table.layout.prefix_need(column).bytes()
    }
}
