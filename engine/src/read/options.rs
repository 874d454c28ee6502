//! How the embedding program wants rows read.

/// Whether reads lock the rows that they return.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RowLock {
    /// A snapshot read; at [`crate::Isolation::Serializable`] the same as [`RowLock::Shared`].
    #[default]
    None,
    /// Other transactions may read and share the row, but not change it, until the end of the transaction.
    Shared,
    /// No other transaction may lock or change the row until the end of the transaction.
    Exclusive,
}

/// How a cursor reads.
#[derive(Clone, Copy, Debug, Default)]
pub struct CursorOptions {
    /// Locking read or snapshot read.
    ///
    /// A locking read returns the newest committed rows under READ COMMITTED. At the other levels, a row that was
    /// changed after the snapshot gives [`crate::Error::WriteConflict`].
    pub lock: RowLock,
    /// Skip rows that other transactions have locked or are writing, rather than wait for them.
    ///
    /// For locking reads.
    pub skip_locked: bool,
    /// Return index entries without fetching their rows.
    ///
    /// [`crate::RowView::get`] gives the columns for which [`crate::Table::index_covers`] holds. A locking cursor
    /// fetches rows anyway.
    pub index_only: bool,
}
