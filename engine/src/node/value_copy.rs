//! Buffers for a value that is read without a latch.

use std::ops::Range;

use crate::ids::PAGE_SIZE;

/// Bytes that are copied at once.
const BLOCK: usize = 32;

/// A buffer for a value, or for its prefix.
pub(crate) trait ValueCopy {
    /// Returns room for a value of `len` bytes, or for as much of it as the buffer keeps, in whole blocks.
    ///
    /// `None` for more bytes than a page has: only a page that is being changed gives such a length.
    fn room(&mut self, len: usize) -> Option<&mut [u8]>;

    /// Stores the bytes, or as many of the first as the buffer keeps, and returns how many.
    fn keep(&mut self, bytes: &[u8]) -> usize;

    /// Returns the bytes of a range that was filled before.
    fn bytes(&self, range: Range<usize>) -> &[u8];
}

/// A buffer for the first N bytes of a value.
pub(crate) struct Prefix<const N: usize>([u8; N]);

impl<const N: usize> Default for Prefix<N> {
    fn default() -> Self {
        Prefix([0; N])
    }
}

impl<const N: usize> ValueCopy for Prefix<N> {
    #[inline(always)]
    fn room(&mut self, len: usize) -> Option<&mut [u8]> {
        const { assert!(N % BLOCK == 0 && N <= PAGE_SIZE) }
        // A buffer of two blocks is always filled: this saves a branch that the processor can't predict.
        let len = if N > 2 * BLOCK {
            len.next_multiple_of(BLOCK).min(N)
        } else {
            N
        };
        self.0.get_mut(..len)
    }

    fn keep(&mut self, bytes: &[u8]) -> usize {
        let kept = bytes.len().min(N);
        self.0[..kept].copy_from_slice(&bytes[..kept]);
        kept
    }

    #[inline(always)]
    fn bytes(&self, range: Range<usize>) -> &[u8] {
        self.0.get(range).unwrap_or(&[])
    }
}

impl ValueCopy for Vec<u8> {
    #[inline]
    fn room(&mut self, len: usize) -> Option<&mut [u8]> {
        const { assert!(PAGE_SIZE % BLOCK == 0) }
        let len = len.next_multiple_of(BLOCK);
        if len > PAGE_SIZE {
            return None;
        }
        if len > self.len() {
            self.resize(len, 0);
        }
        self.get_mut(..len)
    }

    fn keep(&mut self, bytes: &[u8]) -> usize {
        self.clear();
        self.extend_from_slice(bytes);
        self.len()
    }

    #[inline]
    fn bytes(&self, range: Range<usize>) -> &[u8] {
        self.get(range).unwrap_or(&[])
    }
}
