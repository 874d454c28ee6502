//! Reading the rows of many clustered keys at once.
//!
//! Reads one by one would each wait alone for memory or for the disk. [`Transaction::multi_get`] finds the leaves of
//! several keys before it reads their rows. It reads the leaves that are not in memory at the same time (RocksDB's
//! MultiGet; the batched key access of servers' joins).

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::read::mini_page::Projection;
use crate::read::options::{CursorOptions, RowLock};
use crate::read::row_batch::Batch;
use crate::read::row_view::RowView;
use crate::row::key_bytes::KeyBytes;
use crate::row::projection::ColumnSet;
use crate::session::transaction::Transaction;
use crate::table::open_table::Table;

/// Clustered keys of a table, and their rows once [`Transaction::multi_get`] has read them.
///
/// Reuses its memory.
///
/// ```
/// # use peregrine::{Column, ColumnType, Database, Isolation, Key, MultiGet, Options, TableSchema, Value};
/// # fn main() -> peregrine::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = Database::open(dir.path().join("db"), Options::default())?;
/// # let people = db.create_table(
/// #     "people",
/// #     &TableSchema {
/// #         columns: vec![
/// #             Column::new("id", ColumnType::Int { bytes: 4, signed: false }),
/// #             Column::new("name", ColumnType::VarBytes { max: 64 }),
/// #         ],
/// #         primary: Some(Key::new(&[0])),
/// #         indexes: vec![],
/// #         user: vec![],
/// #     },
/// # )?;
/// # let mut txn = db.begin(Isolation::RepeatableRead);
/// # for (id, name) in [(1u32, "Ada"), (2, "Grace"), (3, "Edsger")] {
/// #     txn.insert(&people, &[id.into(), name.into()])?;
/// # }
/// # txn.commit()?;
/// let mut friends = MultiGet::new(&people);
/// for id in [3, 4, 1] {
///     friends.add(&people.encode_key(0, &[Value::UInt(id)])?)?;
/// }
/// txn.multi_get(&mut friends)?;
/// assert_eq!(friends.row(0)?.unwrap().get(1)?, Value::Bytes(b"Edsger"));
/// assert!(friends.row(1)?.is_none());
/// assert_eq!(friends.row(2)?.unwrap().get(1)?, Value::Bytes(b"Ada"));
/// # drop(txn);
/// # db.close()
/// # }
/// ```
pub struct MultiGet {
    table: Arc<Table>,
    columns: Option<ColumnSet>,
    batch: Batch,
    /// A row that is stored outside its page as a whole.
    brought: Vec<u8>,
}

impl MultiGet {
    /// The most keys that one call reads.
    pub const MOST: usize = 512;

    /// No keys of a table.
    pub fn new(table: &Arc<Table>) -> Self {
        MultiGet {
            table: table.clone(),
            columns: None,
            batch: Batch::default(),
            brought: Vec::new(),
        }
    }

    /// The table.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// Sets the columns that the caller will read from the rows; `None`, the default, is all.
    ///
    /// A row whose page is not in memory may come without the other columns: reading one of these is then an error.
    pub fn set_columns(&mut self, columns: Option<&[usize]>) {
        self.columns = columns.and_then(ColumnSet::of);
    }

    /// Removes all keys and rows.
    pub fn clear(&mut self) {
        self.batch.clear();
    }

    /// Adds an encoded clustered key, which may be a duplicate.
    ///
    /// It has no row until [`Transaction::multi_get`] reads it.
    ///
    /// # Errors
    /// [`Error::Invalid`] when there are [`MultiGet::MOST`] already.
    pub fn add(&mut self, clustered_key: &[u8]) -> Result<()> {
        if self.batch.len() == Self::MOST {
            return Err(Error::Invalid(format!(
                "more than {} keys to be read at once",
                Self::MOST
            )));
        }
        self.batch.add_row(clustered_key);
        Ok(())
    }

    /// The row of the `n`th key added, counted from 0; `None` if there is none.
    ///
    /// # Errors
    /// [`Error::Internal`] when the bytes are no row.
    #[inline]
    pub fn row(&self, n: usize) -> Result<Option<RowView<'_>>> {
        let Some((key, row)) = self.batch.found(n) else {
            return Ok(None);
        };
        RowView::row(&self.table, KeyBytes::Here(key), row).map(Some)
    }
}

impl Transaction {
    /// Reads the rows of all keys, each as [`Transaction::get`] does.
    ///
    /// # Errors
    /// As [`Transaction::get`]; after an error no key has a row.
    pub fn multi_get(&mut self, rows: &mut MultiGet) -> Result<()> {
        self.enter_table(&rows.table)?;
        let trees = rows.table.trees.load();
        let (batch, buffer) = (&mut rows.batch, &mut rows.brought);
        batch.forget_rows();
        let result = if self.read_lock(RowLock::None).is_some() {
            batch.fetch_locked(self, &trees, &CursorOptions::default(), false, buffer)
        } else {
            let view = self.read_view(None);
            let asked = Projection::of(&rows.table, rows.columns);
            batch.fetch(self, &trees, &view, asked, buffer)
        };
        if result.is_err() {
            batch.forget_rows();
        }
        result
    }
}
