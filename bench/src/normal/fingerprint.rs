//! Fingerprints: 64-bit numbers for values, so that sums compare answers.
//!
//! The sum of the rows' fingerprints is a checksum that does not depend on their order.

use xxhash_rust::xxh3::xxh3_64;

/// The fingerprint of a string.
#[must_use]
pub fn of_text(text: &[u8]) -> u64 {
    xxh3_64(text)
}

/// The fingerprint of a whole number, by the finaliser of `SplitMix64` (Sebastiano Vigna).
///
/// It mixes the bits, so that sums of different numbers differ.
#[must_use]
pub fn of_number(number: u64) -> u64 {
    let mut x = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
