//! How the embedding program wants rows read.

/// Whether reads lock the rows that they return.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RowLock {
    /// A snapshot read (at [`crate::Isolation::Serializable`]: as [`RowLock::Shared`]).
    #[default]
    None,
    /// Others may read and share, not change, until the end of the transaction.
    Shared,
    /// Nobody else may lock or change, until the end of the transaction.
    Exclusive,
}

/// How a cursor reads.
#[derive(Clone, Copy, Debug, Default)]
pub struct CursorOptions {
    /// Locking read or snapshot read. A locking read returns the newest committed rows under
    /// READ COMMITTED; at the other levels a row that was changed after the snapshot is
    /// [`crate::Error::WriteConflict`].
    pub lock: RowLock,
    /// Pass over rows that other transactions have locked or are writing, rather than wait. For
    /// locking reads.
    pub skip_locked: bool,
    /// Return index entries without fetching their rows: [`crate::RowView::get`] gives the
    /// columns for which [`crate::Table::index_covers`] holds. A locking cursor fetches rows anyway.
    pub index_only: bool,
}
