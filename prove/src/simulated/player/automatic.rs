//! Values of auto-increment counters.

use peregrine::{Error, Result, Table};

use super::Player;

impl Player<'_> {
    /// Returns the next automatic value of a table.
    ///
    /// It must be above all values that were committed, and above all values of open transactions.
    ///
    /// # Errors
    /// The engine's errors; [`Error::Internal`] when a value is given twice.
    pub(super) fn automatic(&self, table: &Table, name: &str) -> Result<u64> {
        let id = table.reserve_auto_increment(1, 1, 1, u64::MAX)?;
        let committed = self.state().tables.get(name).map(|table| table.least_auto);
        let sessions = self.sessions.iter().flatten();
        let open = sessions.filter_map(|session| session.counters.get(name).copied());
        let minimum = open.chain(committed).max().unwrap_or(1);
        match id < minimum {
            false => Ok(id),
            true => Err(Error::Internal(format!(
                "table {name} gives the automatic value {id}, and {} was given before",
                minimum - 1
            ))),
        }
    }
}
