//! The tables of an open database, by name, by number, and by the numbers of their trees.
//!
//! All definitions are in memory, packed. A table is opened at its first use, and stays open while it is in use. Of the
//! unused tables, those used last stay open. Rollback and purge find trees here.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use super::open_table::{Table, TableTrees};
use super::state::TableState;
use super::{large, replay};
use crate::buffer::PoolWithThreads;
use crate::catalog::{Definition, PackedDefinition};
use crate::error::{Error, Result};
use crate::ids::{TableId, TreeId, TxId};
use crate::knobs;
use crate::planted::{is_planted, PlantedFault};
use crate::row::layout::PrefixNeed;
use crate::row::payload::{self, Field, RowEncoder, RowRef};
use crate::row::{Collations, TableSchema};
use crate::settings::Locking;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Moment, Mutex, RwLock};
use crate::tree::{cannot_be_read, Tree};
use crate::txn::{RedoBuffer, Replayed, UndoOwner};

mod counted;
#[cfg(test)]
mod tests;
mod unfinished;

pub(crate) use self::counted::Counted;

/// See the module's text.
pub(crate) struct Registry {
    pool: Arc<PoolWithThreads>,
    collations: Option<Arc<dyn Collations>>,
    tables: RwLock<Tables>,
    /// Tables in which rollback has met pages that can't be read.
    damaged: Mutex<BTreeMap<TableId, Error>>,
}

#[derive(Default)]
struct Tables {
    by_name: BTreeMap<String, TableId>,
    by_id: BTreeMap<TableId, Entry>,
    by_tree: HashMap<TreeId, TableId>,
    /// Tables that were opened, and may still be open, in the order in which they are checked for closing.
    opened: VecDeque<TableId>,
}

struct Entry {
    definition: PackedDefinition,
    counted: Counted,
    table: Option<Arc<Table>>,
    /// Set when the table is asked for; cleared when it is checked for closing.
    used: AtomicBool,
    /// Why no session can use the table: see `recovery/quarantine.rs`.
    refused: Option<Box<Error>>,
}

/// State of a table in the registry.
enum Look {
    Gone,
    Open(Arc<Table>),
    Closed(Arc<TableState>),
}

impl Tables {
    /// Closes tables that are not in use, and were not asked for lately, if many are open.
    fn close_unused(&mut self) {
        for _ in 0..knobs::tables_looked_at() {
            if self.opened.len() < knobs::most_tables_open()
                || is_planted(PlantedFault::TablesStayOpen)
            {
                return;
            }
            let Some(id) = self.opened.pop_front() else {
                return;
            };
            let Some(entry) = self.by_id.get_mut(&id) else {
                continue;
            };
            // Only a holder of the lock of the tables takes another reference, and the caller has it.
            let is_unused = |table: &Arc<Table>| Arc::strong_count(table) == 1;
            match &entry.table {
                None => {}
                // A drop or truncate holds only the table's trees. The table opened anew would have other tree objects,
                // which would not know that the trees are destroyed.
                Some(_)
                    if entry.counted.state().is_closed()
                        && !is_planted(PlantedFault::CloseLeaving) =>
                {
                    self.opened.push_back(id);
                }
                Some(table) if is_unused(table) && !*entry.used.get_mut() => entry.table = None,
                Some(_) => {
                    *entry.used.get_mut() = false;
                    self.opened.push_back(id);
                }
            }
        }
    }
}

fn no_table(name: impl ToString) -> Error {
    Error::NotFound {
        what: "table",
        name: name.to_string(),
    }
}

impl Registry {
    pub fn new(pool: Arc<PoolWithThreads>, collations: Option<Arc<dyn Collations>>) -> Self {
        Registry {
            pool,
            collations,
            tables: RwLock::default(),
            damaged: Mutex::default(),
        }
    }

    /// The pool in which trees are opened.
    pub fn pool(&self) -> &Arc<PoolWithThreads> {
        &self.pool
    }

