//! A table's counters while nobody needs more of its state: of many tables, most are not used most of the time.

use std::sync::{Arc, OnceLock};

use crate::table::state::TableState;

/// Two numbers, until somebody asks for the state.
pub(crate) struct Counted {
    rows: i64,
    next_auto: u64,
    state: OnceLock<Arc<TableState>>,
}

impl Counted {
    /// Of a table that a checkpoint counts so many rows of.
    pub fn new(rows: i64, next_auto: u64) -> Counted {
        Counted {
            rows,
            next_auto,
            state: OnceLock::new(),
        }
    }

    /// The table's state; from now on it has the numbers.
    pub fn state(&self) -> &Arc<TableState> {
        let make = || Arc::new(TableState::new(self.rows, self.next_auto));
        self.state.get_or_init(make)
    }

    /// Rows, and the next auto-increment value, for a checkpoint.
    pub fn numbers(&self) -> (i64, u64) {
        match self.state.get() {
            Some(state) => (state.rows(), state.auto_to_keep()),
            None => (self.rows, self.next_auto),
        }
    }
}

impl From<Arc<TableState>> for Counted {
    fn from(state: Arc<TableState>) -> Counted {
        Counted {
            rows: state.rows(),
            next_auto: state.next_auto(),
            state: OnceLock::from(state),
        }
    }
}
