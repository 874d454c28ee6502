//! A reference from an inner node to a child: a frame while the child is in memory, a page id while
//! it is not ("swizzling": Graefe et al., "In-Memory Performance for Big Data", 2014).

use crate::ids::FrameId;

const RESIDENT: u64 = 1 << 63;

/// A child reference, decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Child {
    /// In memory.
    Frame(FrameId),
    /// In the store.
    Page(u64),
}

/// The word for a child in memory.
#[inline]
pub(crate) fn resident(frame: FrameId) -> u64 {
    RESIDENT | u64::from(frame)
}

/// What a word refers to.
#[inline]
pub(crate) fn child(word: u64) -> Child {
    if word & RESIDENT != 0 {
        Child::Frame(word as FrameId)
    } else {
        Child::Page(word)
    }
}