    /// Opens a table that was not added yet.
    pub fn open(&self, definition: &Definition, state: Arc<TableState>) -> Result<Arc<Table>> {
        let collations = self.collations.clone();
        Table::open(&self.pool, definition, state, collations).map(Arc::new)
    }

    /// Adds a table that exists on disk; `table`: the table, if it is open.
    pub fn add(
        &self,
        definition: &Definition,
        packed: PackedDefinition,
        counted: Counted,
        table: Option<Arc<Table>>,
    ) {
        let mut tables = self.tables.write();
        if table.is_some() {
            tables.close_unused();
            tables.opened.push_back(definition.id);
        }
        tables
            .by_name
            .insert(definition.name.clone(), definition.id);
        for tree in definition.all_trees() {
            tables.by_tree.insert(tree.id, definition.id);
        }
        tables.by_id.insert(
            definition.id,
            Entry {
                definition: packed,
                counted,
                table,
                used: AtomicBool::new(false),
                refused: None,
            },
        );
    }

    /// The table's name for messages; its number if the definition can't be read.
    pub fn name_told(&self, id: TableId) -> String {
        let definition = self.definition(id);
        definition.map_or_else(|_| id.to_string(), |definition| definition.name)
    }

    /// Quarantines a table: from now on it can only be dropped or truncated, and every other use returns `error`.
    pub fn refuse(&self, id: TableId, error: Error) {
        if let Some(entry) = self.tables.write().by_id.get_mut(&id) {
            entry.table = None;
            entry.refused = Some(Box::new(error));
        }
    }

    /// Keeps all changes away from a table, if it exists, until it is dropped or truncated.
    pub fn leave_alone(&self, id: TableId) {
        self.refuse(id, no_table(id));
    }

    /// Whether a table exists and is refused: because it is quarantined, or by [`Registry::leave_alone`].
    pub fn is_refused(&self, id: TableId) -> bool {
        let tables = self.tables.read();
        tables
            .by_id
            .get(&id)
            .is_some_and(|entry| entry.refused.is_some())
    }

    /// The tables in which rollback has met damage since the last call.
    pub fn take_damaged(&self) -> BTreeMap<TableId, Error> {
        std::mem::take(&mut self.damaged.lock())
    }

    fn note_damage(&self, tree: TreeId, error: &Error) {
        let table = self.tables.read().by_tree.get(&tree).copied();
        if let Some(table) = table {
            self.damaged.lock().insert(table, error.clone());
        }
    }

    /// Removes a table: no lookup finds it or its trees after this.
    pub fn remove(&self, definition: &Definition) {
        let state = self.state(definition.id);
        // A thread that opened the table meanwhile would have tree objects that do not know that the trees are
        // destroyed.
        let _unopened = state.as_ref().map(|state| state.opening.lock());
        let mut tables = self.tables.write();
        if let Some(gone) = tables.by_id.remove(&definition.id) {
            gone.counted.state().set_gone();
            tables.by_name.remove(&definition.name);
            for tree in definition.all_trees() {
                tables.by_tree.remove(&tree.id);
            }
        }
    }

    /// Replaces a definition after a change of names or trees.
    ///
    /// `trees`: the new trees, if they are open.
    pub fn replace(&self, definition: Definition, trees: Option<TableTrees>) -> Result<()> {
        let state = self.state(definition.id);
        // A thread that opened the table meanwhile would use the old definition.
        let _unopened = state.as_ref().map(|state| state.opening.lock());
        let mut tables = self.tables.write();
        let tables = &mut *tables;
        let entry = tables
            .by_id
            .get_mut(&definition.id)
            .ok_or_else(|| no_table(&definition.name))?;
        let before = entry.definition.unpack()?;
        let packed = PackedDefinition::new(&definition)?;
        if let Some(table) = &entry.table {
            table.set_name(&definition.name);
            if before.schema != definition.schema {
                table.set_schema(definition.schema.clone());
            }
            if before.trees != definition.trees {
                let open = || TableTrees::open(&self.pool, &definition);
                table.trees.store(Arc::new(trees.map_or_else(open, Ok)?));
            }
        }
        tables.by_name.remove(&before.name);
        tables
            .by_name
            .insert(definition.name.clone(), definition.id);
        for tree in before.all_trees() {
            tables.by_tree.remove(&tree.id);
        }
        for tree in definition.all_trees() {
            tables.by_tree.insert(tree.id, definition.id);
        }
        if before.trees != definition.trees {
            // The new trees are empty, so no damage remains.
            entry.refused = None;
        }
        entry.definition = packed;
        Ok(())
    }

