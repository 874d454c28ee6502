//! A reference from an inner node to a child: a frame while the child is in memory, a page id otherwise.
//!
//! This is "swizzling": Graefe et al., "In-Memory Performance for Big Data", 2014.

use crate::ids::FrameId;

const RESIDENT: u64 = 1 << 63;

/// A child reference, decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Child {
    /// The child is in memory, in this frame.
    Frame(FrameId),
    /// The child is in the store, with this page id.
    Page(u64),
}

/// Returns the reference to a child in memory.
#[inline]
pub(crate) fn resident(frame: FrameId) -> u64 {
    RESIDENT | u64::from(frame)
}

/// Decodes a child reference.
#[inline]
pub(crate) fn child(word: u64) -> Child {
    if word & RESIDENT != 0 {
        Child::Frame(word as FrameId)
    } else {
        Child::Page(word)
    }
}
