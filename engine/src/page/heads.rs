//! Searching among the heads of a node's keys: the first four bytes behind the prefix, as numbers in order.

/// Heads that are looked at where a head is supposed to be: half of a cache line.
const NEAR: usize = 8;

/// With fewer heads than this halving is as fast.
const MANY: usize = 32;

/// The first of `n` heads that is not below `head`.
///
/// Looks first where it would be if the heads lay at equal distances (Perl, Itai and Avni, "Interpolation
/// search", 1978), as those of numbers in order nearly do: a division and a few heads side by side, instead of
/// ten waits for one head each. Where it is not there, halves what is left. Heads of a node that changes
/// meanwhile may be in no order: the result is then any number up to `n`.
#[inline(always)]
pub(super) fn first_not_below(n: usize, head: u32, head_at: impl Fn(usize) -> u32) -> usize {
    let (mut base, mut len) = (0, n);
    if n >= MANY {
        let (least, most) = (head_at(0), head_at(n - 1));
        if head <= least {
            return 0;
        }
        if head > most {
            return n;
        }
        let part = u64::from(head - least) * (n as u64 - 1) / u64::from(most - least);
        let from = (part as usize).saturating_sub(NEAR / 2).min(n - NEAR);
        let below: usize = (from..from + NEAR)
            .map(|i| usize::from(head_at(i) < head))
            .sum();
        match below {
            0 => len = from,
            NEAR => (base, len) = (from + NEAR, n - from - NEAR),
            _ => return from + below,
        }
    }
    first_failing(base, len, |i| head_at(i) < head)
}

/// The first of `len` heads from the one at `base` on for which `below` fails. Branch-free but for the loop.
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
