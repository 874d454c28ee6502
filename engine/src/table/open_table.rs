//! An open table.

use std::sync::Arc;

use arc_swap::ArcSwap;

use super::cached_statistics::Statistics;
use super::state::TableState;
use crate::buffer::PoolWithThreads;
use crate::catalog::{Definition, TreeRoot};
use crate::error::{Error, Result};
use crate::ids::{TableId, MAX_KEY};
use crate::planted::{is_planted, PlantedFault};
use crate::row::key::{put_row_id, row_id};
use crate::row::layout::{KeyLayout, Layout, PartForm};
use crate::row::{large_format, Collations, NumberPlace, TableSchema, TextPlace, Value};
use crate::sync::atomic::Ordering;
use crate::sync::{Mutex, RwLock};
use crate::tree::{LeafImage, Position, Tree};

/// The number of an index of a table: 0 is the clustered one, n is `schema.indexes[n - 1]`.
pub type IndexId = usize;

/// The trees of a table.
pub(crate) struct TableTrees {
    pub clustered: Arc<Tree>,
    /// `indexes[n - 1]` is index n.
    pub indexes: Vec<Arc<Tree>>,
    pub large: Option<Arc<Tree>>,
}

impl TableTrees {
    /// Opens the trees of a definition.
    pub fn open(pool: &Arc<PoolWithThreads>, definition: &Definition) -> Result<Self> {
        let open = |root: &TreeRoot| Tree::open(pool, root.id, root.root).map(Arc::new);
        let (clustered, indexes) = definition
            .trees
            .split_first()
            .ok_or_else(|| Error::Internal("a table definition without trees".into()))?;
        Ok(TableTrees {
            clustered: open(clustered)?,
            indexes: indexes.iter().map(open).collect::<Result<_>>()?,
            large: definition.large.as_ref().map(open).transpose()?,
        })
    }

    /// The tree of an index.
    pub fn index(&self, index: IndexId) -> Result<&Arc<Tree>> {
        match index {
            0 => Some(&self.clustered),
            n => self.indexes.get(n - 1),
        }
        .ok_or_else(|| no_index(index))
    }

    /// All trees.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Tree>> {
        std::iter::once(&self.clustered)
            .chain(&self.indexes)
            .chain(&self.large)
    }
}

#[cold]
#[inline(never)]
fn no_index(index: IndexId) -> Error {
    Error::NotFound {
        what: "index",
        name: index.to_string(),
    }
}

/// Whether an encoded key is a whole key of a unique index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WholeKey {
    Yes,
    No,
    /// It has collated parts: only the collation knows where these end.
    Unknown,
}

/// An open table.
///
/// Cheap to share.
///
/// Valid until the table is dropped: then every operation returns [`Error::NotFound`]. Or until the database is closed:
/// transactions of another database, or of the next opening, refuse it with [`Error::Invalid`]. While a truncate or a
/// drop is under way, transactions that begin to use it get [`Error::Busy`].
pub struct Table {
    id: TableId,
    /// The pool of its database in the present opening.
    pool: Arc<PoolWithThreads>,
    name: RwLock<String>,
    /// Changes when columns or indexes are renamed.
    schema: RwLock<Arc<TableSchema>>,
    pub(crate) layout: Layout,
    pub(crate) trees: ArcSwap<TableTrees>,
    pub(crate) state: Arc<TableState>,
    pub(crate) collations: Option<Arc<dyn Collations>>,
    pub(super) statistics: Mutex<Statistics>,
}

impl Table {
    /// Opens a table.
    pub(crate) fn open(
        pool: &Arc<PoolWithThreads>,
        definition: &Definition,
        state: Arc<TableState>,
        collations: Option<Arc<dyn Collations>>,
    ) -> Result<Self> {
        let layout = Layout::new(&definition.schema)?;
        let trees = TableTrees::open(pool, definition)?;
        let mut key = Vec::new();
        if layout.hidden && last_key(&trees.clustered, &mut key)? {
            let last = row_id(&key).ok_or_else(|| {
                Error::Internal(format!("table {}: a row id is damaged", definition.name))
            })?;
            state.next_row_id.fetch_max(last + 1, Ordering::Relaxed);
        }
        if let Some(large) = &trees.large {
            if last_key(large, &mut key)? {
                let last = large_format::id_of(&key).ok_or_else(|| {
                    Error::Internal(format!(
                        "table {}: a large value's key is damaged",
                        definition.name
                    ))
                })?;
                state.next_large.fetch_max(last + 1, Ordering::Relaxed);
            }
        }
        Ok(Table {
            id: definition.id,
            pool: pool.clone(),
            name: RwLock::new(definition.name.clone()),
            schema: RwLock::new(Arc::new(definition.schema.clone())),
            layout,
            trees: ArcSwap::from_pointee(trees),
            state,
            collations,
            statistics: Mutex::default(),
        })
    }

