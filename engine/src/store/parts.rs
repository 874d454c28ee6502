//! The places of everything that the last checkpoint uses in the data file, for tools that check or damage files.

use super::header::{HEADER, HEADER_UNITS};
use super::place::{Place, UNIT};
use super::Store;
use crate::ids::PageId;

/// The kind of a part of the data file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PartKind {
    /// One of the two headers, 0 or 1.
    Header(u64),
    /// The checkpoint record.
    Record,
    /// A chunk of the place table, by its number.
    Chunk(usize),
    /// A page's image.
    Page(PageId),
}

/// A part of the data file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The part's kind.
    pub kind: PartKind,
    /// Its first byte.
    pub offset: u64,
    /// Its length in bytes, whole units.
    pub len: u64,
}

impl Store {
    /// Every part of the file that is in use, in no order. If the store is being written meanwhile, the parts may be of
    /// different moments.
    pub fn parts(&self) -> Vec<Part> {
        let unit = UNIT as u64;
        let placed = |kind, place: Place| Part {
            kind,
            offset: place.byte_offset(),
            len: place.byte_len() as u64,
        };
        let mut parts: Vec<Part> = (0..HEADER_UNITS * unit / HEADER as u64)
            .map(|slot| Part {
                kind: PartKind::Header(slot),
                offset: slot * HEADER as u64,
                len: HEADER as u64,
            })
            .collect();
        {
            let durable = self.durable.lock();
            parts.push(Part {
                kind: PartKind::Record,
                offset: durable.record.0 * unit,
                len: durable.record.1 * unit,
            });
            let chunks = durable.chunks.iter().map(|&word| Place(word)).enumerate();
            parts.extend(
                chunks
                    .filter(|(_, place)| !place.is_none())
                    .map(|(index, place)| placed(PartKind::Chunk(index), place)),
            );
        }
        parts.extend(
            self.pages()
                .map(|page| placed(PartKind::Page(page), self.table.current(page))),
        );
        parts
    }
}
