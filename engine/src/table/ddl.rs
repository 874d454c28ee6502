//! Creating, dropping, renaming and truncating tables.
//!
//! Each is one change for checkpoints (made inside the gate) and one log record for recovery,
//! which makes the same change again with [`Tables::apply`]. Trees are only destroyed while the
//! gate is closed: nobody, rollback and purge included, is in a tree then.

use std::sync::Arc;

use super::large;
use super::registry::{Counted, Registry};
use super::shared::Shared;
use super::state::TableState;
use crate::catalog::{
    Catalog, DdlRecord, Definition, PackedDefinition, TreeRoot, FIRST_TREE, KIND_COUNTER, KIND_DDL,
};
use crate::error::{Error, Result};
use crate::ids::{Lsn, PageId, TableId, TreeId};
use crate::log::Log;
use crate::planted::{is_planted, PlantedFault};
use crate::row::layout::Layout;
use crate::row::TableSchema;
use crate::settings::{Durability, Locking, TableOptions};
use crate::sync::Mutex;
use crate::tree::{cannot_be_read, Tree};

#[cfg(test)]
mod tests;

/// The next numbers to give. Also the mutex of all changes of definitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Numbers {
    pub table: TableId,
    pub tree: TreeId,
}

impl Default for Numbers {
    fn default() -> Self {
        Numbers {
            table: TableId(1),
            tree: FIRST_TREE,
        }
    }
}

impl Numbers {
    fn take_table(&mut self) -> TableId {
        let id = self.table;
        self.table.0 += 1;
        id
    }

    fn take_tree(&mut self) -> TreeId {
        let id = self.tree;
        self.tree.0 += 1;
        id
    }

    /// Gives no number again that a definition has.
    pub fn pass(&mut self, definition: &Definition) {
        self.table.0 = self.table.0.max(definition.id.0 + 1);
        for tree in definition.all_trees() {
            self.tree.0 = self.tree.0.max(tree.id.0 + 1);
        }
    }
}

/// The tables of a database, to be changed as a whole.
pub(crate) struct Tables {
    pub catalog: Catalog,
    pub registry: Arc<Registry>,
    pub numbers: Mutex<Numbers>,
}

/// Definitions are durable at once, whatever commits are.
fn durable(log: &Log, lsn: Lsn) -> Result<()> {
    let when = match is_planted(PlantedFault::DefinitionsLater) {
        false => Durability::SyncAtCommit,
        true => Durability::WriteAtCommit,
    };
    log.durable(lsn, when)
}

/// Frees the pages of a tree whose table is gone: the log says so. Those that can't be found for damage, or
/// for a read that fails, stay behind.
fn destroy(tree: &Tree) -> Result<()> {
    match tree.destroy() {
        Err(error) if cannot_be_read(&error) => {
            tracing::warn!("pages of a table that goes stay in use: {error}");
            Ok(())
        }
        result => result,
    }
}

