//! Conditions on index entries, looked at before the entries' rows are fetched.

use crate::error::Result;
use crate::read::row_view::RowView;

/// What a filter says of an index entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Fetch its row.
    Keep,
    /// Go on with the next entry.
    Skip,
    /// The scan ends here.
    Stop,
}

/// A condition that the columns of an index decide ("index condition pushdown"): a row that
/// fails it is never fetched.
pub trait EntryFilter: Send {
    /// Looks at an entry; it gives the columns for which [`crate::Table::index_covers`] holds.
    ///
    /// # Errors
    /// Any, which end the seek or step.
    fn look(&mut self, entry: &RowView<'_>) -> Result<Verdict>;
}
