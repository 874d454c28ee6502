//! Creating, dropping, renaming and truncating tables.
//!
//! Each is one change for checkpoints (made inside the barrier) and one log record. Recovery repeats the change from
//! the record with [`Tables::apply`]. Trees are destroyed only while the barrier is closed: no thread, rollback and
//! purge included, is in a tree then.

use std::sync::Arc;

pub(crate) use self::numbers::Numbers;
use super::open_table::TableTrees;
use super::registry::Registry;
use super::shared::Shared;
use super::state::TableState;
use super::{large, Table};
use crate::catalog::{
    Catalog, DdlRecord, Definition, PackedDefinition, TreeRoot, Written, KIND_COUNTER, KIND_DDL,
};
use crate::error::{Error, Result};
use crate::ids::{Lsn, PageId, TableId};
use crate::log::Log;
use crate::planted::{is_planted, PlantedFault};
use crate::row::layout::Layout;
use crate::row::{SchemaNames, TableSchema};
use crate::settings::{Durability, Locking, TableOptions};
use crate::sync::{Moment, Mutex};
use crate::tree::{cannot_be_read, Tree};

mod numbers;
mod replay;
#[cfg(test)]
mod tests;

/// Creates, changes and removes the tables of a database.
pub(crate) struct Tables {
    pub catalog: Catalog,
    pub registry: Arc<Registry>,
    pub numbers: Mutex<Numbers>,
}

/// Makes a definition durable at once, whatever the durability of commits.
fn durable(log: &Log, lsn: Lsn) -> Result<()> {
    let when = match is_planted(PlantedFault::DefinitionsLater) {
        false => Durability::SyncAtCommit,
        true => Durability::WriteAtCommit,
    };
    log.durable(lsn, when)
}

/// Whether a table with this error can still be dropped; the pages that can't be found stay in use.
fn is_damage(error: &Error) -> bool {
    matches!(error, Error::Corrupt { .. })
}

/// As [`is_damage`], but also for reads that fail: if the log has the drop already, or no program knows the table any
/// more.
///
/// Lost space is then a smaller loss than the database.
fn passes_gone(error: &Error) -> bool {
    is_damage(error) || cannot_be_read(error) && !is_planted(PlantedFault::NeedDroppedRoots)
}

