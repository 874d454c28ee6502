//! Searching the heads of a node's keys: the first four bytes behind the prefix, as numbers in order.

use crate::knobs;
use crate::node::vector::{Near, NEAR};

/// Heads in a cache line.
const IN_LINE: usize = 2 * NEAR;

/// Read access to the heads of a node.
pub(crate) trait Heads {
    /// Returns head `i`.
    fn at(&self, i: usize) -> u32;

    /// Returns the [`NEAR`] heads from `i` on; the node has that many.
    fn near(&self, i: usize) -> Near;

    /// Tells that the searched head most likely is near `i`, so that the next reads can be prefetched.
    #[inline(always)]
    fn expect(&self, _i: usize) {}
}

/// Returns the first of `n` heads that is not below `head`.
///
/// Among many heads, it first reads those where the head would be if all heads lay at equal distances (Perl, Itai and
/// Avni, "Interpolation search", 1978). Heads of consecutive numbers nearly do. This takes a division and a few heads
/// side by side, instead of ten waits for one head each. If the head is not there, the search halves what is left. In
/// a node that another thread changes, the heads may be in no order: the result is then any number up to `n`.
#[inline(always)]
pub(crate) fn first_not_below(n: usize, head: u32, heads: &impl Heads) -> usize {
    let (mut base, mut len) = (0, n);
    if n >= knobs::heads_to_interpolate() {
        let (least, most) = (heads.at(0), heads.at(n - 1));
        if head <= least {
            return 0;
        }
        if head > most {
            return n;
        }
        // In 32 bits, where a division takes no branch: a node has fewer than 2^11 records.
        let (before, all) = (head - least, most - least);
        let shift = 11_u32.saturating_sub(all.leading_zeros());
        let part = (before >> shift) * (n as u32 - 1) / (all >> shift);
        let from = (part as usize).saturating_sub(NEAR / 2).min(n - NEAR);
        heads.expect(from);
        match heads.near(from).below(head) {
            0 => len = from,
            NEAR => (base, len) = (from + NEAR, n - from - NEAR),
            below => return from + below,
        }
    }
    while len > 2 * NEAR {
        let half = len / 2;
        base += half * usize::from(heads.at(base + half - 1) < head);
        len -= half;
    }
    if len < NEAR {
        return first_failing(base, len, |i| heads.at(i) < head);
    }
    let last = len - NEAR;
    let first = heads.near(base).below(head);
    let second = heads.near(base + last).below(head);
    // Without a branch, because the processor can't predict in which of the two the head is.
    let in_second = usize::from(first == NEAR);
    base + first * (1 - in_second) + (last + second) * in_second
}

/// Like [`first_not_below`], but looks only near `guess`, and returns `None` if the head is not there.
///
/// This takes one wait most often: if the heads begin with a cache line, those that it reads are in the expected
/// line.
#[inline(always)]
pub(crate) fn first_not_below_near(
    n: usize,
    head: u32,
    guess: usize,
    heads: &impl Heads,
) -> Option<usize> {
    if n < NEAR {
        return None;
    }
    let line = guess - guess % IN_LINE;
    let from = guess.saturating_sub(NEAR / 2);
    let from = from.clamp(line, line + IN_LINE - NEAR).min(n - NEAR);
    heads.expect(from);
    match heads.near(from).below(head) {
        // The head may be before these or behind them.
        0 if from > 0 && heads.at(from - 1) >= head => None,
        NEAR if from + NEAR < n && heads.at(from + NEAR) < head => None,
        below => Some(from + below),
    }
}

/// Returns the first of `len` heads from the one at `base` on for which `below` is false; branch-free but for the
/// loop.
#[inline(always)]
pub(super) fn first_failing(
    mut base: usize,
    mut len: usize,
    below: impl Fn(usize) -> bool,
) -> usize {
    while len > 1 {
        let half = len / 2;
        base += half * usize::from(below(base + half - 1));
        len -= half;
    }
    if len == 1 && below(base) {
        base += 1;
    }
    base
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::vector::NEAR_BYTES;
    use proptest::prelude::*;

    impl Heads for Vec<u32> {
        fn at(&self, i: usize) -> u32 {
            self[i]
        }

        fn near(&self, i: usize) -> Near {
            let mut bytes = [0; NEAR_BYTES];
            for (to, head) in bytes.chunks_exact_mut(4).zip(&self[i..i + NEAR]) {
                to.copy_from_slice(&head.to_le_bytes());
            }
            Near::from_bytes(&bytes)
        }
    }

    proptest! {
        #[test]
        fn the_first_not_below_is_found_wherever_it_is_expected(
            mut heads in prop_oneof![
                prop::collection::vec(0..50u32, 0..200),
                prop::collection::vec(any::<u32>(), 0..200),
            ],
            head in prop_oneof![0..50u32, any::<u32>()],
            which in any::<prop::sample::Index>(),
            guess in any::<prop::sample::Index>(),
        ) {
            heads.sort_unstable();
            let n = heads.len();
            let one_of_them = (n > 0).then(|| heads[which.index(n.max(1))]);
            for head in [Some(head), one_of_them].into_iter().flatten() {
                let want = heads.partition_point(|h| *h < head);
                prop_assert_eq!(first_not_below(n, head, &heads), want);
                for guess in [guess.index(n.max(1)), want.min(n.saturating_sub(1))] {
                    let near = first_not_below_near(n, head, guess, &heads);
                    prop_assert!(near.is_none_or(|near| near == want), "{near:?}, not {want}");
                }
                // With the right guess, the head is found.
                let at = want.min(n.saturating_sub(1));
                prop_assert_eq!(first_not_below_near(n, head, at, &heads).is_some(), n >= NEAR);
            }
        }
    }
}
