//! Values of COMPRESSED columns: a byte with the method, then for zlib the value's length, big-endian in as many bytes
//! as it needs, then the compressed bytes.

use std::io::Read;

use flate2::read::{DeflateDecoder, ZlibDecoder};

/// Mask of the method, and the method number of zlib.
const METHOD: u8 = 0xf0;
const ZLIB: u8 = 0x80;
/// Set when zlib's header and checksum are left out.
const BARE: u8 = 0x08;
/// Mask of the number of length bytes.
const LENGTH_BYTES: u8 = 0x07;

/// Uncompresses a value; `None` when the result does not have exactly the stored length.
pub fn uncompressed(stored: &[u8]) -> Option<Vec<u8>> {
    let Some((&head, rest)) = stored.split_first() else {
        return Some(Vec::new());
    };
    match head & METHOD {
        0 => Some(rest.to_vec()),
        ZLIB => {
            let (length, rest) = rest.split_at_checked((head & LENGTH_BYTES).into())?;
            let length = length
                .iter()
                .fold(0, |length, byte| length << 8 | u64::from(*byte));
            let mut value = Vec::new();
            // Reads one byte more than the length, to detect a longer value.
            if head & BARE == 0 {
                ZlibDecoder::new(rest)
                    .take(length + 1)
                    .read_to_end(&mut value)
            } else {
                DeflateDecoder::new(rest)
                    .take(length + 1)
                    .read_to_end(&mut value)
            }
            .ok()?;
            (value.len() as u64 == length).then_some(value)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::write::{DeflateEncoder, ZlibEncoder};
    use flate2::Compression;
    use std::io::Write;

    #[test]
    fn a_value_comes_back_whole_or_not() {
        let value = b"Falcons and falcons and falcons.".repeat(20);
        let mut wrapped = ZlibEncoder::new(vec![0x82, 2, 128], Compression::default());
        wrapped.write_all(&value).unwrap();
        let wrapped = wrapped.finish().unwrap();
        let mut bare = DeflateEncoder::new(vec![0x8a, 2, 128], Compression::default());
        bare.write_all(&value).unwrap();
        let bare = bare.finish().unwrap();
        for stored in [wrapped, bare] {
            assert_eq!(uncompressed(&stored), Some(value.clone()));
            let (half, mut longer) = (&stored[..stored.len() / 2], stored.clone());
            longer[2] -= 1;
            assert_eq!(uncompressed(half), None);
            assert_eq!(uncompressed(&longer), None);
        }
        assert_eq!(uncompressed(b"\0as it is"), Some(b"as it is".to_vec()));
        assert_eq!(uncompressed(b""), Some(vec![]));
        assert_eq!(uncompressed(b"\x83\0"), None);
        assert_eq!(uncompressed(b"\x10abc"), None);
    }
}
