//! Strings at a fixed place in index entries: behind parts of fixed sizes only.
//!
//! They are restored directly into the output, without a copy in between.

use super::key_bytes::{KeyInPieces, PartOfKey};
use super::layout::{Layout, PartForm};
use super::varint;
use crate::row::collation::case_map;

/// The place of a collated string column in the entries of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextPlace {
    /// Bytes from the key's front.
    at: usize,
    nullable: bool,
    column: usize,
}

/// The value at a [`TextPlace`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Text {
    /// NULL.
    Null,
    /// A string of this many bytes.
    Bytes(usize),
}

impl TextPlace {
    /// The column.
    pub(crate) fn column(&self) -> usize {
        self.column
    }

    /// Puts the string at the front of `out`; may overwrite the rest.
    ///
    /// `None` if the bytes are no such entry, or if the string is longer than `out`, which may then have changed.
    #[inline]
    pub(crate) fn read(
        &self,
        key: &impl KeyInPieces,
        payload: &[u8],
        out: &mut [u8],
    ) -> Option<Text> {
        let mut at = self.at;
        if self.nullable {
            let mut marker = [0];
            if !key.copy_to(at, &mut marker) {
                return None;
            }
            if marker == [0] {
                return Some(Text::Null);
            }
            at += 1;
        }
        let mut info = payload;
        let head = varint::take(&mut info)?;
        if head & 1 == 1 {
            info = info.get(usize::try_from(head >> 1).ok()?..)?;
        }
        let weights = usize::try_from(varint::take(&mut info)?).ok()?;
        let weights = PartOfKey {
            key,
            at,
            len: weights,
        };
        case_map::restore_to(&mut info, out, &weights).map(Text::Bytes)
    }
}

impl Layout {
    /// The place of a string column in the entries of an index.
    ///
    /// `None` if it is not the same in all entries, or if the column has no collation.
    pub fn text_place(&self, index: usize, column: usize) -> Option<TextPlace> {
        if index == 0 {
            return None;
        }
        let key = self.key(index)?;
        let part = key.parts.get(key.in_place)?;
        let collated = matches!(part.form, PartForm::Collated { .. });
        let first = part.column == column && collated && part.gives_back();
        first.then_some(TextPlace {
            at: part.fixed_at?,
            nullable: part.nullable,
            column,
        })
    }
}
