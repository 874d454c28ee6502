//! Random numbers that are the same on every platform.

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use rand_distr::{Distribution, Zipf};

/// Random numbers for data, parameters and schedules.
///
/// `ChaCha8` gives the same numbers for the same seed and stream on every platform, so every engine gets the same
/// questions.
#[derive(Debug, Clone)]
pub struct Dice(ChaCha8Rng);

/// 2⁻⁵³: the step between the numbers of [`Dice::unit`].
const UNIT: f64 = 1.0 / (1_u64 << 53) as f64;

impl Dice {
    /// Creates the generator for `seed` and `stream`.
    #[must_use]
    pub fn new(seed: u64, stream: u64) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        random.set_stream(stream);
        Self(random)
    }

    /// Returns a number below `bound` (0 when `bound` is 0), by Lemire's multiplication.
    pub fn below(&mut self, bound: u32) -> u32 {
        let scaled = (u64::from(self.0.next_u32()) * u64::from(bound)) >> 32;
        u32::try_from(scaled).unwrap_or(0)
    }

    /// Like [`Dice::below`], for large bounds.
    pub fn below_wide(&mut self, bound: u64) -> u64 {
        if let Ok(bound) = u32::try_from(bound) {
            return u64::from(self.below(bound));
        }
        let scaled = (u128::from(self.0.next_u64()) * u128::from(bound)) >> 64;
        u64::try_from(scaled).unwrap_or(0)
    }

    /// Returns a number from `from` to `to`, both included; returns `from` if the range is empty.
    pub fn between(&mut self, from: i64, to: i64) -> i64 {
        let width = to.wrapping_sub(from);
        if from >= to || width < 0 {
            return from;
        }
        let offset = self.below_wide(width.unsigned_abs().saturating_add(1));
        from.wrapping_add_unsigned(offset)
    }

    /// Returns a number from 0 to below 1, in steps of 2⁻⁵³.
    pub fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 * UNIT
    }

    /// Returns a rank from 1 to `ranks`, drawn from `zipf`, a Zipf distribution over `ranks` ranks.
    pub fn rank(&mut self, ranks: u64, zipf: &Zipf<f64>) -> u64 {
        // The sample is a whole number; a float keeps 53 bits of it.
        (zipf.sample(&mut self.0) as u64).clamp(1, ranks.max(1))
    }

    /// Returns 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_in_their_bounds_and_reach_both_ends() {
        let mut dice = Dice::new(1, 2);
        for (from, to) in [(0, 0), (-3, 3), (5, 6), (-1, 1)] {
            let drawn: Vec<i64> = (0..2_000).map(|_| dice.between(from, to)).collect();
            assert_eq!(drawn.iter().min(), Some(&from));
            assert_eq!(drawn.iter().max(), Some(&to));
        }
        assert_eq!(dice.between(7, 3), 7);
        let wide = 1_u64 << 40;
        let drawn: Vec<u64> = (0..2_000).map(|_| dice.below_wide(wide)).collect();
        assert!(drawn.iter().all(|number| *number < wide));
        assert!(drawn.iter().any(|number| *number > wide / 2));
        for _ in 0..2_000 {
            let unit = dice.unit();
            assert!((0.0..1.0).contains(&unit));
        }
    }

    #[test]
    fn the_same_seed_and_stream_give_the_same_numbers() {
        let drawn = |seed, stream| -> Vec<u64> {
            let mut dice = Dice::new(seed, stream);
            (0..8).map(|_| dice.bits()).collect()
        };
        assert_eq!(drawn(1, 1), drawn(1, 1));
        assert_ne!(drawn(1, 1), drawn(1, 2));
        assert_ne!(drawn(1, 1), drawn(2, 1));
    }
}
