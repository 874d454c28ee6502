//! What the layers above tell a leaf to do with a record.

/// What becomes of a record after the caller has looked at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordEdit {
    /// It stays as it is.
    Keep,
    /// It takes the new value (and is made, where there was none).
    Put,
    /// It goes.
    Remove,
}

/// Frees room in a full leaf before the leaf is split: values whose version header no longer tells
/// anybody anything are shortened, and records that nobody can see any more are dropped.
///
/// Called with the leaf latched: it must neither wait nor touch pages.
pub trait LeafFreeze: Send + Sync {
    /// Looks at one record's value; for [`RecordEdit::Put`] `out` (empty on entry) holds the new value,
    /// which must not be longer than the old one.
    fn freeze(&self, value: &[u8], out: &mut Vec<u8>) -> RecordEdit;
}
