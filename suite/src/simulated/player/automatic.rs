//! Values of auto-increment counters.

use peregrine::{Error, Result, Table};

use super::Player;

impl Player<'_> {
    /// The next automatic value of a table, which nobody had before: it lies behind all that were committed, and behind
    /// all that open transactions have.
    ///
    /// # Errors
    /// The engine's; [`Error::Internal`] where a value is given again.
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
