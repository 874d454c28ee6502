//! The server's collations: callbacks that compute sort keys.

use peregrine::{Collations, Error, Result};

use crate::c_types::SortKey;

/// `PEREGRINE_NO_SORT_KEY_MEMORY`.
const NO_MEMORY: usize = usize::MAX - 1;

/// Computes sort keys with the server's function.
pub struct ServerCollations {
    sort_key: SortKey,
}

impl ServerCollations {
    /// Wraps the function.
    pub fn new(sort_key: SortKey) -> Self {
        ServerCollations { sort_key }
    }
}

impl Collations for ServerCollations {
    fn sort_key(
        &self,
        collation: u32,
        value: &[u8],
        prefix_chars: Option<u32>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        // A character takes at most four bytes, so only the prefix of a long value determines the key's length.
        let counts = prefix_chars.map_or(value.len(), |n| value.len().min(4 * n as usize));
        let mut capacity = 2 * counts + 32;
        loop {
            out.try_reserve(capacity).map_err(|_| Error::OutOfMemory {
                bytes: capacity,
                what: "a sort key",
            })?;
            let room = out.spare_capacity_mut();
            // SAFETY: `value` and `room` are valid for the lengths given, and the function writes no more than
            // `room.len()` bytes.
            let length = unsafe {
                (self.sort_key)(
                    collation,
                    value.as_ptr(),
                    value.len(),
                    prefix_chars.unwrap_or(u32::MAX),
                    room.as_mut_ptr().cast(),
                    room.len(),
                )
            };
            if length == usize::MAX {
                return Err(Error::Invalid(format!(
                    "unknown collation number {collation}"
                )));
            }
            if length == NO_MEMORY {
                return Err(Error::OutOfMemory {
                    bytes: value.len(),
                    what: "a sort key",
                });
            }
            if length <= room.len() {
                let total = out.len() + length;
                // SAFETY: the function has written `length` bytes from the old end on.
                unsafe { out.set_len(total) };
                return Ok(());
            }
            capacity = length;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Repeats every byte three times, so that keys of long values exceed the first guess.
    unsafe extern "C" fn thrice(
        collation: u32,
        value: *const u8,
        length: usize,
        prefix: u32,
        out: *mut u8,
        capacity: usize,
    ) -> usize {
        if collation != 8 {
            return usize::MAX;
        }
        // SAFETY: by the caller's promises.
        let value = unsafe { std::slice::from_raw_parts(value, length) };
        let key: Vec<u8> = value
            .iter()
            .take(prefix as usize)
            .flat_map(|&b| [b; 3])
            .collect();
        let n = key.len().min(capacity);
        // SAFETY: `out` has `capacity` bytes.
        unsafe { std::ptr::copy_nonoverlapping(key.as_ptr(), out, n) };
        key.len()
    }

    #[test]
    fn keys_longer_than_guessed_are_asked_for_again() {
        let value: Vec<u8> = (0..1000).map(|i| i as u8).collect();
        let mut out = b"before".to_vec();
        ServerCollations::new(thrice)
            .sort_key(8, &value, None, &mut out)
            .unwrap();
        assert_eq!(&out[..9], b"before\0\0\0");
        assert_eq!(out.len(), 6 + 3000);
        assert_eq!(&out[3003..], &[231; 3]);
    }

    #[test]
    fn prefixes_and_unknown_collations_pass_through() {
        let mut out = Vec::new();
        ServerCollations::new(thrice)
            .sort_key(8, b"abc", Some(2), &mut out)
            .unwrap();
        assert_eq!(out, b"aaabbb");
        assert!(ServerCollations::new(thrice)
            .sort_key(9, b"abc", None, &mut out)
            .is_err());
    }
}
