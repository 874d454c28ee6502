//! Restores a string from its sort key: most collations' weights of a Latin string are its upper-case letters, one byte
//! or two bytes each, so a bit per letter restores the original. Other strings are stored whole beside the key.
//!
//! Form: varint (length × 8 + kind), then by kind
//!   0  the original
//!   1  weights are bytes w; the original is w                       (nothing follows)
//!   2  weights are bytes w; the original is w or w ^ 0x20           (a bit a byte)
//!   3  as 1 with weights 00 w
//!   4  as 2 with weights 00 w

use crate::row::key_bytes::{KeyInPieces, PartOfKey};
use crate::row::varint;

const RAW: u64 = 0;
const SAME: u64 = 1;
const CASE: u64 = 2;
const WIDE_SAME: u64 = 3;
const WIDE_CASE: u64 = 4;

/// Whether a byte equals its weight (`Some(false)`), its other case (`Some(true)`), or neither (`None`).
fn differs(v: u8, w: u8) -> Option<bool> {
    match v ^ w {
        0 => Some(false),
        0x20 => Some(true),
        _ => None,
    }
}

/// The kind that restores `value` from `weights`.
fn kind(value: &[u8], weights: &[u8]) -> u64 {
    let scan = |pairs: &mut dyn Iterator<Item = (u8, u8)>| -> Option<bool> {
        let mut any = false;
        for (v, w) in pairs {
            any |= differs(v, w)?;
        }
        Some(any)
    };
    if weights.len() >= value.len() {
        let mut narrow = value.iter().copied().zip(weights.iter().copied());
        match scan(&mut narrow) {
            Some(false) => return SAME,
            Some(true) => return CASE,
            None => {}
        }
    }
    if weights.len() >= value.len() * 2
        && weights.chunks_exact(2).take(value.len()).all(|c| c[0] == 0)
    {
        let mut wide = value
            .iter()
            .copied()
            .zip(weights.chunks_exact(2).map(|c| c[1]));
        match scan(&mut wide) {
            Some(false) => return WIDE_SAME,
            Some(true) => return WIDE_CASE,
            None => {}
        }
    }
    RAW
}

/// Appends the form from which `weights` restores `value`.
pub(crate) fn encode(value: &[u8], weights: &[u8], out: &mut Vec<u8>) {
    let kind = kind(value, weights);
    varint::put((value.len() as u64) << 3 | kind, out);
    let step = match kind {
        RAW => {
            out.extend_from_slice(value);
            return;
        }
        CASE => 1,
        WIDE_CASE => 2,
        _ => return,
    };
    let at = out.len();
    out.resize(at + value.len().div_ceil(8), 0);
    for (i, &v) in value.iter().enumerate() {
        let w = weights[i * step + step - 1];
        out[at + i / 8] |= u8::from(v != w) << (i % 8);
    }
}

/// Where [`restore`] has put or found an original.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Restored {
    /// At the front of the weights' buffer, with this length.
    Front(usize),
    /// At the end of the form, with this length.
    Whole(usize),
}

/// A decoded form.
enum Form<'a> {
    /// The original.
    Raw(&'a [u8]),
    /// An original of this length; a set bit of the map marks a byte that differs from its weight.
    Map(usize, &'a [u8]),
    /// As `Map`, with weights of two bytes.
    WideMap(usize, &'a [u8]),
}

/// Takes one form from the front of `bytes`; `None` if they are no such form.
#[inline]
fn take<'a>(bytes: &mut &'a [u8]) -> Option<Form<'a>> {
    let head = varint::take(bytes)?;
    let n = usize::try_from(head >> 3).ok()?;
    let follow = match head & 7 {
        RAW => n,
        CASE | WIDE_CASE => n.div_ceil(8),
        SAME | WIDE_SAME => 0,
        _ => return None,
    };
    let (own, rest) = bytes.split_at_checked(follow)?;
    *bytes = rest;
    Some(match head & 7 {
        RAW => Form::Raw(own),
        SAME | CASE => Form::Map(n, own),
        _ => Form::WideMap(n, own),
    })
}

