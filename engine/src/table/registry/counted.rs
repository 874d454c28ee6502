//! A table's counters while its state is not needed: of many tables, most are unused most of the time.

use std::sync::{Arc, OnceLock};

use crate::table::state::TableState;

/// Two numbers, which a state replaces at its first use.
pub(crate) struct Counted {
    rows: i64,
    next_auto: u64,
    state: OnceLock<Arc<TableState>>,
}

impl Counted {
    /// The counters of a table from a checkpoint.
    pub fn new(rows: i64, next_auto: u64) -> Counted {
        Counted {
            rows,
            next_auto,
            state: OnceLock::new(),
        }
    }

    /// The table's state, which holds the counters from the first call on.
    pub fn state(&self) -> &Arc<TableState> {
        let make = || Arc::new(TableState::new(self.rows, self.next_auto));
        self.state.get_or_init(make)
    }

    /// The rows, and the next auto-increment value, for a checkpoint.
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