    /// Calls `f` with every table's definition, in the order of their numbers.
    pub fn each_definition(&self, mut f: impl FnMut(&Definition)) -> Result<()> {
        let tables = self.tables.read();
        tables.by_id.values().try_for_each(|entry| {
            f(&entry.definition.unpack()?);
            Ok(())
        })
    }

    pub fn names(&self) -> Vec<String> {
        self.tables.read().by_name.keys().cloned().collect()
    }

    pub fn id_of(&self, name: &str) -> Result<TableId> {
        self.tables
            .read()
            .by_name
            .get(name)
            .copied()
            .ok_or_else(|| no_table(name))
    }

    pub fn definition(&self, id: TableId) -> Result<Definition> {
        self.tables
            .read()
            .by_id
            .get(&id)
            .ok_or_else(|| no_table(id))?
            .definition
            .unpack()
    }

    pub fn state(&self, id: TableId) -> Option<Arc<TableState>> {
        let tables = self.tables.read();
        tables.by_id.get(&id).map(|e| e.counted.state().clone())
    }

    /// How conflicts in the table of a tree are handled.
    fn locking_of(&self, tree: TreeId) -> Locking {
        let tables = self.tables.read();
        let id = tables.by_tree.get(&tree);
        id.and_then(|id| tables.by_id.get(id))
            .map_or(Locking::Pessimistic, |entry| entry.definition.locking())
    }

    /// How conflicts in a table are handled.
    pub fn locking(&self, name: &str) -> Result<Locking> {
        Ok(self.definition(self.id_of(name)?)?.locking)
    }

    /// Calls `f` with every table's number, rows and next auto-increment value, in the order of the numbers.
    pub fn each_counted(&self, mut f: impl FnMut(TableId, i64, u64)) {
        for (&id, entry) in &self.tables.read().by_id {
            let (rows, next_auto) = entry.counted.numbers();
            f(id, rows, next_auto);
        }
    }

    /// The table with this name.
    pub fn table(&self, name: &str) -> Result<Arc<Table>> {
        let id = self.id_of(name)?;
        self.table_of(id)?.ok_or_else(|| no_table(name))
    }

    /// Finds out whether a table exists and is open.
    fn look(&self, id: TableId) -> Result<Look> {
        Ok(match self.tables.read().by_id.get(&id) {
            None => Look::Gone,
            Some(Entry {
                refused: Some(error),
                ..
            }) => return Err((**error).clone()),
            Some(Entry {
                table: Some(table),
                used,
                ..
            }) => {
                if !used.load(Ordering::Relaxed) {
                    used.store(true, Ordering::Relaxed);
                }
                Look::Open(table.clone())
            }
            Some(entry) => Look::Closed(entry.counted.state().clone()),
        })
    }

