//! Filling a table of one session while it is created.
//!
//! The rows that a table is created with are part of its creation: a rollback of the transaction undoes neither. No
//! other session sees the table, so its rows need no versions. It does not outlive the process, so the log has none of
//! its rows, neither these nor later ones. A session that can't finish the fill drops the table, so no change needs
//! undo.

use crate::error::{Error, Result};
use crate::ids::TableId;
use crate::planted::{is_planted, PlantedFault};
use crate::row::{entry, Value};
use crate::session::scratch::Scratch;
use crate::session::transaction::Transaction;
use crate::table::open_table::{check_key, Table};
use crate::table::replay;
use crate::write::row::write_payload;

impl Transaction {
    /// Makes rows that are inserted into a new table of one session part of the table, whatever becomes of the
    /// transaction.
    ///
    /// This lasts until [`Transaction::end_fill`], an update or a delete in the table, or the end of the transaction.
    /// For tables of one session only ([`crate::TableOptions::of_one_session`]), just created. The caller must drop a
    /// table that it could not fill.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a table of many sessions, or of another database.
    pub fn begin_fill(&mut self, table: &Table) -> Result<()> {
        self.check_is_of(table)?;
        if !table.state.is_of_one_session() {
            return Err(Error::Invalid(
                "only a table that one session has for itself is filled without versions".into(),
            ));
        }
        if !is_planted(PlantedFault::FillIsUndone) {
            self.filling = table.id();
        }
        Ok(())
    }

    /// From here on, inserted rows belong to the transaction again.
    pub fn end_fill(&mut self) {
        self.filling = TableId(0);
    }

    /// Inserts a row into the table that is filled.
    #[cold]
    pub(super) fn fill(
        &mut self,
        table: &Table,
        key: Option<&[u8]>,
        row: &[Value<'_>],
        s: &mut Scratch,
    ) -> Result<()> {
        s.found.clear();
        s.encoder.measure(&table.layout, row)?;
        s.key.clear();
        match key {
            Some(key) => s.key.extend_from_slice(key),
            None => table.new_clustered_key(row, &mut s.key)?,
        }
        check_key(&s.key)?;
        write_payload(table, row, s)?;
        let trees = table.trees.load();
        self.shared.transactions.pool().check_room()?;
        let _inside = self.shared.transactions.barrier().enter();
        if replay::read_live(&trees.clustered, &s.key)?.is_some() {
            s.found.extend_from_slice(&s.key);
            return Err(Error::Duplicate { index: 0 });
        }
        for (n, index) in table.layout.indexes.iter().enumerate() {
            s.entry.encode(table, index, row, &s.key)?;
            if !index.unique {
                continue;
            }
            if let Some(there) = replay::read_live(trees.index(n + 1)?, &s.entry.key)? {
                let its_key = entry::clustered_key(&s.entry.key, &there)?;
                s.found.extend_from_slice(its_key);
                return Err(Error::Duplicate { index: n + 1 });
            }
        }
        replay::apply_put(table, &s.key, &s.payload)
    }
}
