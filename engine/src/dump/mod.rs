//! Reading a damaged database as far as possible, without writing to it.
//!
//! A dump gives the state that recovery would make, built in memory. It has the last checkpoint's rows; for
//! transactions that were running then, the versions before their changes; and over these the changes that the log has
//! as committed since. If pages are damaged, the dump gives the rows of all others, and reports each missing part:
//! which keys, which page, and why.
//!
//! A dump gives no row that was not committed. If the last state of a row is uncertain, it reports only that the row is
//! missing.
//!
//! | file | holds |
//! |---|---|
//! | `nodes.rs` | the nodes of a tree, one by one from the file, past those that are damaged |
//! | `definitions.rs` | the definitions that the catalog still has |
//! | `changes.rs` | the changes that the log has as committed after the checkpoint |
//! | `rows.rs` | the rows of a table |
#![forbid(unsafe_code)]

mod changes;
mod definitions;
mod nodes;
mod rows;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use self::changes::{Changes, TableChanges};
use self::nodes::Nodes;
use crate::catalog::Definition;
use crate::error::{Error, Result};
use crate::ids::{TableId, TxId};
use crate::log::{Log, LOG_DIR};
use crate::os::{Os, RealOs};
use crate::recovery::{Meta, QuarantineFiles};
use crate::row::{OwnedValue, TableSchema};
use crate::settings::TableOptions;
use crate::store::Store;

/// A part of the database that can't be read.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Missing {
    /// Description of the missing part: the rows of which keys of which table, or else.
    pub what: String,
    /// The reason: the error that names file, offset and page.
    pub why: Error,
}

impl std::fmt::Display for Missing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.what, self.why)
    }
}

/// The function that [`Dump::rows`] calls with each row, in the order of the clustered key.
pub type RowVisitor<'a> = dyn FnMut(&[OwnedValue]) -> Result<()> + 'a;

/// A database, perhaps a damaged one, opened to read as much of it as possible.
pub struct Dump {
    store: Arc<Store>,
    running: HashSet<TxId>,
    tables: BTreeMap<String, DumpTable>,
    missing: Vec<Missing>,
    state: String,
}

/// A table of a [`Dump`].
struct DumpTable {
    definition: Definition,
    changes: TableChanges,
}

impl Dump {
    /// Opens the database in a directory, which no other process may change meanwhile.
    ///
    /// Writes nothing.
    ///
    /// # Errors
    /// If nothing of it can be read: no data file, another format, both headers or the whole place table damaged. If
    /// bytes that were read can't be read again, or if there is no memory for them.
    pub fn open(dir: impl AsRef<Path>) -> Result<Dump> {
        Dump::open_on(RealOs::new(), dir)
    }

    /// As [`Dump::open`], on another implementation of the operating system.
    ///
    /// # Errors
    /// As [`Dump::open`].
    #[doc(hidden)]
    pub fn open_on(os: Arc<dyn Os>, dir: impl AsRef<Path>) -> Result<Dump> {
        let dir = dir.as_ref();
        let mut damage = Vec::new();
        let (store, meta) = Store::open_damaged(os.clone(), dir, &mut damage)?;
        let store = Arc::new(store);
        let mut missing: Vec<Missing> = damage
            .into_iter()
            .map(|why| Missing {
                what: "a part of the data file's own tables".into(),
                why,
            })
            .collect();
        if meta.is_empty() {
            // Its creation ended before the first checkpoint: it is empty.
            return Ok(Dump {
                store,
                running: HashSet::new(),
                tables: BTreeMap::new(),
                missing,
                state: "a database that was being created".into(),
            });
        }
        let meta = Meta::decode(&meta, store.path())?;
        let nodes = Nodes::new(store.clone());
        let definitions = definitions::load(&nodes, meta.catalog, &mut missing);
        let mut changes = Changes::new(definitions, &meta.counters);
        match QuarantineFiles::new(os.clone(), dir, store.database_id()).load() {
            Ok(asides) => changes.add_quarantined(asides, &mut missing),
            Err(why) => missing.push(Missing {
                what: "changes of quarantined tables".into(),
                why,
            }),
        }
        let log_dir = dir.join(LOG_DIR);
        let read = |from| Log::read_only(os.clone(), &log_dir, store.database_id(), from);
        let log = changes.read(&meta, &read)?;
        let mut state = match &log {
            None => format!(
                "the state after recovery: the last checkpoint, and {} transactions that the log \
                 has after it",
                changes.transactions
            ),
            Some(_) => format!(
                "the last checkpoint, and {} transactions after it, up to where the log can be read",
                changes.transactions
            ),
        };
        if changes.prepared != 0 {
            state += &format!(
                "; left out: {} prepared transactions, which wait to be committed or rolled back",
                changes.prepared
            );
        }
        if let Some(why) = log {
            missing.push(Missing {
                what: "what was committed after the readable part of the log".into(),
                why,
            });
        }
        let tables = changes.into_tables(&mut missing);
        Ok(Dump {
            store,
            running: meta.transactions.running().collect(),
            tables: tables
                .into_iter()
                .map(|(definition, changes)| {
                    let name = definition.name.clone();
                    let table = DumpTable {
                        definition,
                        changes,
                    };
                    (name, table)
                })
                .collect(),
            missing,
            state,
        })
    }

    /// The names of the known tables, sorted.
    pub fn table_names(&self) -> impl Iterator<Item = &str> {
        self.tables.keys().map(String::as_str)
    }

    /// A table's columns and keys.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub fn schema(&self, table: &str) -> Result<&TableSchema> {
        Ok(&self.table(table)?.definition.schema)
    }

    /// The options, besides the schema, that create the same table.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub fn options(&self, table: &str) -> Result<TableOptions> {
        let table = self.table(table)?;
        Ok(TableOptions {
            locking: table.definition.locking,
            auto_increment: table.changes.next_auto.max(1),
            ..TableOptions::default()
        })
    }

    /// A description of the state that the dump gives.
    pub fn state(&self) -> &str {
        &self.state
    }

    /// The missing parts, besides rows of known tables.
    pub fn missing(&self) -> &[Missing] {
        &self.missing
    }

    /// Calls `row` with every readable row of a table, and `missing` with each missing part.
    ///
    /// Returns the number of rows.
    ///
    /// # Errors
    /// [`Error::NotFound`], and those of `row`.
    pub fn rows(
        &self,
        table: &str,
        row: &mut RowVisitor<'_>,
        missing: &mut dyn FnMut(Missing),
    ) -> Result<u64> {
        let table = self.table(table)?;
        let nodes = Nodes::new(self.store.clone());
        rows::all(
            &nodes,
            &self.running,
            &table.definition,
            &table.changes,
            row,
            missing,
        )
    }

    fn table(&self, name: &str) -> Result<&DumpTable> {
        self.tables.get(name).ok_or_else(|| Error::NotFound {
            what: "table",
            name: name.into(),
        })
    }
}

impl std::fmt::Debug for Dump {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dump")
            .field("file", &self.store.path())
            .field("tables", &self.tables.len())
            .finish_non_exhaustive()
    }
}

/// A name for a table without a definition, for messages.
fn unnamed(table: TableId) -> String {
    format!("table number {table}, whose definition can't be read")
}
