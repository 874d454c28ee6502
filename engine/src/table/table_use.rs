//! The tables that a transaction uses.

use std::sync::Arc;

use super::state::TableState;
use super::users::Seat;
use crate::ids::TableId;

/// A table that a transaction uses, or that an earlier transaction in the same object has used.
///
/// Keeping the latter saves writes to memory that threads share.
pub(crate) struct TableUse {
    pub id: TableId,
    pub state: Arc<TableState>,
    /// How this transaction uses it.
    pub entered: Entered,
    /// Rows inserted less rows deleted.
    pub rows: i64,
    pub written: bool,
}

/// How a transaction uses a table.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Entered {
    /// The transaction does not use the table.
    No,
    /// It may only write: its snapshot is older than the table.
    WriteOnly(Seat),
    /// It may read and write.
    Yes(Seat),
    /// It has used the table and is prepared, and the table may be dropped before it ends.
    LetGo,
}

impl TableUse {
    /// Whether this transaction uses the table, or has let go of it.
    pub fn is_entered(&self) -> bool {
        !matches!(self.entered, Entered::No)
    }

    /// Ends the use of the table, and resets the counts.
    pub fn forget(&mut self) {
        self.leave(Entered::No);
        self.rows = 0;
        self.written = false;
    }

    /// Lets the table be dropped, together with the changes of this transaction, which is prepared.
    pub fn let_go(&mut self) {
        if self.is_entered() {
            self.leave(Entered::LetGo);
        }
    }

    fn leave(&mut self, then: Entered) {
        match std::mem::replace(&mut self.entered, then) {
            Entered::Yes(seat) | Entered::WriteOnly(seat) => self.state.leave(seat),
            Entered::LetGo | Entered::No => {}
        }
    }
}
