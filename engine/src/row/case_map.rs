//! Getting a string back from its sort key: most collations' weights of a Latin string are its
//! upper-case letters, one byte or two bytes each, so a bit a letter restores the original. Other
//! strings are kept whole beside the key.
//!
//! Form: varint (length × 8 + kind), then by kind
//!   0  the original
//!   1  weights are bytes w; the original is w                       (nothing follows)
//!   2  weights are bytes w; the original is w or w ^ 0x20           (a bit a byte)
//!   3  as 1 with weights 00 w
//!   4  as 2 with weights 00 w

use super::varint;

const RAW: u64 = 0;
const SAME: u64 = 1;
const CASE: u64 = 2;
const WIDE_SAME: u64 = 3;
const WIDE_CASE: u64 = 4;

/// Whether a byte equals its weight (Some(false)), its other case (Some(true)), or neither.
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

/// Appends what restores `value` when `weights` is at hand.
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

/// Takes one form from the front of `bytes`, appends the original to `out`. `None` when the
/// bytes are no such form.
pub(crate) fn decode(bytes: &mut &[u8], weights: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let head = varint::take(bytes)?;
    let n = usize::try_from(head >> 3).ok()?;
    let (step, mapped) = match head & 7 {
        RAW => {
            let (value, rest) = bytes.split_at_checked(n)?;
            out.extend_from_slice(value);
            *bytes = rest;
            return Some(());
        }
        SAME => (1, false),
        CASE => (1, true),
        WIDE_SAME => (2, false),
        WIDE_CASE => (2, true),
        _ => return None,
    };
    let weights = weights.get(..n.checked_mul(step)?)?;
    if !mapped {
        out.extend(weights.iter().skip(step - 1).step_by(step));
        return Some(());
    }
    let (bits, rest) = bytes.split_at_checked(n.div_ceil(8))?;
    *bytes = rest;
    let at = out.len();
    out.extend(weights.iter().skip(step - 1).step_by(step));
    for (bytes, &map) in out[at..].chunks_mut(8).zip(bits) {
        let flips = flips(map);
        if let Ok(eight) = <&mut [u8; 8]>::try_from(&mut *bytes) {
            *eight = (u64::from_le_bytes(*eight) ^ u64::from_le_bytes(flips)).to_le_bytes();
        } else {
            bytes.iter_mut().zip(flips).for_each(|(b, flip)| *b ^= flip);
        }
    }
    Some(())
}

/// What eight bytes differ by from their weights: 0x20 where the map has a bit.
#[inline]
fn flips(map: u8) -> [u8; 8] {
    const EACH: u64 = 0x0101_0101_0101_0101;
    // Bit i in byte i, then as the byte's highest bit.
    let own = (u64::from(map) * EACH) & 0x8040_2010_0804_0201;
    let high = ((own + 0x7f * EACH) | own) & (0x80 * EACH);
    (high >> 2).to_le_bytes()
}

/// Passes over one form that is the original itself, and gives its length; `None` inside, and
/// nothing passed over, for one that must be decoded.
#[inline]
pub(crate) fn take_whole(bytes: &mut &[u8]) -> Option<Option<usize>> {
    let mut rest = *bytes;
    let head = varint::take(&mut rest)?;
    if head & 7 != RAW {
        return Some(None);
    }
    let length = usize::try_from(head >> 3).ok()?;
    *bytes = rest.get(length..)?;
    Some(Some(length))
}

/// Passes over one form.
pub(crate) fn skip(bytes: &mut &[u8]) -> Option<()> {
    let head = varint::take(bytes)?;
    let n = usize::try_from(head >> 3).ok()?;
    let follow = match head & 7 {
        RAW => n,
        CASE | WIDE_CASE => n.div_ceil(8),
        SAME | WIDE_SAME => 0,
        _ => return None,
    };
    *bytes = bytes.get(follow..)?;
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
                    mode in 0..3, other in any::<Vec<u8>>(), tail in any::<Vec<u8>>()) {
            let weights = match mode { 0 => upper(&value, false), 1 => upper(&value, true), _ => other };
            let mut form = Vec::new();
            encode(&value, &weights, &mut form);
            form.extend_from_slice(&tail);
            let mut rest = &form[..];
            let mut back = Vec::new();
            prop_assert_eq!(decode(&mut rest, &weights, &mut back), Some(()));
            prop_assert_eq!(rest, &tail[..]);
            prop_assert_eq!(&back, &value);
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
        fn never_panics(bytes in any::<Vec<u8>>(), weights in any::<Vec<u8>>()) {
            let mut out = Vec::new();
            let _ = decode(&mut &bytes[..], &weights, &mut out);
            let _ = skip(&mut &bytes[..]);
        }
    }
}