impl Tables {
    /// Creates a table.
    pub fn create(
        &self,
        shared: &Shared,
        name: &str,
        schema: &TableSchema,
        options: &TableOptions,
    ) -> Result<()> {
        let layout = Layout::new(schema)?;
        self.registry.check_collations(schema)?;
        let mut numbers = self.numbers.lock();
        if self.registry.id_of(name).is_ok() {
            return Err(Error::Exists(name.into()));
        }
        let new_root = |numbers: &mut Numbers| TreeRoot {
            id: numbers.take_tree(),
            root: PageId(0),
        };
        let mut definition = Definition {
            id: numbers.take_table(),
            name: name.into(),
            schema: schema.clone(),
            trees: (0..=schema.indexes.len())
                .map(|_| new_root(&mut numbers))
                .collect(),
            large: large::can_need(&layout).then(|| new_root(&mut numbers)),
            locking: options.locking,
        };
        shared.system.pool().check_room()?;
        let apart = is_planted(PlantedFault::CounterApart);
        let next_auto = if apart {
            1
        } else {
            options.auto_increment.max(1)
        };
        let lsn = {
            let _inside = shared.system.gate().enter();
            let made = self.create_trees(&mut definition)?;
            let record = match next_auto {
                1 => DdlRecord::Create(definition.clone()),
                // One record: a second that fails would leave the table without its counter.
                next => DdlRecord::CreateCounted(definition.clone(), next),
            };
            match self.append(shared, definition.id, &record) {
                Ok(lsn) => {
                    self.whole(self.catalog.put(&definition))?;
                    lsn
                }
                Err(error) => {
                    made.iter().try_for_each(Tree::destroy)?;
                    return Err(error);
                }
            }
        };
        let state = TableState::new(0, next_auto);
        if options.of_one_session {
            state.set_of_one_session();
        }
        state.set_since(shared.system.pass());
        let packed = PackedDefinition::new(&definition)?;
        self.registry.add(&definition, packed, state.into());
        if apart && options.auto_increment > 1 {
            return self.raise_counter(shared, definition.id, options.auto_increment);
        }
        durable(&shared.log, lsn)
    }

    /// Appends a change of a table's definition to the log, when nothing of the catalog must be read any more to
    /// make it. Inside the gate.
    fn append(&self, shared: &Shared, id: TableId, record: &DdlRecord) -> Result<Lsn> {
        if !is_planted(PlantedFault::LogBeforeRoots) {
            self.catalog.bring(id)?;
        }
        shared.log.append(KIND_DDL, &[&record.encode()?])
    }

    /// Makes a table's auto-increment counter at least `value`, durably.
    pub fn set_counter(&self, shared: &Shared, name: &str, value: u64) -> Result<()> {
        let _numbers = self.numbers.lock();
        self.raise_counter(shared, self.registry.id_of(name)?, value)
    }

    fn raise_counter(&self, shared: &Shared, id: TableId, value: u64) -> Result<()> {
        let Some(state) = self.registry.state(id) else {
            return Ok(());
        };
        state.raise_auto(value);
        let lsn = {
            let _inside = shared.system.gate().enter();
            let record = DdlRecord::Counter(id, state.next_auto()).encode()?;
            shared.log.append(KIND_COUNTER, &[&record])?
        };
        durable(&shared.log, lsn)
    }

    /// Changes what a conflict in a table does, from the next conflict on.
    pub fn set_locking(&self, shared: &Shared, name: &str, locking: Locking) -> Result<()> {
        let _numbers = self.numbers.lock();
        let id = self.registry.id_of(name)?;
        let mut definition = self.registry.definition(id)?;
        if definition.locking == locking {
            return Ok(());
        }
        definition.locking = locking;
        let lsn = {
            let _inside = shared.system.gate().enter();
            let lsn = self.append(shared, id, &DdlRecord::Locking(id, locking))?;
            self.whole(self.catalog.put(&definition))?;
            lsn
        };
        self.registry.replace(definition)?;
        durable(&shared.log, lsn)
    }

    /// Drops a table. Of the transactions that use the table `own`, the caller answers for so many: where the name has
    /// come to another table since, there is no such table.
    pub fn remove_table(
        &self,
        shared: &Shared,
        name: &str,
        own: Option<(TableId, u64)>,
    ) -> Result<()> {
        let _numbers = self.numbers.lock();
        let id = self.registry.id_of(name)?;
        let own = match own {
            None => 0,
            Some((used, own)) if used == id || is_planted(PlantedFault::DropByNameAlone) => own,
            Some(_) => {
                return Err(Error::NotFound {
                    what: "table",
                    name: name.into(),
                })
            }
        };
        let definition = self.registry.definition(id)?;
        self.close(id, name, own)?;
        let result = (|| {
            let _closed = shared.system.gate().close();
            let trees = self.trees_to_destroy(&definition)?;
            let lsn = self.append(shared, id, &DdlRecord::Drop(id))?;
            self.whole(trees.and_then(|trees| self.remove(&definition, &trees)))?;
            Ok(lsn)
        })();
        if result.is_err() {
            self.reopen(id);
        }
        durable(&shared.log, result?)
    }

