//! Filling a table of one session while it is made.
//!
//! The rows with which a table comes to be are part of its creation: a rollback of the transaction in which
//! that happens takes away neither. Nobody else sees the table, so its rows need no versions; it does not
//! outlive the process, so the log has none of its rows, neither these nor later ones. Who does not get to
//! the end drops the table, so nothing need be undone.

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
    /// From here on rows that are inserted into a table that one session has for itself
    /// ([`crate::TableOptions::of_one_session`]), and that was made just now, are part of it, and stay
    /// whatever becomes of the transaction: until [`Transaction::end_fill`], an update or a delete in the
    /// table, or the end of the transaction. A table that could not be filled is to be dropped.
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

    /// Rows that are inserted are the transaction's again.
    pub fn end_fill(&mut self) {
        self.filling = TableId(0);
    }

    /// Inserts a row into the table that is being filled.
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