    /// The table with this number; opens it if necessary.
    pub fn table_of(&self, id: TableId) -> Result<Option<Arc<Table>>> {
        let state = match self.look(id)? {
            Look::Gone => return Ok(None),
            Look::Open(table) => return Ok(Some(table)),
            Look::Closed(state) => state,
        };
        // Reading from disk takes time: requests for other tables must not wait for it.
        let _opening = state.opening.lock();
        match self.look(id)? {
            Look::Gone => return Ok(None),
            Look::Open(table) => return Ok(Some(table)),
            Look::Closed(_) => {}
        }
        let definition = self.definition(id)?;
        let held = is_planted(PlantedFault::OpenUnderLock).then(|| self.tables.write());
        let table = self.open(&definition, state.clone())?;
        state.moments.come_to(Moment::TableOpened);
        let mut tables = match held {
            Some(tables) => tables,
            None => self.tables.write(),
        };
        let tables = &mut *tables;
        tables.close_unused();
        // The table still exists: a drop waits for the lock `opening`.
        let Some(entry) = tables.by_id.get_mut(&id) else {
            return Ok(None);
        };
        entry.table = Some(table);
        tables.opened.push_back(id);
        Ok(entry.table.clone())
    }

    /// The trees of a table that is to be dropped or emptied; opens them if necessary.
    ///
    /// If the table can't be used: those whose root can be read. The pages of the others stay in use if `passes`
    /// accepts the error.
    ///
    /// # Errors
    /// I/O errors that `passes` does not accept.
    pub fn trees_to_destroy(
        &self,
        definition: &Definition,
        passes: fn(&Error) -> bool,
    ) -> Result<Vec<Arc<Tree>>> {
        match self.table_of(definition.id) {
            Ok(Some(table)) => return Ok(table.trees.load().all().cloned().collect()),
            Ok(None) => return Err(no_table(&definition.name)),
            Err(error) if passes(&error) || self.is_refused(definition.id) => {}
            Err(error) => return Err(error),
        }
        let mut trees = Vec::new();
        for root in definition.all_trees() {
            let open = || Tree::open(&self.pool, root.id, root.root);
            // Tries a failed read once more: pages that are not found here are never freed.
            let opened = open().or_else(|error| match cannot_be_read(&error) {
                true => open(),
                false => Err(error),
            });
            match opened {
                Ok(tree) => trees.push(Arc::new(tree)),
                Err(error) if passes(&error) => {
                    tracing::warn!("pages of a tree that goes stay in use: {error}");
                }
                Err(error) => return Err(error),
            }
        }
        Ok(trees)
    }

    /// Refuses a schema with collations that the program does not have.
    pub fn check_collations(&self, schema: &TableSchema) -> Result<()> {
        for column in schema.columns.iter().filter(|c| c.collation != 0) {
            match &self.collations {
                Some(collations) => {
                    collations.sort_key(column.collation, b"", None, &mut Vec::new())?
                }
                None => {
                    return Err(Error::Invalid(format!(
                        "column {} has collation {}, but the database was opened without \
                         collations (Options::collations); 0 is memcmp",
                        column.name, column.collation
                    )))
                }
            }
        }
        Ok(())
    }

    /// The table with this tree; opens it if necessary.
    pub fn table_of_tree(&self, tree: TreeId) -> Result<Option<Arc<Table>>> {
        let id = self.tables.read().by_tree.get(&tree).copied();
        match id {
            Some(id) => self.table_of(id),
            None => Ok(None),
        }
    }

    fn free_noted(&self, note: &[u8]) -> Result<()> {
        let (tree, value) = large::read_note(note)?;
        if let Some(tree) = self.find(tree)? {
            large::free(&tree, value)?;
        }
        Ok(())
    }

    /// A tree of a table that is not refused; opens the table if necessary.
    fn find(&self, tree: TreeId) -> Result<Option<Arc<Tree>>> {
        let id = {
            let tables = self.tables.read();
            let Some(&id) = tables.by_tree.get(&tree) else {
                return Ok(None);
            };
            let entry = tables.by_id.get(&id);
            if entry.is_none_or(|entry| entry.refused.is_some()) {
                return Ok(None);
            }
            id
        };
        let Some(table) = self.table_of(id)? else {
            return Ok(None);
        };
        let trees = table.trees.load();
        let found = trees.all().find(|t| t.id() == tree).cloned();
        Ok(found)
    }
}