    /// Renames a table. `as_new`: it counts as made now.
    pub fn rename(&self, shared: &Shared, from: &str, to: &str, as_new: bool) -> Result<()> {
        let _numbers = self.numbers.lock();
        let id = self.registry.id_of(from)?;
        if self.registry.id_of(to).is_ok() {
            return Err(Error::Exists(to.into()));
        }
        // Whoever drops the old table behind a copy would drop what a prepared transaction has
        // changed in it.
        let state = self.registry.state(id);
        if state.is_some_and(|state| state.has_prepared()) {
            return Err(Error::Busy(from.into()));
        }
        let mut definition = self.registry.definition(id)?;
        to.clone_into(&mut definition.name);
        let lsn = {
            let _inside = shared.system.gate().enter();
            let lsn = self.append(shared, id, &DdlRecord::Rename(id, to.into()))?;
            self.whole(self.catalog.put(&definition))?;
            lsn
        };
        if as_new {
            self.set_since_now(shared, id);
        }
        self.registry.replace(definition)?;
        durable(&shared.log, lsn)
    }

    /// Removes all rows of a table.
    pub fn truncate(&self, shared: &Shared, name: &str) -> Result<()> {
        let mut numbers = self.numbers.lock();
        let id = self.registry.id_of(name)?;
        let old = self.registry.definition(id)?;
        let mut definition = old.clone();
        for tree in definition.trees.iter_mut().chain(&mut definition.large) {
            tree.id = numbers.take_tree();
        }
        self.close(id, name, 0)?;
        let result = (|| {
            let _closed = shared.system.gate().close();
            let trees = self.trees_to_destroy(&old)?;
            let made = self.create_trees(&mut definition)?;
            let record = DdlRecord::Truncate(definition.clone());
            match self.append(shared, id, &record) {
                Ok(lsn) => {
                    self.whole(trees.and_then(|trees| self.replace_trees(&definition, &trees)))?;
                    Ok(lsn)
                }
                Err(error) => {
                    made.iter().try_for_each(Tree::destroy)?;
                    Err(error)
                }
            }
        })();
        // Where nothing has happened, older snapshots are of the table as it is.
        if result.is_ok() || is_planted(PlantedFault::NewAnyway) {
            self.set_since_now(shared, id);
        }
        self.reopen(id);
        durable(&shared.log, result?)
    }

    /// Makes a change from the log again. Nothing else runs.
    pub fn apply(&self, record: DdlRecord) -> Result<()> {
        let mut numbers = self.numbers.lock();
        match record {
            DdlRecord::Create(definition) => self.create_again(&mut numbers, definition, 1)?,
            DdlRecord::CreateCounted(definition, next) => {
                self.create_again(&mut numbers, definition, next)?;
            }
            DdlRecord::Drop(id) => {
                let definition = self.registry.definition(id)?;
                let trees = self.registry.trees_to_destroy(&definition)?;
                self.remove(&definition, &trees)?;
            }
            DdlRecord::Rename(id, name) => {
                let mut definition = self.registry.definition(id)?;
                definition.name = name;
                self.catalog.put(&definition)?;
                self.registry.replace(definition)?;
            }
            DdlRecord::Truncate(mut definition) => {
                numbers.pass(&definition);
                let old = self.registry.definition(definition.id)?;
                let trees = self.registry.trees_to_destroy(&old)?;
                self.create_trees(&mut definition)?;
                self.replace_trees(&definition, &trees)?;
            }
            DdlRecord::Locking(id, locking) => {
                let mut definition = self.registry.definition(id)?;
                definition.locking = locking;
                self.catalog.put(&definition)?;
                self.registry.replace(definition)?;
            }
            DdlRecord::Counter(id, next) => {
                if let Some(state) = self.registry.state(id) {
                    state.raise_auto(next);
                    state.auto_logged(next);
                }
            }
        }
        Ok(())
    }

