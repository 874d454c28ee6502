//! A collation for tests: ASCII, case-insensitive.

use peregrine::{Collations, Error, Result};

/// Collation 1: ASCII, case-insensitive.
pub struct Ascii;

pub const NO_CASE: u32 = 1;

impl Collations for Ascii {
    fn sort_key(
        &self,
        collation: u32,
        value: &[u8],
        prefix_chars: Option<u32>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        if collation != NO_CASE {
            return Err(Error::Invalid(format!(
                "there is no collation {collation}, only {NO_CASE}"
            )));
        }
        let n = prefix_chars.map_or(value.len(), |p| value.len().min(p as usize));
        for &b in &value[..n] {
            match b {
                0 | 1 => out.extend_from_slice(&[1, b + 1]),
                b => out.push(b.to_ascii_uppercase()),
            }
        }
        out.push(0);
        Ok(())
    }
}
