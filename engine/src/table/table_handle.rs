//! An open table.

use crate::error::{Error, Result};
use crate::ids::TableId;
use crate::row::{TableSchema, Value};

/// The number of an index of a table: 0 is the clustered one, n is `schema.indexes[n - 1]`.
pub type IndexId = usize;

/// An open table. Cheap to share; stays valid until the table is dropped, after which every
/// operation returns [`Error::NotFound`].
pub struct Table {
    _private: (),
}

fn later<T>() -> Result<T> {
    Err(Error::Internal("not yet".into()))
}

impl Table {
    /// The table's number within the database, never reused.
    pub fn id(&self) -> TableId {
        TableId(0)
    }

    /// The table's present name.
    pub fn name(&self) -> String {
        String::new()
    }

    /// The schema it was created with.
    pub fn schema(&self) -> &TableSchema {
        unimplemented!()
    }

    /// Encodes the first `values.len()` parts of an index's key for [`crate::Cursor::seek`], or
    /// a whole clustered key (index 0) for [`crate::Transaction::get`], `update` and `delete`.
    /// A prefix part takes the whole value and cuts it.
    ///
    /// # Errors
    /// `Error::Invalid` for an unknown index, too many values, or a value that does not fit its
    /// column's type.
    pub fn encode_key(&self, index: IndexId, values: &[Value<'_>]) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        self.encode_key_into(index, values, &mut out)?;
        Ok(out)
    }

    /// As [`Table::encode_key`], into a buffer that is cleared first.
    pub fn encode_key_into(
        &self,
        _index: IndexId,
        _values: &[Value<'_>],
        _out: &mut Vec<u8>,
    ) -> Result<()> {
        later()
    }

    /// Whether an index-only cursor over `index` can return `column`.
    pub fn index_covers(&self, _index: IndexId, _column: usize) -> bool {
        false
    }

    /// About how many rows there are: the count of committed inserts less deletes.
    pub fn estimate_rows(&self) -> u64 {
        0
    }

    /// About how many entries of an index lie between two encoded key prefixes, both inclusive
    /// (every entry that starts with `hi` counts as inside). `None` is open.
    pub fn estimate_range(
        &self,
        _index: IndexId,
        _lo: Option<&[u8]>,
        _hi: Option<&[u8]>,
    ) -> Result<u64> {
        later()
    }

    /// About how many different values each prefix of an index's key has: element n counts the
    /// first n + 1 parts. Sampled, cached, refreshed by [`Table::analyze`].
    pub fn cardinality(&self, _index: IndexId) -> Vec<u64> {
        Vec::new()
    }

    /// Samples the indexes anew for [`Table::cardinality`].
    pub fn analyze(&self) -> Result<()> {
        later()
    }

    /// About how many bytes of pages the table takes: rows and large values, and its secondary
    /// indexes.
    pub fn size_bytes(&self) -> (u64, u64) {
        (0, 0)
    }

    /// The value that the next [`Table::reserve_auto_increment`] starts at.
    pub fn next_auto_increment(&self) -> u64 {
        0
    }

    /// Takes `n` values v, v + increment, … of the form offset + k × increment, not smaller than
    /// the counter; returns the first. The counter moves past the last. Values are not given
    /// back by rollback.
    ///
    /// # Errors
    /// `Error::TooLarge` when the counter would pass `max`.
    pub fn reserve_auto_increment(
        &self,
        _n: u64,
        _increment: u64,
        _offset: u64,
        _max: u64,
    ) -> Result<u64> {
        later()
    }

    /// Makes the counter at least `value` (after a row came with an explicit value, pass that
    /// value + 1).
    pub fn set_auto_increment_at_least(&self, _value: u64) {}
}
