//! The character sets of the server's collations.

use std::borrow::Cow;

/// The bits of a collation's number that are the server's number of it.
const SERVER_NUMBER: u32 = 0xffff;
/// The difference between the numbers of a collation that does not pad and of the same collation that pads.
const NO_PAD: u32 = 0x400;

/// Returns the server's number of a collation, or of the same collation that pads.
fn number(collation: u32) -> u32 {
    match collation & SERVER_NUMBER {
        number if (NO_PAD..2 * NO_PAD).contains(&number) => number - NO_PAD,
        number => number,
    }
}

/// Returns the character set of a collation of the server; `None` when it is not known, or is bytes.
pub fn character_set(collation: u32) -> Option<&'static str> {
    Some(match number(collation) {
        5 | 8 | 15 | 31 | 47 | 48 | 49 | 94 => "latin1",
        11 | 65 => "ascii",
        33 | 83 | 192..=215 | 223 | 576..=578 | 2048..=2303 => "utf8mb3",
        45 | 46 | 224..=247 | 608..=610 | 2304..=2559 => "utf8mb4",
        _ => return None,
    })
}

/// Returns the most bytes of a letter in a collation's character set.
pub fn width(collation: u32) -> u64 {
    match character_set(collation) {
        Some("utf8mb4") => 4,
        Some("utf8mb3") => 3,
        _ => 1,
    }
}

/// Returns the text of a value, when its character set is known and it is a text.
///
/// Bytes without a collation count as UTF-8.
pub fn text(collation: u32, bytes: &[u8]) -> Option<Cow<'_, str>> {
    if bytes.contains(&0) {
        return None;
    }
    let number = number(collation);
    let as_it_is = || std::str::from_utf8(bytes).ok().map(Cow::Borrowed);
    match character_set(collation) {
        Some("latin1") => Some(bytes.iter().copied().map(of_latin1).collect()),
        Some(_) => as_it_is(),
        None if matches!(number, 0 | 63) => as_it_is(),
        None if bytes.is_ascii() && has_ascii(number) => as_it_is(),
        None => None,
    }
}

/// Returns whether ASCII letters are single bytes of their own code.
///
/// Not so in UCS-2, UTF-16, UTF-32 and swe7.
fn has_ascii(number: u32) -> bool {
    !matches!(
        number,
        10 | 35 | 54..=56 | 60..=62 | 82 | 90 | 101..=124 | 128..=151 | 159..=183 | 256..
    )
}

/// Returns the letter of a byte in the server's latin1: Windows-1252, with control characters for its gaps.
fn of_latin1(byte: u8) -> char {
    const FROM_80: &str = "€\u{81}‚ƒ„…†‡ˆ‰Š‹Œ\u{8d}Ž\u{8f}\u{90}‘’“”•–—˜™š›œ\u{9d}žŸ";
    let special = byte.checked_sub(0x80);
    let special = special.and_then(|place| FROM_80.chars().nth(place.into()));
    special.unwrap_or(byte.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_says_what_its_character_set_says() {
        let (latin1, utf8, bytes, koi8r, ucs2) = (8, 45, 63, 7, 35);
        for (collation, value, says) in [
            (latin1, &b"\xc3\xa9"[..], Some("Ã©")),
            (latin1, b"caf\xe9 \x80\x9f", Some("café €Ÿ")),
            (latin1 + NO_PAD, b"\xff\xa0", Some("ÿ\u{a0}")),
            (utf8, b"\xc3\xa9", Some("é")),
            (utf8 | 7 << 16, b"\xc3\xa9", Some("é")),
            (utf8, b"\xe9", None),
            (2304, b"\xc3\xa9", Some("é")),
            (bytes, b"\xc3\xa9", Some("é")),
            (0, b"\xc3\xa9", Some("é")),
            (0, b"a\0", None),
            (koi8r, b"plain", Some("plain")),
            (koi8r, b"\xc3\xa9", None),
            (ucs2, b"N-", None),
            (3000, b"N-", None),
        ] {
            assert_eq!(text(collation, value).as_deref(), says, "{collation}");
        }
    }
}
