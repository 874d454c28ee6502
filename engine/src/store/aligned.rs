//! Memory for reads past the page cache.

use crate::os::DIRECT_ALIGN;

/// Memory for reads past the page cache; it begins at a multiple of [`DIRECT_ALIGN`].
#[derive(Debug, Default)]
pub(super) struct Aligned {
    memory: Vec<u8>,
}

impl Aligned {
    /// The first `len` bytes, with undefined content.
    pub fn bytes(&mut self, len: usize) -> &mut [u8] {
        if self.memory.len() < len + DIRECT_ALIGN {
            self.memory.resize(len + DIRECT_ALIGN, 0);
        }
        let start = self.memory.as_ptr().align_offset(DIRECT_ALIGN);
        // A Vec of that length begins less than DIRECT_ALIGN bytes before a multiple of it.
        &mut self.memory[start.min(DIRECT_ALIGN)..][..len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::place::UNIT;

    #[test]
    fn memory_for_direct_reads_is_aligned_whatever_is_asked_for() {
        let mut memory = Aligned::default();
        for len in [1, UNIT, 17 * UNIT, 128 * UNIT, 3 * UNIT] {
            let bytes = memory.bytes(len);
            assert_eq!(bytes.len(), len);
            assert_eq!(bytes.as_ptr() as usize % DIRECT_ALIGN, 0);
        }
    }
}
