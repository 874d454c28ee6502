//! How the layers above change a record of a leaf, or freeze it.

/// The change that a caller asks for after it has read a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordEdit {
    /// The record stays as it is.
    Keep,
    /// The record gets the new value; a missing record is created.
    Put,
    /// The record is removed.
    Remove,
}

/// Frees room in a full leaf before a split.
///
/// The implementation shortens values whose version header no snapshot needs, and drops records that no snapshot can
/// see. The tree calls it with the leaf latched: it must neither wait nor access pages.
pub trait LeafFreeze: Send + Sync {
    /// Decides about one record's value.
    ///
    /// For [`RecordEdit::Put`], `out` (empty on entry) holds the new value, which must not be longer than the old
    /// one.
    fn freeze(&self, value: &[u8], out: &mut Vec<u8>) -> RecordEdit;
}
