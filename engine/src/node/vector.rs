//! Sixteen bytes at once: read from memory that another thread may change, and compared as heads side by side.
//!
//! The compiler turns a loop over such memory into one read after another. So this module names the processor's own
//! instructions. Every x86-64 has them (SSE2).

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

/// Heads that are compared at once: half of a cache line.
pub(crate) const NEAR: usize = 8;

/// Bytes of [`NEAR`] heads.
pub(crate) const NEAR_BYTES: usize = 4 * NEAR;

/// Bytes of a vector.
pub(crate) const VECTOR: usize = 16;

#[cfg(target_arch = "x86_64")]
type Register = __m128i;
#[cfg(not(target_arch = "x86_64"))]
type Register = [u8; VECTOR];

/// Sixteen bytes.
#[derive(Clone, Copy)]
#[repr(C, packed)]
pub(crate) struct Vector(Register);

impl Vector {
    /// Reads the bytes at `at`, which another thread may be changing.
    ///
    /// # Safety
    /// The bytes stay allocated, and are initialised.
    #[inline(always)]
    pub unsafe fn read_volatile(at: *const u8) -> Vector {
        // SAFETY: as the caller promises; a `Vector` has no alignment, and any bits are a valid `Vector`.
        unsafe { at.cast::<Vector>().read_volatile() }
    }

    /// Returns the bytes, in memory order.
    #[inline(always)]
    pub fn bytes(self) -> [u8; VECTOR] {
        // SAFETY: both types have the same size, and any bits are valid bytes.
        unsafe { std::mem::transmute(self) }
    }
}

/// [`NEAR`] heads in ascending order.
#[derive(Clone, Copy)]
pub(crate) struct Near([Vector; 2]);

impl Near {
    /// Makes heads from their bytes.
    #[inline(always)]
    pub fn from_bytes(bytes: &[u8; NEAR_BYTES]) -> Near {
        // SAFETY: both types have the same size, and any bits are valid vectors.
        Near(unsafe { std::mem::transmute::<[u8; NEAR_BYTES], [Vector; 2]>(*bytes) })
    }

    /// Reads the heads at `at`, which another thread may be changing.
    ///
    /// # Safety
    /// [`NEAR_BYTES`] bytes stay allocated there, and are initialised.
    #[inline(always)]
    pub unsafe fn read_volatile(at: *const u8) -> Near {
        // SAFETY: as the caller promises.
        unsafe {
            Near([
                Vector::read_volatile(at),
                Vector::read_volatile(at.add(VECTOR)),
            ])
        }
    }

    /// Returns how many of the heads are below `head`; heads in no order give any number up to [`NEAR`].
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub fn below(self, head: u32) -> usize {
        let [first, second] = self.0;
        // SAFETY: every x86-64 has these instructions.
        let lanes = unsafe {
            // SSE2 compares only signed numbers: so the sign bits are flipped.
            let turned = |heads| _mm_xor_si128(heads, _mm_set1_epi32(i32::MIN));
            let head = turned(_mm_set1_epi32(head as i32));
            let below = |heads| _mm_cmplt_epi32(turned(heads), head);
            _mm_movemask_epi8(_mm_packs_epi32(below(first.0), below(second.0))) as u32
        };
        // The heads that are below come first, and each gives two bits.
        lanes.trailing_ones() as usize / 2
    }

    /// Returns how many of the heads are below `head`; heads in no order give any number up to [`NEAR`].
    #[cfg(not(target_arch = "x86_64"))]
    #[inline(always)]
    pub fn below(self, head: u32) -> usize {
        let in_one = |vector: Vector| {
            let bytes = vector.bytes();
            let heads = bytes
                .chunks_exact(4)
                .map(|head| u32::from_le_bytes([head[0], head[1], head[2], head[3]]));
            heads.filter(|h| *h < head).count()
        };
        self.0.into_iter().map(in_one).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn heads_in_order_are_counted(mut heads in any::<[u32; NEAR]>(), other in any::<u32>(), which in 0..2 * NEAR) {
            heads.sort_unstable();
            let head = heads.get(which).copied().unwrap_or(other);
            let bytes: Vec<u8> = heads.iter().flat_map(|head| head.to_le_bytes()).collect();
            let below = heads.iter().filter(|h| **h < head).count();
            prop_assert_eq!(Near::from_bytes(bytes[..].try_into().unwrap()).below(head), below);
            // SAFETY: there are as many bytes, and no thread changes them.
            let read = unsafe { Near::read_volatile(bytes.as_ptr()) };
            prop_assert_eq!(read.below(head), below);
        }

        #[test]
        fn bytes_are_as_in_memory(bytes in any::<[u8; VECTOR]>()) {
            // SAFETY: there are as many bytes, and no thread changes them.
            let vector = unsafe { Vector::read_volatile(bytes.as_ptr()) };
            prop_assert_eq!(vector.bytes(), bytes);
        }
    }
}
