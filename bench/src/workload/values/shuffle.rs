//! A permutation of a range that needs no memory: it computes each number from its index.
//!
//! It is a Feistel network of four rounds over the smallest even number of bits that holds the range. A result outside
//! of the range is permuted again until it is inside ("cycle walking", J. Black and P. Rogaway, "Ciphers with arbitrary
//! finite domains", 2002).

/// A permutation of the numbers below `size`, chosen by a seed.
#[derive(Debug, Clone, Copy)]
pub struct Shuffle {
    size: u64,
    half_bits: u32,
    seed: u64,
}

impl Shuffle {
    /// Creates the permutation of `size` numbers for `seed`.
    #[must_use]
    pub fn new(size: u64, seed: u64) -> Self {
        let bits = 64 - size.saturating_sub(1).leading_zeros();
        Self {
            size,
            half_bits: bits.div_ceil(2).max(1),
            seed,
        }
    }

    /// Returns the number at index `place`, modulo the size.
    #[must_use]
    pub fn at(&self, place: u64) -> u64 {
        if self.size < 2 {
            return 0;
        }
        let mut number = place % self.size;
        loop {
            number = self.permuted(number);
            if number < self.size {
                return number;
            }
        }
    }

    fn permuted(&self, number: u64) -> u64 {
        let mask = (1_u64 << self.half_bits) - 1;
        let mut left = number >> self.half_bits;
        let mut right = number & mask;
        for round in 0..4_u64 {
            let mixed = mix(right ^ self.seed.rotate_left(16) ^ (round << 56));
            (left, right) = (right, left ^ (mixed & mask));
        }
        (left << self.half_bits) | right
    }
}

/// Mixes the bits of a number (the finaliser of `splitmix64`, by S. Vigna).
#[must_use]
pub fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_comes_exactly_once() {
        for size in [1, 2, 3, 7, 64, 100, 4_097] {
            let shuffle = Shuffle::new(size, 5);
            let mut seen: Vec<u64> = (0..size).map(|place| shuffle.at(place)).collect();
            if size > 50 {
                let at_home = seen
                    .iter()
                    .zip(0..)
                    .filter(|(number, place)| *number == place);
                assert!(at_home.count() < 10, "{size} numbers are not shuffled");
            }
            seen.sort_unstable();
            assert_eq!(seen, (0..size).collect::<Vec<_>>());
            assert_eq!(shuffle.at(size), shuffle.at(0));
        }
    }

    #[test]
    fn another_seed_shuffles_otherwise() {
        let order = |seed| -> Vec<u64> {
            let shuffle = Shuffle::new(1_000, seed);
            (0..1_000).map(|place| shuffle.at(place)).collect()
        };
        assert_eq!(order(1), order(1));
        assert_ne!(order(1), order(2));
    }
}
