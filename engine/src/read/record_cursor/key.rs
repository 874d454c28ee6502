//! The key of a cursor's record, in the pieces in which its leaf has it.

use super::RecordCursor;
use crate::row::key_bytes::KeyInPieces;

impl KeyInPieces for RecordCursor {
    fn whole(&self) -> &[u8] {
        self.key()
    }

    fn length(&self) -> usize {
        self.leaf().map_or(0, |image| image.key_len(self.at))
    }

    #[inline]
    fn copy_to(&self, from: usize, out: &mut [u8]) -> bool {
        self.leaf()
            .is_some_and(|image| image.copy_key(self.at, from, out))
    }

    #[inline]
    fn word(&self, from: usize, n: usize) -> Option<u128> {
        self.leaf()?.key_word(self.at, from, n)
    }
}
