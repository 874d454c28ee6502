//! The numbers of tables and trees.

use crate::catalog::{Definition, FIRST_TREE};
use crate::error::{Error, Result};
use crate::ids::{TableId, TreeId};

/// The next numbers to give.
///
/// Its mutex also guards all changes of definitions.
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

/// Takes the next number of a kind; no number is given twice.
fn take(next: &mut u32, kind: &str) -> Result<u32> {
    let number = *next;
    let none_left = || Error::TooLarge(format!("there is no number left for another {kind}"));
    *next = number.checked_add(1).ok_or_else(none_left)?;
    Ok(number)
}

impl Numbers {
    pub fn take_table(&mut self) -> Result<TableId> {
        take(&mut self.table.0, "table").map(TableId)
    }

    pub fn take_tree(&mut self) -> Result<TreeId> {
        take(&mut self.tree.0, "tree of a table").map(TreeId)
    }

    /// Moves the counters past the numbers of a definition.
    pub fn pass(&mut self, definition: &Definition) {
        self.table.0 = self.table.0.max(definition.id.0.saturating_add(1));
        for tree in definition.all_trees() {
            self.tree.0 = self.tree.0.max(tree.id.0.saturating_add(1));
        }
    }
}
