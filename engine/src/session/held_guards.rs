//! The guards that a transaction holds; `guard` says what they are for.

use smallvec::SmallVec;

use crate::ids::TableId;
use crate::lock::KeyLock;
use crate::planted::{is_planted, PlantedFault};

/// The guards of a transaction, each with its table.
#[derive(Default)]
pub(crate) struct Guards {
    single: SmallVec<[(TableId, KeyLock); 2]>,
    /// Locks of many names of a tree: one for each tree.
    many: SmallVec<[(TableId, KeyLock); 2]>,
}

impl Guards {
    pub fn is_empty(&self) -> bool {
        self.single.is_empty() && self.many.is_empty()
    }

    pub fn clear(&mut self) {
        self.single.clear();
        self.many.clear();
    }

    pub fn add(&mut self, table: TableId, lock: KeyLock) {
        match lock {
            KeyLock::Entry(_) => self.single.push((table, lock)),
            KeyLock::Ranges(_) if self.many.contains(&(table, lock)) => {}
            KeyLock::Ranges(_) => self.many.push((table, lock)),
        }
    }

    /// Removes the guards of a table, and calls `f` with each.
    pub fn take_of(&mut self, table: TableId, mut f: impl FnMut(KeyLock)) {
        let mut stays = |(of, lock): &mut (TableId, KeyLock)| {
            let stays = *of != table && !is_planted(PlantedFault::GiveAllGuards);
            if !stays {
                f(*lock);
            }
            stays
        };
        self.single.retain(&mut stays);
        self.many.retain(&mut stays);
    }
}