    /// The table's number within the database, never reused.
    pub fn id(&self) -> TableId {
        self.id
    }

    /// Whether the table belongs to the open database with this pool.
    #[inline]
    pub(crate) fn is_of(&self, pool: &Arc<PoolWithThreads>) -> bool {
        Arc::ptr_eq(&self.pool, pool)
    }

    /// The table's present name.
    pub fn name(&self) -> String {
        self.name.read().clone()
    }

    pub(crate) fn set_name(&self, name: &str) {
        name.clone_into(&mut self.name.write());
    }

    /// The table's schema, with the present names of its columns and indexes.
    pub fn schema(&self) -> Arc<TableSchema> {
        Arc::clone(&self.schema.read())
    }

    pub(crate) fn set_schema(&self, schema: TableSchema) {
        *self.schema.write() = Arc::new(schema);
    }

    pub(crate) fn collations(&self) -> Option<&dyn Collations> {
        self.collations.as_deref()
    }

    #[inline]
    pub(crate) fn key_layout(&self, index: IndexId) -> Result<&KeyLayout> {
        self.layout.key(index).ok_or_else(|| no_index(index))
    }

    /// Encodes the first `values.len()` parts of an index's key for [`crate::Cursor::seek`].
    ///
    /// With all parts of index 0: a whole clustered key for [`crate::Transaction::get`], `update` and `delete`. A
    /// prefix part takes the whole value and cuts it. The clustered key of a table without a primary key is one
    /// [`Value::UInt`], the row id.
    ///
    /// A key longer than the longest possible one is cut one byte behind that length: no stored key equals it, and all
    /// stored keys compare with it as with the whole.
    ///
    /// # Errors
    /// `Error::NotFound` for an unknown index; `Error::Invalid` for too many values, or a value
    /// that does not fit its column's type.
    pub fn encode_key(&self, index: IndexId, values: &[Value<'_>]) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        self.encode_key_into(index, values, &mut out)?;
        Ok(out)
    }

    /// As [`Table::encode_key`], into a buffer that is cleared first.
    ///
    /// # Errors
    /// As [`Table::encode_key`].
    #[inline]
    pub fn encode_key_into(
        &self,
        index: IndexId,
        values: &[Value<'_>],
        out: &mut Vec<u8>,
    ) -> Result<()> {
        out.clear();
        // The most frequent case, without a call: a key of one integer.
        if let (0, [value], [part]) = (index, values, &self.layout.clustered.parts[..]) {
            if let Some(int) = part.plain_int(*value) {
                int.put(out);
                return Ok(());
            }
        }
        self.append_key(index, values, out)
    }

    #[inline(never)]
    fn append_key(&self, index: IndexId, values: &[Value<'_>], out: &mut Vec<u8>) -> Result<()> {
        if index == 0 && self.layout.hidden {
            match values {
                [] => {}
                [Value::UInt(id)] if *id < 1 << 48 => put_row_id(*id, out),
                _ => {
                    return Err(Error::Invalid(format!(
                        "the key of a table without a primary key is one row id below 2^48, \
                         not {values:?}"
                    )))
                }
            }
            return Ok(());
        }
        self.key_layout(index)?
            .encode_prefix(values, self.collations(), out)?;
        if is_planted(PlantedFault::RefuseLongSearch) {
            return check_key(out);
        }
        out.truncate(MAX_KEY + 1);
        Ok(())
    }

    /// Appends a new row's clustered key: its primary key, or a new row id.
    pub(crate) fn new_clustered_key(&self, row: &[Value<'_>], out: &mut Vec<u8>) -> Result<()> {
        if self.layout.hidden {
            let id = self.state.next_row_id.fetch_add(1, Ordering::Relaxed);
            put_row_id(id, out);
            return Ok(());
        }
        self.layout
            .clustered
            .encode_row(row, self.collations(), out)?;
        check_key(out)
    }

    /// Whether `key` is a whole key of a unique index, which then has at most one entry for it.
    pub(crate) fn whole_key(&self, index: IndexId, key: &[u8]) -> WholeKey {
        let Some(layout) = self.layout.key(index) else {
            return WholeKey::No;
        };
        if index == 0 && self.layout.hidden {
            return if key.len() == crate::row::key::ROW_ID_LEN {
                WholeKey::Yes
            } else {
                WholeKey::No
            };
        }
        if !layout.unique {
            return WholeKey::No;
        }
        let mut rest = key;
        for part in &layout.parts {
            if matches!(part.form, PartForm::Collated { .. }) {
                return WholeKey::Unknown;
            }
            match part.take(&mut rest, None) {
                Some(Some(_)) => {}
                _ => return WholeKey::No,
            }
        }
        if rest.is_empty() {
            WholeKey::Yes
        } else {
            WholeKey::No
        }
    }

    /// Whether an index-only cursor over `index` can return `column`.
    pub fn index_covers(&self, index: IndexId, column: usize) -> bool {
        self.layout.covers(index, column)
    }

    /// Where [`crate::Cursor::number`] finds a column; `None` if it must be read in another way.
    ///
    /// For a cursor that returns rows the index is 0.
    pub fn number_place(&self, index: IndexId, column: usize) -> Option<NumberPlace> {
        self.layout.number_place(index, column)
    }

    /// Where [`crate::Cursor::text`] finds a column, for index-only cursors; `None` if it must be read in another way.
    pub fn text_place(&self, index: IndexId, column: usize) -> Option<TextPlace> {
        self.layout.text_place(index, column)
    }

    /// The approximate number of rows: committed inserts less deletes.
    pub fn estimate_rows(&self) -> u64 {
        self.state.rows().max(0) as u64
    }

    /// Whether a prepared transaction without a decision has used the table.
    pub fn has_prepared(&self) -> bool {
        self.state.has_prepared()
    }

    /// The value that the next [`Table::reserve_auto_increment`] starts at.
    pub fn next_auto_increment(&self) -> u64 {
        self.state.next_auto()
    }

    /// Reserves `n` values v, v + increment, … of the form offset + k × increment, not less than the counter; returns
    /// the first.
    ///
    /// The counter moves an increment past the last. A rollback does not give values back. An `offset` of 0, or beyond
    /// `increment`, counts as 1.
    ///
    /// # Errors
    /// `Error::TooLarge` when the first value would pass `max`, or be 2^64 - 1, which the counter can't pass.
    pub fn reserve_auto_increment(
        &self,
        n: u64,
        increment: u64,
        offset: u64,
        max: u64,
    ) -> Result<u64> {
        self.state.reserve_auto(n, increment, offset, max)
    }

    /// Gives back unused values from `next` on that [`Table::reserve_auto_increment`] has reserved.
    ///
    /// `reserved_end` is the counter after that call, an increment behind the last value. If the counter has changed
    /// since, the values stay unused.
    pub fn return_auto_increment(&self, next: u64, reserved_end: u64) {
        self.state.return_auto(next, reserved_end);
    }

    /// Makes the counter at least `value`: after an insert of an explicit value, pass that value + 1.
    ///
    /// Becomes durable with the next commit that changes the table.
    pub fn set_auto_increment_at_least(&self, value: u64) {
        self.state.raise_auto(value);
    }
}

impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Table")
            .field("id", &self.id)
            .field("name", &self.name())
            .finish_non_exhaustive()
    }
}

/// Refuses keys that are too long for trees.
#[inline]
pub(crate) fn check_key(key: &[u8]) -> Result<()> {
    if key.len() > MAX_KEY {
        return Err(too_long());
    }
    Ok(())
}

#[cold]
#[inline(never)]
fn too_long() -> Error {
    Error::TooLarge(format!(
        "an encoded key has at most {MAX_KEY} bytes, and this one has more"
    ))
}

/// The greatest key of a tree, deleted or not; false if the tree is empty.
fn last_key(tree: &Tree, key: &mut Vec<u8>) -> Result<bool> {
    let mut image = LeafImage::new();
    if !tree.copy_leaf(Position::Last, &mut image)? || image.count() == 0 {
        return Ok(false);
    }
    image.key(image.count() - 1, key);
    Ok(true)
}
