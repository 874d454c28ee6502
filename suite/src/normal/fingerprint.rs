//! Values as 64-bit numbers, so that answers can be compared by sums.
//!
//! Adding up the fingerprints of the rows gives a checksum that does not depend on their order.

use xxhash_rust::xxh3::xxh3_64;

/// The fingerprint of a string.
#[must_use]
pub fn of_text(text: &[u8]) -> u64 {
    xxh3_64(text)
}

/// The fingerprint of a whole number, mixed so that sums of different numbers differ (the finaliser
/// of `SplitMix64`, by Sebastiano Vigna).
#[must_use]
pub fn of_number(number: u64) -> u64 {
    let mut x = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
