//! The tables that a transaction uses.

use std::sync::Arc;

use super::state::TableState;
use super::users::Seat;
use crate::ids::TableId;

/// A table that a transaction uses, or one before it in the same object has used: what threads
/// share of a table is touched as little as possible.
pub(crate) struct TableUse {
    pub id: TableId,
    pub state: Arc<TableState>,
    /// Whether this transaction uses it.
    pub entered: Entered,
    /// Rows inserted less rows deleted.
    pub rows: i64,
    pub written: bool,
}

/// How a transaction uses a table.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Entered {
    /// Not.
    No,
    /// To write only: its snapshot is older than the table.
    WriteOnly(Seat),
    /// As it likes.
    Yes(Seat),
    /// It has, and is prepared: the table need not stay for it.
    LetGo,
}

impl TableUse {
    /// Whether this transaction uses the table.
    pub fn is_entered(&self) -> bool {
        !matches!(self.entered, Entered::No)
    }

    /// The transaction no longer uses the table, and has done nothing there that counts.
    pub fn forget(&mut self) {
        self.leave(Entered::No);
        self.rows = 0;
        self.written = false;
    }

    /// The table may be dropped from here on, and with it what this transaction, which is prepared, has done there.
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
