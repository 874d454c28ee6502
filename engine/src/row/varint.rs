//! Unsigned integers in 7-bit groups, least significant first (LEB128).

/// Appends `v`.
pub(crate) fn put(mut v: u64, out: &mut Vec<u8>) {
    while v >= 0x80 {
        out.push(v as u8 | 0x80);
        v >>= 7;
    }
    out.push(v as u8);
}

/// The number of bytes that [`put`] appends.
pub(crate) fn len(v: u64) -> usize {
    (70 - (v | 1).leading_zeros() as usize) / 7
}

/// Takes a number from the front of `bytes`; `None` if it is cut off or longer than 64 bits.
#[inline(always)]
pub(crate) fn take(bytes: &mut &[u8]) -> Option<u64> {
    match bytes.split_first() {
        Some((&first, rest)) if first < 0x80 => {
            *bytes = rest;
            Some(first.into())
        }
        _ => take_long(bytes),
    }
}

fn take_long(bytes: &mut &[u8]) -> Option<u64> {
    let mut v = 0u64;
    for (i, &b) in bytes.iter().enumerate().take(10) {
        let group = u64::from(b & 0x7f);
        if i == 9 && group > 1 {
            return None;
        }
        v |= group << (7 * i);
        if b < 0x80 {
            *bytes = &bytes[i + 1..];
            return Some(v);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn round_trip(v in prop_oneof![any::<u64>(), 0u64..1000, Just(u64::MAX)], tail in any::<Vec<u8>>()) {
            let mut bytes = Vec::new();
            put(v, &mut bytes);
            prop_assert_eq!(bytes.len(), len(v));
            bytes.extend_from_slice(&tail);
            let mut rest = &bytes[..];
            prop_assert_eq!(take(&mut rest), Some(v));
            prop_assert_eq!(rest, &tail[..]);
        }

        #[test]
        fn never_panics(bytes in any::<Vec<u8>>()) {
            let mut rest = &bytes[..];
            while take(&mut rest).is_some() {}
        }
    }
}