    /// Makes a table from the log again.
    fn create_again(
        &self,
        numbers: &mut Numbers,
        mut definition: Definition,
        next_auto: u64,
    ) -> Result<()> {
        numbers.pass(&definition);
        self.create_trees(&mut definition)?;
        self.catalog.put(&definition)?;
        let packed = PackedDefinition::new(&definition)?;
        let counted = Counted::new(0, next_auto);
        self.registry.add(&definition, packed, counted);
        Ok(())
    }

    /// The trees of a table that is to go. What can fail for a page that can't be read, or for an image that can't
    /// be written, is done: it comes before the log has the change. Inside the gate, which is closed.
    fn trees_to_destroy(&self, definition: &Definition) -> Result<Result<Vec<Arc<Tree>>>> {
        let trees = self.registry.trees_to_destroy(definition);
        if is_planted(PlantedFault::LogBeforeRoots) {
            return Ok(trees);
        }
        let trees = trees?;
        if !is_planted(PlantedFault::LateTreeImages) {
            trees.iter().try_for_each(|tree| tree.save_images())?;
        }
        Ok(Ok(trees))
    }

    /// A change that the log has must be made as a whole: where it fails on the way, the engine
    /// stops, and the next opening makes it.
    fn whole<T>(&self, change: Result<T>) -> Result<T> {
        change.map_err(|error| {
            let reason = format!("a logged change of a table's definition failed: {error}");
            self.registry.pool().store().stop_flag().stop(reason)
        })
    }

    /// Snapshots taken before now are not of the table as it is from now on.
    fn set_since_now(&self, shared: &Shared, id: TableId) {
        if let Some(state) = self.registry.state(id) {
            state.set_since(shared.system.pass());
        }
    }

    /// Lets transactions into a table again.
    fn reopen(&self, id: TableId) {
        if let Some(state) = self.registry.state(id) {
            state.reopen();
        }
    }

    /// Keeps transactions out of a table that none uses.
    fn close(&self, id: TableId, name: &str, own: u64) -> Result<()> {
        match self.registry.state(id) {
            Some(state) if state.close(own) => Ok(()),
            Some(_) => Err(Error::Busy(name.into())),
            None => Ok(()),
        }
    }

    /// Makes the trees of a definition and notes their roots in it. Inside the gate.
    fn create_trees(&self, definition: &mut Definition) -> Result<Vec<Tree>> {
        let mut made: Vec<Tree> = Vec::new();
        for root in definition.trees.iter_mut().chain(&mut definition.large) {
            match Tree::create(self.registry.pool(), root.id) {
                Ok(tree) => {
                    root.root = tree.root();
                    made.push(tree);
                }
                Err(error) => {
                    made.iter().try_for_each(Tree::destroy)?;
                    return Err(error);
                }
            }
        }
        Ok(made)
    }

    /// Takes a table out of registry and catalog, and frees the pages of its trees. Nobody else is in one.
    fn remove(&self, definition: &Definition, trees: &[Arc<Tree>]) -> Result<()> {
        self.registry.remove(definition);
        self.catalog.remove(definition.id)?;
        trees.iter().try_for_each(|tree| destroy(tree))
    }

    /// Gives a table the new, empty trees of `definition`, and frees the old ones. Nobody else is in a tree.
    fn replace_trees(&self, definition: &Definition, old: &[Arc<Tree>]) -> Result<()> {
        self.catalog.put(definition)?;
        self.registry.replace(definition.clone())?;
        if let Some(state) = self.registry.state(definition.id) {
            state.set_rows(0);
            state.reset_auto(1);
        }
        old.iter().try_for_each(|tree| destroy(tree))
    }
}