/// Takes one form from the front of `bytes`; turns its weights into the original, unless the form has that whole.
///
/// `None` if the bytes are no such form.
pub(crate) fn restore(bytes: &mut &[u8], weights: &mut [u8]) -> Option<Restored> {
    let (n, map) = match take(bytes)? {
        Form::Raw(value) => return Some(Restored::Whole(value.len())),
        Form::Map(n, map) => (n, map),
        Form::WideMap(n, map) => {
            narrow(weights.get_mut(..n.checked_mul(2)?)?);
            (n, map)
        }
    };
    flip(weights.get_mut(..n)?, map);
    Some(Restored::Front(n))
}

/// Takes one form from the front of `bytes`, and puts the original at the front of `out`; may overwrite the rest of
/// `out`.
///
/// Returns the original's length; `None` if the bytes are no such form, if there are too few weights, or if `out` is
/// too short.
#[inline]
pub(crate) fn restore_to(
    bytes: &mut &[u8],
    out: &mut [u8],
    weights: &PartOfKey<'_, impl KeyInPieces>,
) -> Option<usize> {
    match take(bytes)? {
        Form::Raw(value) => {
            out.get_mut(..value.len())?.copy_from_slice(value);
            Some(value.len())
        }
        Form::Map(n, map) => {
            if in_words(n, map, out, weights).is_none() {
                let value = out.get_mut(..n)?;
                if !weights.copy_to(0, value) {
                    return None;
                }
                flip(value, map);
            }
            Some(n)
        }
        Form::WideMap(n, map) => {
            let value = out.get_mut(..n)?;
            const PIECE: usize = 32;
            let mut wide = [0; 2 * PIECE];
            for (i, piece) in value.chunks_mut(PIECE).enumerate() {
                let weight = &mut wide[..2 * piece.len()];
                if !weights.copy_to(2 * PIECE * i, weight) {
                    return None;
                }
                narrow(weight);
                piece.copy_from_slice(&weight[..piece.len()]);
            }
            flip(value, map);
            Some(n)
        }
    }
}

/// Moves the second byte of each two-byte weight to the front.
fn narrow(weights: &mut [u8]) {
    for i in 0..weights.len() / 2 {
        weights[i] = weights[2 * i + 1];
    }
}

/// Flips the case of the bytes for which `map` has a bit.
#[inline]
fn flip(value: &mut [u8], map: &[u8]) {
    for (bytes, &map) in value.chunks_mut(8).zip(map) {
        let flips = flips(map);
        if let Ok(eight) = <&mut [u8; 8]>::try_from(&mut *bytes) {
            *eight = (u64::from_le_bytes(*eight) ^ u64::from_le_bytes(flips)).to_le_bytes();
        } else {
            bytes.iter_mut().zip(flips).for_each(|(b, flip)| *b ^= flip);
        }
    }
}

/// Makes a string of `n` bytes in registers, and stores whole words, so that the processor need not predict its length.
///
/// `None` if `out` has no room for whole words, or if the weights can't be read as words.
#[inline]
fn in_words(
    n: usize,
    map: &[u8],
    out: &mut [u8],
    weights: &PartOfKey<'_, impl KeyInPieces>,
) -> Option<()> {
    const WORD: usize = size_of::<u128>();
    let out = out.get_mut(..n.next_multiple_of(WORD))?;
    for (i, to) in out.chunks_exact_mut(WORD).enumerate() {
        let word = weights.word(WORD * i, WORD.min(n - WORD * i))?;
        let half = |at: usize| map.get(at).map_or([0; 8], |&map| flips(map));
        let [low, high] = [half(2 * i), half(2 * i + 1)].map(u64::from_le_bytes);
        let flipped = word ^ (u128::from(low) | u128::from(high) << 64);
        to.copy_from_slice(&flipped.to_le_bytes());
    }
    Some(())
}

