//! Zipf's distribution: a few are asked for often, most seldom.
//!
//! Drawn by rejection-inversion (W. Hörmann and G. Derflinger, "Rejection-inversion to generate variates
//! from monotone discrete distributions", ACM TOMACS 6, 1996): a constant time and no table, whatever
//! the number of ranks.

use crate::dice::Dice;

/// The distribution over the ranks 1 to n, where rank k has a share in proportion to k^-exponent.
#[derive(Debug, Clone, Copy)]
pub struct Zipf {
    ranks: u64,
    exponent: f64,
    /// The integral up to 1½, less the first rank's share.
    first: f64,
    /// The integral up to n + ½.
    last: f64,
    /// Within this distance of a rank its share is surely met, without more ado.
    safe: f64,
}

impl Zipf {
    /// Over `ranks` ranks (at least one); `exponent` is above 0.
    #[must_use]
    pub fn new(ranks: u64, exponent: f64) -> Self {
        let ranks = ranks.max(1);
        let mut zipf = Self {
            ranks,
            exponent,
            first: 0.0,
            last: 0.0,
            safe: 0.0,
        };
        zipf.first = zipf.integral(1.5) - 1.0;
        zipf.last = zipf.integral(ranks as f64 + 0.5);
        zipf.safe = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.share(2.0));
        zipf
    }

    /// Draws a rank.
    pub fn draw(&self, dice: &mut Dice) -> u64 {
        let most = self.ranks as f64;
        loop {
            let area = self.last + dice.unit() * (self.first - self.last);
            let place = self.inverse(area);
            let rank = place.round().clamp(1.0, most);
            if rank - place <= self.safe || area >= self.integral(rank + 0.5) - self.share(rank) {
                return rank as u64;
            }
        }
    }

    fn share(&self, rank: f64) -> f64 {
        (-self.exponent * rank.ln()).exp()
    }

    /// The integral of the share from 1 to `x`, written so that exponents near 1 lose no figures.
    fn integral(&self, x: f64) -> f64 {
        let logarithm = x.ln();
        grown((1.0 - self.exponent) * logarithm) * logarithm
    }

    fn inverse(&self, area: f64) -> f64 {
        let scaled = (area * (1.0 - self.exponent)).max(-1.0);
        (shrunk(scaled) * area).exp()
    }
}

/// (eˣ − 1) / x, which is 1 at 0.
fn grown(x: f64) -> f64 {
    if x.abs() > 1e-8 {
        x.exp_m1() / x
    } else {
        1.0 + x / 2.0
    }
}

/// ln(1 + x) / x, which is 1 at 0.
fn shrunk(x: f64) -> f64 {
    if x.abs() > 1e-8 {
        x.ln_1p() / x
    } else {
        1.0 - x / 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rank_has_its_share() {
        for (ranks, exponent) in [
            (1_u64, 0.99),
            (2, 0.5),
            (10, 0.99),
            (10, 1.0),
            (100, 1.5),
            (40, 3.0),
        ] {
            let zipf = Zipf::new(ranks, exponent);
            let mut dice = Dice::new(7, ranks);
            let draws = 200_000_u32;
            let mut counts = vec![0_u32; usize::try_from(ranks).expect("few")];
            for _ in 0..draws {
                let rank = zipf.draw(&mut dice);
                counts[usize::try_from(rank - 1).expect("a rank")] += 1;
            }
            let shares: Vec<f64> = (1..=ranks).map(|k| (k as f64).powf(-exponent)).collect();
            let whole: f64 = shares.iter().sum();
            for (count, share) in counts.iter().zip(&shares) {
                let expected = f64::from(draws) * share / whole;
                // Five standard deviations; the seed is fixed, so this holds or not for good.
                let allowed = 5.0 * expected.sqrt() + 1.0;
                assert!(
                    (f64::from(*count) - expected).abs() < allowed,
                    "{ranks} ranks, exponent {exponent}: {count}, {expected} expected"
                );
            }
        }
    }

    #[test]
    fn many_ranks_are_drawn_within_their_bounds() {
        let ranks = 1_u64 << 40;
        let zipf = Zipf::new(ranks, 0.99);
        let mut dice = Dice::new(1, 1);
        let drawn: Vec<u64> = (0..20_000).map(|_| zipf.draw(&mut dice)).collect();
        assert!(drawn.iter().all(|rank| (1..=ranks).contains(rank)));
        assert!(drawn.iter().any(|rank| *rank > ranks / 100));
        assert!(drawn.iter().filter(|rank| **rank < 1_000).count() > 2_000);
    }
}
