//! DECIMAL as the server stores it: groups of nine digits in four bytes, big-endian, with the sign in the first bit, so
//! that bytes compare as values.

/// Digits of a whole group.
const GROUP: u32 = 9;
/// Bytes of a group by its number of digits.
const BYTES: [usize; 10] = [0, 1, 1, 2, 2, 3, 3, 4, 4, 4];

/// Decodes a value of DECIMAL(precision, scale) to a literal; `None` for invalid bytes.
pub fn decimal(bytes: &[u8], precision: u32, scale: u32) -> Option<String> {
    let whole = precision.checked_sub(scale)?;
    let groups = |digits: u32| std::iter::repeat_n(GROUP, (digits / GROUP) as usize);
    let before = std::iter::once(whole % GROUP).chain(groups(whole));
    let after = groups(scale).chain(std::iter::once(scale % GROUP));

    let is_negative = bytes.first()? & 0x80 == 0;
    let mut left: Vec<u8> = bytes.iter().map(|byte| byte ^ 0xff).collect();
    if !is_negative {
        left = bytes.to_vec();
    }
    left[0] ^= 0x80;
    let mut left = left.as_slice();

    let mut digits = String::new();
    for count in before.chain(after).filter(|count| *count > 0) {
        let (group, rest) = left.split_at_checked(BYTES[count as usize])?;
        left = rest;
        let group = group
            .iter()
            .fold(0, |value, byte| value << 8 | u64::from(*byte));
        if group >= 10_u64.pow(count) {
            return None;
        }
        digits += &format!("{group:0width$}", width = count as usize);
    }
    if !left.is_empty() {
        return None;
    }
    let (whole, fraction) = digits.split_at(whole as usize);
    let whole = match whole.trim_start_matches('0') {
        "" => "0",
        whole => whole,
    };
    let sign = if is_negative { "-" } else { "" };
    Some(match fraction {
        "" => format!("{sign}{whole}"),
        fraction => format!("{sign}{whole}.{fraction}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decimal_is_read_as_the_server_has_written_it() {
        for (stored, precision, scale, says) in [
            (&b"\x80\x00\x00\x0c\x22"[..], 10, 2, "12.34"),
            (b"\x7f\xff\xff\xf3\xdd", 10, 2, "-12.34"),
            (b"\x80\x00\x00\x00\x00", 10, 2, "0.00"),
            // The example in the server's source: DECIMAL(14,4).
            (b"\x81\x0d\xfb\x38\xd2\x04\xd2", 14, 4, "1234567890.1234"),
            (b"\x7e\xf2\x04\xc7\x2d\xfb\x2d", 14, 4, "-1234567890.1234"),
            (b"\x87", 1, 0, "7"),
            (b"\xbb\x9a\xc9\xff", 9, 0, "999999999"),
            (b"\x80\x00\x00\x01", 9, 9, "0.000000001"),
        ] {
            let said = decimal(stored, precision, scale);
            assert_eq!(said.as_deref(), Some(says));
        }
    }

    #[test]
    fn bytes_that_are_no_decimal_are_none() {
        for (stored, precision, scale) in [
            (&b""[..], 10, 2),
            (b"\x80\x00\x00\x0c", 10, 2),
            (b"\x80\x00\x00\x0c\x22\x00", 10, 2),
            (b"\x80\x00\x00\x0c\x64", 10, 2),
            (b"\x80", 1, 2),
        ] {
            assert_eq!(decimal(stored, precision, scale), None);
        }
    }
}
