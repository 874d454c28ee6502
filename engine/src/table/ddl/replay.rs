//! Changes of definitions that recovery repeats from the log. No transaction runs meanwhile.

use super::super::registry::Counted;
use super::{passes_gone, Numbers, Tables};
use crate::catalog::{DdlRecord, Definition, PackedDefinition};
use crate::error::Result;
use crate::ids::TableId;

impl Tables {
    /// Drops a table whose name the log gives to the table `other`.
    ///
    /// An opening has dropped it when the log had no room for the record. No transaction runs meanwhile.
    pub fn remove_unlogged(&self, name: &str, other: TableId) -> Result<()> {
        let _numbers = self.numbers.lock();
        match self.registry.id_of(name) {
            Ok(id) if id != other => {
                let definition = self.registry.definition(id)?;
                let trees = self.registry.trees_to_destroy(&definition, passes_gone)?;
                self.remove(&definition, &trees)
            }
            _ => Ok(()),
        }
    }

    /// Removes the catalog's entry of a table whose definition is damaged, and that the log drops.
    ///
    /// Its pages stay in use, since the definition that lists them is lost. No transaction runs meanwhile.
    pub fn forget_lost(&self, id: TableId) -> Result<()> {
        let _numbers = self.numbers.lock();
        self.catalog.remove_damaged(id)
    }

    /// Repeats a change from the log.
    ///
    /// No transaction runs meanwhile.
    pub fn apply(&self, record: DdlRecord) -> Result<()> {
        let mut numbers = self.numbers.lock();
        match record {
            DdlRecord::Create(definition) => self.create_again(&mut numbers, definition, 1)?,
            DdlRecord::CreateCounted(definition, next) => {
                self.create_again(&mut numbers, definition, next)?;
            }
            DdlRecord::Drop(id) => {
                let definition = self.registry.definition(id)?;
                let trees = self.registry.trees_to_destroy(&definition, passes_gone)?;
                self.remove(&definition, &trees)?;
            }
            DdlRecord::Rename(id, name) => {
                let mut definition = self.registry.definition(id)?;
                definition.name = name;
                self.catalog.put(&definition)?;
                self.registry.replace(definition, None)?;
            }
            DdlRecord::Truncate(mut definition) => {
                numbers.pass(&definition);
                let old = self.registry.definition(definition.id)?;
                let trees = self.registry.trees_to_destroy(&old, passes_gone)?;
                self.create_trees(&mut definition)?;
                self.catalog.put(&definition)?;
                self.replace_trees(&definition, None, &trees)?;
            }
            DdlRecord::Locking(id, locking) => {
                let mut definition = self.registry.definition(id)?;
                definition.locking = locking;
                self.catalog.put(&definition)?;
                self.registry.replace(definition, None)?;
            }
            DdlRecord::Names(id, names) => {
                let mut definition = self.registry.definition(id)?;
                definition.schema = definition.schema.named(&names)?;
                self.catalog.put(&definition)?;
                self.registry.replace(definition, None)?;
            }
            DdlRecord::User(id, user) => {
                let mut definition = self.registry.definition(id)?;
                definition.schema.user = user;
                self.catalog.put(&definition)?;
                self.registry.replace(definition, None)?;
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

    /// Creates a table from the log.
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
        self.registry.add(&definition, packed, counted, None);
        Ok(())
    }
}
