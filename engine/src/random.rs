//! Pseudo-random numbers, the same for the same seed.

/// SplitMix64 (Steele, Lea, Flood, 2014).
pub fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Returns true once in `n` times on average.
pub fn one_of(state: &mut u64, n: u64) -> bool {
    next(state) % n == 0
}

/// A number below `bound`; 0 if that is 0.
pub fn below(state: &mut u64, bound: usize) -> usize {
    match bound {
        0 => 0,
        _ => (next(state) % bound as u64) as usize,
    }
}
