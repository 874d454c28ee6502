//! The numbers that name things: pages, trees, tables, transactions, log positions.
//!
//! Each is a type of its own, so that a page id can't be passed where a transaction id is meant.

use std::fmt;

/// Bytes of a page, in memory and (before compression) on disk.
pub const PAGE_SIZE: usize = 16 * 1024;

/// The longest key of a tree, in bytes.
pub const MAX_KEY: usize = 3900;

/// The longest value of a tree record, in bytes, version header included.
pub const MAX_VALUE: usize = 4000;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $repr:ty) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash,
            serde::Serialize, serde::Deserialize,
        )]
        pub struct $name(pub $repr);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id!(
    /// A page's number for its lifetime, wherever its image is on disk.
    ///
    /// Never 0, below 2^48.
    PageId, u64
);
id!(
    /// A tree's number within the database. Never reused.
    TreeId, u32
);
id!(
    /// A table's number within the database. Never reused.
    TableId, u32
);
id!(
    /// A writing transaction's number, given at its first write. Below 2^48; 0 is "none".
    TxId, u64
);
id!(
    /// A commit sequence number: the place of a transaction's end in the order of all ends.
    Csn, u64
);
id!(
    /// A byte position in the log, counted from the first byte that the log ever had.
    Lsn, u64
);

/// The place of an undo record: page id in the upper 48 bits, byte offset in the page below.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize,
)]
pub struct UndoPtr(pub u64);

impl UndoPtr {
    /// No undo record.
    pub const NONE: UndoPtr = UndoPtr(0);

    /// The pointer to byte `offset` of `page`.
    pub fn new(page: PageId, offset: u16) -> Self {
        UndoPtr(page.0 << 16 | u64::from(offset))
    }

    /// The page.
    pub fn page(self) -> PageId {
        PageId(self.0 >> 16)
    }

    /// The byte offset in the page.
    pub fn offset(self) -> usize {
        (self.0 & 0xffff) as usize
    }

    /// Whether this is [`UndoPtr::NONE`].
    pub fn is_none(self) -> bool {
        self.0 == 0
    }
}

/// The number of a frame of the buffer pool.
pub(crate) type FrameId = u32;

/// How often a latch was held exclusively: an optimistic reader notes it.
///
/// Only latches make values of this type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LatchVersion(pub(crate) u64);

impl LatchVersion {
    /// The version as a number, whose low 19 bits are zero.
    ///
    /// No number comes twice.
    pub fn number(self) -> u64 {
        self.0
    }
}
