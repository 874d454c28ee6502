//! Finds the offsets at which records of the log may begin, whatever precedes them.

use memchr::memmem;

/// Offset of a record's own position in the record.
const POSITION: usize = 8;
/// The search ignores so many low bits of a position, which change between records. The other bits are a needle that
/// few places in a file match.
const LOW_BITS: u32 = 16;
const LOW_BYTES: usize = LOW_BITS as usize / 8;

/// The offsets in `bytes` at which the bytes behind say that a record begins there. `bytes` begins at position `at` of
/// the log.
pub(super) fn beginnings(bytes: &[u8], at: u64) -> impl Iterator<Item = usize> + '_ {
    // One more than the last offset with room for a record's position.
    let end = bytes.len().saturating_sub(POSITION + 7);
    let says = move |offset: usize| {
        let word = bytes.get(offset + POSITION..)?.first_chunk::<8>()?;
        Some(u64::from_le_bytes(*word))
    };
    let mut from = 0;
    std::iter::from_fn(move || {
        while from < end {
            let high = (at + from as u64) >> LOW_BITS;
            let stretch = ((high + 1) << LOW_BITS) - at;
            let to = usize::try_from(stretch).unwrap_or(end).min(end);
            // The needle is all zeros here, which match nearly everywhere.
            let next = match high {
                0 => Some(from),
                _ => {
                    let needle = &high.to_le_bytes()[..8 - LOW_BYTES];
                    let hay = &bytes[from + POSITION + LOW_BYTES..to + POSITION + 7];
                    memmem::find(hay, needle).map(|found| from + found)
                }
            };
            let Some(next) = next else {
                from = to;
                continue;
            };
            from = next + 1;
            if says(next) == Some(at + next as u64) {
                return Some(next);
            }
        }
        None
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn all_are_found_and_nothing_else(
            at in prop_oneof![0..200_000_u64, (1_u64 << 47)..(1 << 48)],
            len in 0..70_000_usize,
            fill in any::<u8>(),
            put in proptest::collection::vec((0..70_000_usize, -2..3_i64), 0..40),
        ) {
            let mut bytes = vec![fill; len];
            for (offset, by) in put {
                if let Some(room) = bytes.get_mut(offset + POSITION..).and_then(|rest| rest.first_chunk_mut::<8>()) {
                    *room = (at + offset as u64).wrapping_add_signed(by).to_le_bytes();
                }
            }
            let words = bytes.windows(8).enumerate().skip(POSITION);
            let expected: Vec<usize> = words
                .map(|(i, word)| (i - POSITION, u64::from_le_bytes(word.try_into().unwrap())))
                .filter(|&(offset, says)| says == at + offset as u64)
                .map(|(offset, _)| offset)
                .collect();
            prop_assert_eq!(beginnings(&bytes, at).collect::<Vec<_>>(), expected);
        }
    }
}
