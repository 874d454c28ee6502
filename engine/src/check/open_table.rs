//! Checks of a table while others use it.
//!
//! A check reads each node of each tree in its present state: whether its keys are in order, and whether it is the node
//! to which its parent leads. It takes rows and index entries from one snapshot, so that changes meanwhile do not
//! matter: every entry must lead to a row with the same values, and each index must have as many entries as there are
//! rows. It does not read pages that are in memory from disk again; the check of a closed database does.

use std::io::ErrorKind;
use std::sync::Arc;

use super::table::{check_row, compare};
use super::{key_beginning, of_record, Report, TableReport};
use crate::error::{Error, Result};
use crate::mvcc::{Header, ReadView};
use crate::planted::{is_planted, PlantedFault};
use crate::row::entry::{self, EntryBuffer};
use crate::session::Transaction;
use crate::table::Table;
use crate::tree::{LeafImage, Position, Tree};

struct Check<'a> {
    table: &'a Table,
    txn: &'a crate::txn::TreeTransaction,
    view: ReadView,
    interrupted: &'a dyn Fn() -> bool,
    report: &'a mut Report,
}

/// The text of an error that is a fault in the table; other errors end the check.
///
/// A temporary error, such as a pool without a free page or a read that fails, is no fault of the table.
pub(super) fn fault(error: Error) -> Result<String> {
    let is_fault = match &error {
        // The last two: the bytes are no valid row, entry or key.
        Error::Corrupt { .. }
        | Error::Format { .. }
        | Error::Internal(_)
        | Error::Invalid(_)
        | Error::NotFound { .. } => true,
        // The file was cut off.
        Error::Io { source, .. } if source.kind() == ErrorKind::UnexpectedEof => true,
        Error::Interrupted | Error::Stopped(_) | Error::OutOfMemory { .. } => false,
        _ => is_planted(PlantedFault::PassingIsDamage),
    };
    match is_fault {
        true => Ok(error.to_string()),
        false => Err(error),
    }
}

/// Checks a table as a transaction sees it, which has not been used for anything else.
///
/// Calls `interrupted` at every page.
///
/// # Errors
/// [`Error::Interrupted`]; [`Error::Stopped`]; [`Error::OutOfMemory`]; errors that are no faults of the table:
/// [`Error::Io`] of a read that fails, and [`Error::TooLarge`] when all of the buffer pool is in use.
pub fn check_open_table(
    table: &Arc<Table>,
    txn: &mut Transaction,
    interrupted: &dyn Fn() -> bool,
    report: &mut Report,
) -> Result<()> {
    let (txn, view) = txn.look_at(table)?;
    let mut check = Check {
        table,
        txn,
        view,
        interrupted,
        report,
    };
    let trees = table.trees.load_full();
    let name = table.name();
    let mut sound = Vec::new();
    for tree in trees.all() {
        sound.push(check.structure(tree, &name)?);
    }
    // If the clustered tree has a fault, rows and entries can't be compared.
    if sound[0] {
        let mut found = TableReport {
            name,
            ..TableReport::default()
        };
        found.rows = check.rows(&trees.clustered, &found.name)?;
        for (n, index) in table.schema().indexes.iter().enumerate() {
            if !sound[n + 1] {
                continue;
            }
            let entries = check.entries(&trees.clustered, &trees.indexes[n], n + 1, &index.name)?;
            if entries != found.rows {
                check.report.problem(format!(
                    "table {}: index {} has {entries} entries for {} rows",
                    found.name, index.name, found.rows
                ));
            }
            found.indexes.push((index.name.clone(), entries));
        }
        report.tables.push(found);
    }
    Ok(())
}

impl Check<'_> {
    fn go_on(&self) -> Result<()> {
        match (self.interrupted)() {
            true => Err(Error::Interrupted),
            false => Ok(()),
        }
    }

    /// Checks the nodes of a tree; returns false after a fault.
    fn structure(&mut self, tree: &Tree, name: &str) -> Result<bool> {
        let (interrupted, report) = (self.interrupted, &mut *self.report);
        let result = tree.verify_in_use(&mut || {
            report.pages += 1;
            match interrupted() {
                true => Err(Error::Interrupted),
                false => Ok(()),
            }
        });
        if let Err(error) = result {
            let text = fault(error)?;
            self.report.problem(format!("table {name}: {text}"));
            return Ok(false);
        }
        Ok(true)
    }

    /// Puts the payload of a record that the snapshot sees into `out`; returns false if it sees none.
    fn see(&self, tree: &Tree, key: &[u8], out: &mut Vec<u8>) -> Result<bool> {
        out.clear();
        let found = self.txn.read(tree, key, &self.view, |payload| {
            out.extend_from_slice(payload)
        })?;
        Ok(found.is_some())
    }

    /// Calls `look` with every record of an index that the snapshot sees; returns their number.
    fn each(
        &mut self,
        tree: &Tree,
        index: usize,
        what: &str,
        mut look: impl FnMut(&Self, &[u8], &[u8]) -> Result<()>,
    ) -> Result<u64> {
        let mut seen = 0;
        let mut image = LeafImage::new();
        let (mut key, mut payload) = (Vec::new(), Vec::new());
        // A leaf that was merged with the one before it has records that this has already checked.
        let mut passed: Option<Vec<u8>> = None;
        let mut more = tree.copy_leaf(Position::First, &mut image)?;
        while more {
            self.go_on()?;
            for i in 0..image.count() {
                image.key(i, &mut key);
                if passed.as_ref().is_some_and(|passed| key <= *passed) {
                    continue;
                }
                let outcome = Header::decode(image.value(i))
                    .and_then(|_| self.see(tree, &key, &mut payload))
                    .and_then(|found| {
                        seen += u64::from(found);
                        match found {
                            true => look(self, &key, &payload),
                            false => Ok(()),
                        }
                    });
                if let Err(error) = outcome {
                    let text = fault(error)?;
                    self.report
                        .problem(of_record(what, &self.table.layout, index, &key, &text));
                }
            }
            if image.count() != 0 {
                let last = passed.get_or_insert_default();
                if key > *last {
                    std::mem::swap(last, &mut key);
                }
            }
            more = tree.copy_next_leaf(&mut image)?;
        }
        Ok(seen)
    }

    /// Decodes every column of every row, and reads values outside the rows.
    fn rows(&mut self, tree: &Tree, name: &str) -> Result<u64> {
        self.each(tree, 0, &format!("table {name}"), |check, key, payload| {
            check_row(check.table, key, payload)
        })
    }

    /// Checks every entry of an index against its row.
    fn entries(
        &mut self,
        clustered: &Tree,
        tree: &Tree,
        index: usize,
        index_name: &str,
    ) -> Result<u64> {
        let mut row = Vec::new();
        let mut buffer = EntryBuffer::default();
        let what = format!("table {}: index {index_name}", self.table.name());
        self.each(tree, index, &what, |check, key, payload| {
            let leads_to = entry::clustered_key(key, payload)?;
            if !check.see(clustered, leads_to, &mut row)? {
                let row = key_beginning(&check.table.layout, 0, leads_to);
                return Err(Error::Internal(format!("the entry leads to no row {row}")));
            }
            compare(check.table, index, key, payload, &mut row, &mut buffer)
        })
    }
}