/// The difference of eight bytes from their weights: 0x20 for each bit of the map.
#[inline]
fn flips(map: u8) -> [u8; 8] {
    const EACH: u64 = 0x0101_0101_0101_0101;
    // Bit i into byte i, then to the byte's highest bit.
    let own = (u64::from(map) * EACH) & 0x8040_2010_0804_0201;
    let high = ((own + 0x7f * EACH) | own) & (0x80 * EACH);
    (high >> 2).to_le_bytes()
}

/// Skips one form.
pub(crate) fn skip(bytes: &mut &[u8]) -> Option<()> {
    take(bytes).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A key that returns words, with other bytes behind those asked for.
    struct Words<'a>(&'a [u8]);

    impl KeyInPieces for Words<'_> {
        fn whole(&self) -> &[u8] {
            self.0
        }

        fn length(&self) -> usize {
            self.0.len()
        }

        fn copy_to(&self, from: usize, out: &mut [u8]) -> bool {
            self.0.copy_to(from, out)
        }

        fn word(&self, from: usize, n: usize) -> Option<u128> {
            let mut word = [b'?'; 16];
            self.copy_to(from, &mut word[..n])
                .then_some(u128::from_le_bytes(word))
        }
    }

    fn upper(value: &[u8], wide: bool) -> Vec<u8> {
        let mut out = Vec::new();
        for b in value {
            if wide {
                out.push(0);
            }
            out.push(b.to_ascii_uppercase());
        }
        out.extend_from_slice(&[0, 0]);
        out
    }

    proptest! {
        #[test]
        fn restores(value in prop_oneof![any::<Vec<u8>>(), "[a-zA-Z ]{0,40}".prop_map(String::into_bytes)],
                    mode in 0..3, other in any::<Vec<u8>>(), tail in any::<Vec<u8>>(), room in 0_usize..40) {
            let weights = match mode { 0 => upper(&value, false), 1 => upper(&value, true), _ => other };
            let mut form = Vec::new();
            encode(&value, &weights, &mut form);
            form.extend_from_slice(&tail);
            let mut rest = &form[..];
            let mut back = weights.clone();
            let restored = restore(&mut rest, &mut back);
            prop_assert_eq!(rest, &tail[..]);
            let end = form.len() - tail.len();
            match restored {
                Some(Restored::Front(n)) => prop_assert_eq!(&back[..n], &value),
                Some(Restored::Whole(n)) => prop_assert_eq!(&form[end - n..end], &value),
                None => prop_assert!(false, "no form"),
            }
            let mut rest = &form[..];
            let mut back = vec![0; value.len()];
            let weights = Words(&weights);
            let copy = &PartOfKey { key: &weights, at: 0, len: weights.0.len() };
            prop_assert_eq!(restore_to(&mut rest, &mut back, copy), Some(value.len()));
            prop_assert_eq!((rest, &back), (&tail[..], &value));
            // With room behind the string.
            let mut roomy = vec![0; value.len() + room];
            prop_assert_eq!(restore_to(&mut &form[..], &mut roomy, copy), Some(value.len()));
            prop_assert_eq!(&roomy[..value.len()], &value);
            if !value.is_empty() {
                let short = &mut back[1..];
                prop_assert_eq!(restore_to(&mut &form[..], short, copy), None);
            }
            let mut rest = &form[..];
            prop_assert_eq!(skip(&mut rest), Some(()));
            prop_assert_eq!(rest, &tail[..]);
        }

        #[test]
        fn letters_cost_a_bit(value in "[a-zA-Z]{1,60}", wide in any::<bool>()) {
            let weights = upper(value.as_bytes(), wide);
            let mut form = Vec::new();
            encode(value.as_bytes(), &weights, &mut form);
            prop_assert!(form.len() <= 2 + value.len().div_ceil(8));
        }

        #[test]
        fn never_panics(bytes in any::<Vec<u8>>(), weights in any::<Vec<u8>>(), at in 0_usize..9, len in 0_usize..200) {
            let _ = restore(&mut &bytes[..], &mut weights.clone());
            let key = Words(&weights);
            let part = PartOfKey { key: &key, at, len };
            let _ = restore_to(&mut &bytes[..], &mut weights.clone(), &part);
            let _ = skip(&mut &bytes[..]);
        }
    }
}