/// Frees the pages of a tree whose table is gone, as the log says.
///
/// Pages that can't be read stay in use.
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
    ) -> Result<Arc<Table>> {
        let layout = Layout::new(schema)?;
        self.registry.check_collations(schema)?;
        let mut numbers = self.numbers.lock();
        if self.registry.id_of(name).is_ok() {
            return Err(Error::Exists(name.into()));
        }
        let new_root = |numbers: &mut Numbers| -> Result<TreeRoot> {
            Ok(TreeRoot {
                id: numbers.take_tree()?,
                root: PageId(0),
            })
        };
        let mut definition = Definition {
            id: numbers.take_table()?,
            name: name.into(),
            schema: schema.clone(),
            trees: (0..=schema.indexes.len())
                .map(|_| new_root(&mut numbers))
                .collect::<Result<_>>()?,
            large: large::can_need(&layout)
                .then(|| new_root(&mut numbers))
                .transpose()?,
            locking: options.locking,
        };
        shared.transactions.pool().check_room()?;
        let apart = is_planted(PlantedFault::CounterApart);
        let next_auto = if apart {
            1
        } else {
            options.auto_increment.max(1)
        };
        let state = TableState::new(0, next_auto);
        if options.of_one_session {
            state.set_of_one_session();
        }
        let state = Arc::new(state);
        let (table, lsn) = {
            let _inside = shared.transactions.barrier().enter();
            let made = self.create_trees(&mut definition)?;
            let record = match next_auto {
                1 => DdlRecord::Create(definition.clone()),
                // One record: if a second one failed, the table would have no counter.
                next => DdlRecord::CreateCounted(definition.clone(), next),
            };
            let logged: Result<_> = (|| {
                // This can fail, so it comes before the log has the table.
                let early = !is_planted(PlantedFault::OpenCreatedLate);
                let open = || self.registry.open(&definition, state.clone());
                let table = early.then(open).transpose()?;
                Ok((table, self.change(shared, None, &definition, &record)?))
            })();
            match logged {
                Ok(logged) => logged,
                Err(error) => {
                    self.free_made(&made);
                    return Err(error);
                }
            }
        };
        state.set_since(shared.transactions.pass());
        let packed = PackedDefinition::new(&definition)?;
        self.registry
            .add(&definition, packed, state.into(), table.clone());
        if apart && options.auto_increment > 1 {
            self.raise_counter(shared, definition.id, options.auto_increment)?;
        }
        durable(&shared.log, lsn)?;
        table.map_or_else(|| self.registry.table(name), Ok)
    }

    /// Appends a change of a table's definition to the log.
    ///
    /// Loads the pages of the catalog that the change needs before that.
    ///
    /// Must be called inside the barrier.
    fn append(&self, shared: &Shared, id: TableId, record: &DdlRecord) -> Result<Lsn> {
        if !is_planted(PlantedFault::LogBeforeRoots) {
            self.catalog.bring(id)?;
        }
        shared.log.append(KIND_DDL, &[&record.encode()?])
    }

    /// Writes a table's definition into the catalog, and its change to the log.
    ///
    /// If one of the two fails, the catalog gets `before` again, or nothing: all that can fail does so before the log
    /// has the change. The log reserves room for the record first: on a full disk, restoring the catalog might need a
    /// page, and find no room for it either. Must be called inside the barrier.
    fn change(
        &self,
        shared: &Shared,
        before: Option<&Definition>,
        after: &Definition,
        record: &DdlRecord,
    ) -> Result<Lsn> {
        if is_planted(PlantedFault::LogBeforeCatalog) {
            let lsn = self.append(shared, after.id, record)?;
            self.whole(self.catalog.put(after))?;
            return Ok(lsn);
        }
        if !is_planted(PlantedFault::LogBeforeRoots) {
            self.catalog.bring(after.id)?;
        }
        Catalog::check(after)?;
        let record = record.encode()?;
        let unasked = is_planted(PlantedFault::UnaskedLog);
        let room = (!unasked).then(|| shared.log.promise(record.len()));
        let room = room.transpose()?;
        let mut written = Written::default();
        let put = self.catalog.put_noting(after, &mut written);
        shared.transactions.moments.come_to(match put {
            Ok(()) => Moment::DefinitionWritten,
            Err(_) => Moment::DefinitionRefused,
        });
        let logged = put.and_then(|()| match room {
            Some(room) => room.append(KIND_DDL, &[&record]),
            None => shared.log.append(KIND_DDL, &[&record]),
        });
        if logged.is_err() {
            let undone = self.catalog.put_back(after.id, before, &written);
            self.or_stop("a table's definition could not be put back", undone)?;
        }
        logged
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
            let _inside = shared.transactions.barrier().enter();
            let record = DdlRecord::Counter(id, state.next_auto()).encode()?;
            shared.log.append(KIND_COUNTER, &[&record])?
        };
        durable(&shared.log, lsn)
    }

    /// Sets how conflicts in a table are handled, from the next conflict on.
    pub fn set_locking(&self, shared: &Shared, name: &str, locking: Locking) -> Result<()> {
        let _numbers = self.numbers.lock();
        let id = self.registry.id_of(name)?;
        let before = self.registry.definition(id)?;
        if before.locking == locking {
            return Ok(());
        }
        let definition = Definition {
            locking,
            ..before.clone()
        };
        let lsn = {
            let _inside = shared.transactions.barrier().enter();
            let record = DdlRecord::Locking(id, locking);
            self.change(shared, Some(&before), &definition, &record)?
        };
        self.registry.replace(definition, None)?;
        durable(&shared.log, lsn)
    }

    /// Gives a table's columns and indexes other names.
    ///
    /// Nothing else changes: transactions go on using the table, and snapshots see it as before.
    pub fn set_names(&self, shared: &Shared, name: &str, names: &SchemaNames) -> Result<()> {
        let named = |schema: &TableSchema| match is_planted(PlantedFault::KeepOldNames) {
            true => Ok(schema.clone()),
            false => schema.named(names),
        };
        self.change_schema(shared, name, named, |id| {
            DdlRecord::Names(id, names.clone())
        })
    }

    /// Changes the bytes that the embedding program keeps with a table.
    pub fn set_user(&self, shared: &Shared, name: &str, user: &[u8]) -> Result<()> {
        let changed = |schema: &TableSchema| {
            Ok(TableSchema {
                user: user.to_vec(),
                ..schema.clone()
            })
        };
        self.change_schema(shared, name, changed, |id| DdlRecord::User(id, user.into()))
    }

    /// Changes a part of a schema that rows, trees and snapshots do not depend on.
    fn change_schema(
        &self,
        shared: &Shared,
        name: &str,
        changed: impl FnOnce(&TableSchema) -> Result<TableSchema>,
        record: impl FnOnce(TableId) -> DdlRecord,
    ) -> Result<()> {
        let _numbers = self.numbers.lock();
        let id = self.registry.id_of(name)?;
        let before = self.registry.definition(id)?;
        let schema = changed(&before.schema)?;
        if schema == before.schema {
            return Ok(());
        }
        let definition = Definition {
            schema,
            ..before.clone()
        };
        let lsn = {
            let _inside = shared.transactions.barrier().enter();
            self.change(shared, Some(&before), &definition, &record(id))?
        };
        self.registry.replace(definition, None)?;
        durable(&shared.log, lsn)
    }

    /// Drops a table.
    ///
    /// `own`: the table that the caller means, and how many of its users are the caller's own. If the name belongs to
    /// another table by now, the table is not found.
    pub fn remove_table(
        &self,
        shared: &Shared,
        name: &str,
        own: Option<(TableId, u64)>,
    ) -> Result<()> {
        self.remove_passing(shared, name, own, is_damage, false)
    }

    /// Drops a table when the database is opened: its pages that can't be read stay in use.
    ///
    /// If the log has no room for the record, the drop is not logged: an opening that finds the table again drops it
    /// again.
    pub fn remove_on_open(&self, shared: &Shared, name: &str) -> Result<()> {
        let unlogged = !is_planted(PlantedFault::NeedRoomToDrop);
        self.remove_passing(shared, name, None, passes_gone, unlogged)
    }

    fn remove_passing(
        &self,
        shared: &Shared,
        name: &str,
        own: Option<(TableId, u64)>,
        passes: fn(&Error) -> bool,
        unlogged: bool,
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
        let result: Result<_> = (|| {
            let _closed = shared.transactions.barrier().close();
            let trees = self.trees_to_destroy(&definition, passes)?;
            let lsn = match self.append(shared, id, &DdlRecord::Drop(id)) {
                Err(Error::NoSpace { .. }) if unlogged => {
                    // The error may come from the catalog rather than the log.
                    self.catalog.bring(id)?;
                    tracing::warn!(name, "dropped, and the log has no room to say so");
                    None
                }
                lsn => Some(lsn?),
            };
            self.whole(trees.and_then(|trees| self.remove(&definition, &trees)))?;
            Ok(lsn)
        })();
        if result.is_err() {
            self.reopen(id);
        }
        match result? {
            Some(lsn) => durable(&shared.log, lsn),
            None => Ok(()),
        }
    }

    /// Fails if a prepared transaction without a decision has used the table.
    fn refuse_undecided(&self, id: TableId, name: &str) -> Result<()> {
        match self.registry.state(id) {
            Some(state) if state.has_prepared() => Err(Error::Busy(name.into())),
            _ => Ok(()),
        }
    }

    /// Renames a table.
    ///
    /// With `as_new`, the table counts as created now.
    pub fn rename(&self, shared: &Shared, from: &str, to: &str, as_new: bool) -> Result<()> {
        let _numbers = self.numbers.lock();
        let id = self.registry.id_of(from)?;
        if self.registry.id_of(to).is_ok() {
            return Err(Error::Exists(to.into()));
        }
        // ALTER TABLE drops the old table behind a copy: with it would go the changes of a prepared transaction.
        self.refuse_undecided(id, from)?;
        let before = self.registry.definition(id)?;
        let definition = Definition {
            name: to.into(),
            ..before.clone()
        };
        let lsn = {
            let _inside = shared.transactions.barrier().enter();
            let record = DdlRecord::Rename(id, to.into());
            self.change(shared, Some(&before), &definition, &record)?
        };
        if as_new {
            self.set_since_now(shared, id);
        }
        self.registry.replace(definition, None)?;
        durable(&shared.log, lsn)
    }

    /// Removes all rows of a table.
    pub fn truncate(&self, shared: &Shared, name: &str) -> Result<()> {
        let mut numbers = self.numbers.lock();
        let id = self.registry.id_of(name)?;
        // A prepared transaction may have let go of a table of one session, and its rows would count in the new trees.
        self.refuse_undecided(id, name)?;
        let old = self.registry.definition(id)?;
        let mut definition = old.clone();
        for tree in definition.trees.iter_mut().chain(&mut definition.large) {
            tree.id = numbers.take_tree()?;
        }
        self.close(id, name, 0)?;
        let result =
            (|| {
                let _closed = shared.transactions.barrier().close();
                let trees = self.trees_to_destroy(&old, is_damage)?;
                let made = self.create_trees(&mut definition)?;
                let record = DdlRecord::Truncate(definition.clone());
                let logged: Result<_> = (|| {
                    // This can fail, so it comes before the log has the change.
                    let opened = TableTrees::open(self.registry.pool(), &definition)?;
                    let lsn = self.change(shared, Some(&old), &definition, &record)?;
                    Ok((opened, lsn))
                })();
                match logged {
                    Ok((opened, lsn)) => {
                        self.whole(trees.and_then(|trees| {
                            self.replace_trees(&definition, Some(opened), &trees)
                        }))?;
                        Ok(lsn)
                    }
                    Err(error) => {
                        self.free_made(&made);
                        Err(error)
                    }
                }
            })();
        // If nothing has changed, older snapshots still see the table.
        if result.is_ok() || is_planted(PlantedFault::NewAnyway) {
            self.set_since_now(shared, id);
        }
        self.reopen(id);
        durable(&shared.log, result?)
    }

    /// The trees of a table that is to be dropped or emptied.
    ///
    /// Reads their roots and writes their images, since both can fail: that must come before the log has the change.
    /// Must be called while the barrier is closed.
    fn trees_to_destroy(
        &self,
        definition: &Definition,
        passes: fn(&Error) -> bool,
    ) -> Result<Result<Vec<Arc<Tree>>>> {
        let trees = self.registry.trees_to_destroy(definition, passes);
        if is_planted(PlantedFault::LogBeforeRoots) {
            return Ok(trees);
        }
        let trees = trees?;
        if !is_planted(PlantedFault::LateTreeImages) {
            trees.iter().try_for_each(|tree| tree.save_images())?;
        }
        Ok(Ok(trees))
    }

    /// Stops the engine if a change fails that the log already has; the next opening then makes it.
    fn whole<T>(&self, change: Result<T>) -> Result<T> {
        self.or_stop("a logged change of a table's definition failed", change)
    }

    fn or_stop<T>(&self, what: &str, change: Result<T>) -> Result<T> {
        change.map_err(|error| {
            let reason = format!("{what}: {error}");
            self.registry.pool().store().stop_flag().stop(reason)
        })
    }

    /// Makes the table too new for all snapshots taken before now.
    fn set_since_now(&self, shared: &Shared, id: TableId) {
        if let Some(state) = self.registry.state(id) {
            state.set_since(shared.transactions.pass());
        }
    }

    /// Lets transactions use a table again.
    fn reopen(&self, id: TableId) {
        if let Some(state) = self.registry.state(id) {
            state.reopen();
        }
    }

    /// Keeps transactions out of a table; fails if a transaction other than the caller's uses it.
    fn close(&self, id: TableId, name: &str, own: u64) -> Result<()> {
        match self.registry.state(id) {
            Some(state) if state.close(own) => Ok(()),
            Some(_) => Err(Error::Busy(name.into())),
            None => Ok(()),
        }
    }

    /// Creates the trees of a definition and notes their roots in it.
    ///
    /// Must be called inside the barrier.
    fn create_trees(&self, definition: &mut Definition) -> Result<Vec<Tree>> {
        let mut made: Vec<Tree> = Vec::new();
        for root in definition.trees.iter_mut().chain(&mut definition.large) {
            match Tree::create(self.registry.pool(), root.id) {
                Ok(tree) => {
                    root.root = tree.root();
                    made.push(tree);
                }
                Err(error) => {
                    self.free_made(&made);
                    return Err(error);
                }
            }
        }
        Ok(made)
    }

    /// Frees new trees, each of which is only its root, after an error.
    ///
    /// Must be called in the same stay inside the barrier.
    fn free_made(&self, made: &[Tree]) {
        for tree in made {
            // No checkpoint needs an image of a page that was created since it began.
            if let Err(error) = self.registry.pool().free(tree.root()) {
                tracing::warn!("a page of a table that was not made stays in use: {error}");
            }
        }
    }

    /// Removes a table from registry and catalog, and frees the pages of its trees.
    ///
    /// No other thread is in a tree.
    fn remove(&self, definition: &Definition, trees: &[Arc<Tree>]) -> Result<()> {
        self.registry.remove(definition);
        self.catalog.remove(definition.id)?;
        trees.iter().try_for_each(|tree| destroy(tree))
    }

    /// Gives a table the new, empty trees of `definition`, and frees the old ones.
    ///
    /// No other thread is in a tree.
    fn replace_trees(
        &self,
        definition: &Definition,
        opened: Option<TableTrees>,
        old: &[Arc<Tree>],
    ) -> Result<()> {
        self.registry.replace(definition.clone(), opened)?;
        if let Some(state) = self.registry.state(definition.id) {
            state.set_rows(0);
            state.reset_auto(1);
        }
        old.iter().try_for_each(|tree| destroy(tree))
    }
}
