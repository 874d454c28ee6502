//! Conditions on index entries, checked before the entries' rows are fetched.

use crate::error::Result;
use crate::read::row_view::RowView;

/// A filter's decision on an index entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Fetch the entry's row.
    Keep,
    /// Go on with the next entry.
    Skip,
    /// The scan ends here.
    Stop,
}

/// A condition that can be decided from the columns of an index ("index condition pushdown").
///
/// A cursor never fetches a row whose entry fails the condition.
pub trait EntryFilter: Send {
    /// Checks an entry, which has the columns for which [`crate::Table::index_covers`] holds.
    ///
    /// # Errors Any; the cursor's seek or step returns it.
    fn look(&mut self, entry: &RowView<'_>) -> Result<Verdict>;
}