impl UndoOwner for Registry {
    fn tree(&self, tree: TreeId) -> Result<Option<Arc<Tree>>> {
        let found = self.find(tree);
        match found {
            Err(_) if is_planted(PlantedFault::UnopenedIsDropped) => Ok(None),
            found => found,
        }
    }

    fn damaged(&self, tree: TreeId, error: &Error) {
        self.note_damage(tree, error);
    }

    fn unfinished(&self, transactions: &BTreeMap<TxId, Error>) -> Result<()> {
        self.note_unfinished(transactions)
    }

    fn note_is_lost(&self, note: &[u8], error: &Error) {
        // No row refers to the value, so the table still has its last committed state.
        let tree = large::read_note(note).map(|(tree, _)| tree).ok();
        let id = tree.and_then(|tree| self.tables.read().by_tree.get(&tree).copied());
        let table = id.and_then(|id| self.definition(id).ok());
        let table = table.map_or_else(String::new, |table| table.name);
        tracing::error!(
            %table,
            %error,
            "a long value of a transaction that did not commit can't be freed, and stays"
        );
    }

    fn is_optimistic(&self, tree: TreeId) -> bool {
        self.locking_of(tree) == Locking::Optimistic
    }

    fn purged(&self, note: &[u8]) -> Result<()> {
        self.free_noted(note)
    }

    fn rolled_back(&self, note: &[u8]) -> Result<()> {
        self.free_noted(note)
    }

    fn compensate(
        &self,
        tree: TreeId,
        key: &[u8],
        previous: Option<&[u8]>,
        redo: &mut RedoBuffer,
    ) -> Result<Replayed> {
        let Some(table) = self.table_of_tree(tree)? else {
            return Ok(Replayed::Not);
        };
        if !table.state.is_logged() {
            return Ok(Replayed::Not);
        }
        let trees = table.trees.load();
        if trees.clustered.id() != tree {
            // Replay derives entries from rows. Entries of non-unique indexes contain the row's key.
            let index = trees.indexes.iter().position(|index| index.id() == tree);
            return Ok(match index {
                Some(n) if table.layout.indexes[n].unique => Replayed::Again,
                _ => Replayed::Not,
            });
        }
        match previous {
            None => redo.delete(table.id(), key),
            Some(payload) if trees.large.is_none() => redo.put(table.id(), key, &[payload])?,
            Some(payload) => {
                let row = restored_row(&table, &trees, key, payload)?;
                redo.put(table.id(), key, &[&row])?;
            }
        }
        Ok(Replayed::Again)
    }
}

/// The payload of a row that rollback is about to restore, in the form of the log: with all values inside.
///
/// Except for those that the present row has outside, too: in the log, such a value is "as in the row before".
fn restored_row(table: &Table, trees: &TableTrees, key: &[u8], stored: &[u8]) -> Result<Vec<u8>> {
    let mut payload = stored.to_vec();
    large::bring_inside(trees, &mut payload)?;
    let row = RowRef::new(&table.layout, key, &payload)?;
    let now = replay::read_live(&trees.clustered, key)?;
    // A row that is stored outside as a whole has no separate values to compare.
    let now = now.filter(|now| payload::outside_row(now).is_none());
    let mut encoder = RowEncoder::default();
    encoder.begin(table.layout.columns.len());
    if let (Some(now), false) = (&now, is_planted(PlantedFault::LogKeptValues)) {
        let now = RowRef::new(&table.layout, key, now)?;
        for reference in row.references() {
            let (column, value) = reference?;
            if matches!(now.field(column)?, Field::Outside(same) if same == value) {
                encoder.outside[column] = Some(value);
            }
        }
    }
    let mut buffers = Vec::new();
    let needed = |column: usize| match encoder.outside[column] {
        Some(_) => PrefixNeed::Nothing,
        None => PrefixNeed::All,
    };
    let values = large::needed_values(&table.layout, trees, row, needed, &mut buffers)?;
    encoder.lay_out(&table.layout, &values)?;
    let mut out = Vec::new();
    encoder.write(&table.layout, &values, &mut out)?;
    Ok(out)
}
