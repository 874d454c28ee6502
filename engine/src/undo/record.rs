//! Undo records: how a rollback reverts a change, and where a reader finds the version before it.
//!
//! ```text
//! [kind u8] [previous record of the transaction: u16, u64 or nothing] [tree varint]
//! [key length varint] [value length varint] [key] [value]          (numbers little endian)
//! kind: bits 0-1 what it says, bit 4 the change wrote a delete mark,
//!       bit 5 the previous record is at this offset of the same page, bit 6 there is none
//! ```
//!
//! A record has no full pointer and no lengths of fixed width where it can do without. So a transaction with many
//! small changes writes few bytes for each.
//!
//! `value` is the whole record value from before the change, with its version header. So a rollback restores it byte
//! for byte, and a reader can go on to older versions.

use crate::buffer::PoolWithThreads;
use crate::error::{Error, Result};
use crate::ids::{PageId, TreeId, UndoPtr, MAX_KEY, MAX_VALUE};
use crate::node::BODY_SIZE;

const KIND: u8 = 0x03;
const MARKS_DELETE: u8 = 0x10;
const PREVIOUS_IN_PAGE: u8 = 0x20;
const NO_PREVIOUS: u8 = 0x40;

/// The most bytes of an undo record besides key and value: kind, pointer, tree, two lengths.
pub(crate) const MAX_FIXED: usize = 1 + 8 + 5 + 3 + 3;

/// Bytes of the longest undo record, which fits into a page.
pub(crate) const MAX_RECORD: usize = MAX_FIXED + MAX_KEY + MAX_VALUE;
const _: () = assert!(MAX_RECORD <= BODY_SIZE);

/// The meaning of an undo record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// There was no value before.
    Absent,
    /// The value before the change.
    Previous,
    /// The value is a note for the purge of the transaction.
    PurgeNote,
    /// The value is a note for the rollback of the transaction.
    RollbackNote,
}

/// An undo record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UndoRecord<'a> {
    /// The transaction's record before this one.
    pub previous: UndoPtr,
    pub tree: TreeId,
    pub kind: Kind,
    /// The change wrote a delete mark, so purge must visit the key.
    pub marks_delete: bool,
    pub key: &'a [u8],
    pub value: &'a [u8],
}

impl<'a> UndoRecord<'a> {
    /// Bytes that the record takes in `page`.
    pub fn len(&self, page: PageId) -> usize {
        let previous = match self.previous_form(page) {
            NO_PREVIOUS => 0,
            PREVIOUS_IN_PAGE => 2,
            _ => 8,
        };
        1 + previous
            + varint_len(self.tree.0)
            + varint_len(self.key.len() as u32)
            + varint_len(self.value.len() as u32)
            + self.key.len()
            + self.value.len()
    }

    fn previous_form(&self, page: PageId) -> u8 {
        if self.previous.is_none() {
            NO_PREVIOUS
        } else if self.previous.page() == page {
            PREVIOUS_IN_PAGE
        } else {
            0
        }
    }

    /// Writes the record, which belongs to `page`, at the beginning of `out`; `None` if it does not fit.
    pub fn encode(&self, page: PageId, out: &mut [u8]) -> Option<()> {
        let mut out = out.get_mut(..self.len(page))?;
        let kind = match self.kind {
            Kind::Absent => 0,
            Kind::Previous => 1,
            Kind::PurgeNote => 2,
            Kind::RollbackNote => 3,
        };
        let form = self.previous_form(page);
        let marks = if self.marks_delete { MARKS_DELETE } else { 0 };
        put(&mut out, &[kind | form | marks])?;
        match form {
            NO_PREVIOUS => {}
            PREVIOUS_IN_PAGE => put(&mut out, &self.previous.0.to_le_bytes()[..2])?,
            _ => put(&mut out, &self.previous.0.to_le_bytes())?,
        }
        put_varint(&mut out, self.tree.0)?;
        put_varint(&mut out, u32::from(u16::try_from(self.key.len()).ok()?))?;
        put_varint(&mut out, u32::from(u16::try_from(self.value.len()).ok()?))?;
        put(&mut out, self.key)?;
        put(&mut out, self.value)
    }

    /// The range of the page's body with the value of the record at `offset`.
    pub fn value_range(page: PageId, body: &[u8], offset: usize) -> Option<std::ops::Range<usize>> {
        let record = UndoRecord::decode(page, body.get(offset..)?)?;
        let end = offset + record.len(page);
        Some(end - record.value.len()..end)
    }

    /// Reads the record of `page` at the beginning of `bytes`.
    pub fn decode(page: PageId, bytes: &'a [u8]) -> Option<UndoRecord<'a>> {
        let (&flags, mut rest) = bytes.split_first()?;
        if flags & !(KIND | MARKS_DELETE | PREVIOUS_IN_PAGE | NO_PREVIOUS) != 0 {
            return None;
        }
        let previous = match flags & (PREVIOUS_IN_PAGE | NO_PREVIOUS) {
            NO_PREVIOUS => UndoPtr::NONE,
            PREVIOUS_IN_PAGE => {
                let (offset, after) = rest.split_first_chunk::<2>()?;
                rest = after;
                UndoPtr::new(page, u16::from_le_bytes(*offset))
            }
            0 => {
                let (ptr, after) = rest.split_first_chunk::<8>()?;
                rest = after;
                UndoPtr(u64::from_le_bytes(*ptr))
            }
            _ => return None,
        };
        let tree = TreeId(take_varint(&mut rest)?);
        let key_len = take_varint(&mut rest)? as usize;
        let value_len = take_varint(&mut rest)? as usize;
        let (key, rest) = rest.split_at_checked(key_len)?;
        Some(UndoRecord {
            previous,
            tree,
            kind: match flags & KIND {
                0 => Kind::Absent,
                1 => Kind::Previous,
                2 => Kind::PurgeNote,
                _ => Kind::RollbackNote,
            },
            marks_delete: flags & MARKS_DELETE != 0,
            key,
            value: rest.get(..value_len)?,
        })
    }
}

fn put(out: &mut &mut [u8], bytes: &[u8]) -> Option<()> {
    let (front, rest) = std::mem::take(out).split_at_mut_checked(bytes.len())?;
    front.copy_from_slice(bytes);
    *out = rest;
    Some(())
}

fn varint_len(value: u32) -> usize {
    let bits = 32 - (value | 1).leading_zeros() as usize;
    bits.div_ceil(7)
}

fn put_varint(out: &mut &mut [u8], mut value: u32) -> Option<()> {
    while value >= 0x80 {
        put(out, &[value as u8 | 0x80])?;
        value >>= 7;
    }
    put(out, &[value as u8])
}

fn take_varint(bytes: &mut &[u8]) -> Option<u32> {
    let mut value = 0u64;
    for shift in (0..35).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return u32::try_from(value).ok();
        }
    }
    None
}

/// Calls `f` with the undo record at `ptr` while its page is latched; `f` only copies.
pub(crate) fn read<R>(
    pool: &PoolWithThreads,
    ptr: UndoPtr,
    f: impl FnOnce(&UndoRecord<'_>) -> R,
) -> Result<R> {
    let page = pool.fetch_shared(ptr.page())?;
    let bytes = page.body().get(ptr.offset()..);
    let record = bytes.and_then(|bytes| UndoRecord::decode(ptr.page(), bytes));
    match record {
        Some(record) => Ok(f(&record)),
        None => Err(Error::Internal(format!(
            "no undo record at byte {} of page {}",
            ptr.offset(),
            ptr.page()
        ))),
    }
}

/// A walk along a chain of undo records, which detects circles.
///
/// A damaged chain may lead back to an earlier record. The walk compares each place with a noted one. It notes a new
/// place after twice as many steps each time (Brent, "An improved Monte Carlo factorization algorithm", 1980).
pub(crate) struct ChainWalk {
    noted: UndoPtr,
    steps: u64,
    renewed: u64,
}

impl ChainWalk {
    /// Begins a walk at a record.
    pub fn from(head: UndoPtr) -> ChainWalk {
        ChainWalk {
            noted: head,
            steps: 0,
            renewed: 1,
        }
    }

    /// Goes to the next record.
    ///
    /// # Errors
    /// [`Error::Internal`] if the walk has been there before.
    #[inline]
    pub fn go_on(&mut self, to: UndoPtr) -> Result<()> {
        if to == self.noted {
            return Err(circle(to));
        }
        self.steps += 1;
        if self.steps == self.renewed {
            (self.noted, self.renewed) = (to, 2 * self.renewed);
        }
        Ok(())
    }
}

#[cold]
fn circle(ptr: UndoPtr) -> Error {
    Error::Internal(format!(
        "undo pointers lead in a circle, back to byte {} of page {}",
        ptr.offset(),
        ptr.page()
    ))
}

/// An undo record copied out of its page; the buffer is reused for the next.
#[derive(Default)]
pub(crate) struct UndoCopy {
    bytes: Vec<u8>,
}

impl UndoCopy {
    /// Copies the record at `ptr`.
    pub fn read(&mut self, pool: &PoolWithThreads, ptr: UndoPtr) -> Result<UndoRecord<'_>> {
        let bytes = &mut self.bytes;
        read(pool, ptr, |record| {
            bytes.clear();
            bytes.resize(record.len(ptr.page()), 0);
            record.encode(ptr.page(), bytes);
        })?;
        UndoRecord::decode(ptr.page(), &self.bytes)
            .ok_or_else(|| Error::Internal("an undo record changed while it was copied".into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pointers() -> impl Strategy<Value = UndoPtr> {
        prop_oneof![
            Just(UndoPtr::NONE),
            any::<u16>().prop_map(|offset| UndoPtr::new(PAGE, offset)),
            any::<u64>().prop_map(UndoPtr),
        ]
    }

    const PAGE: PageId = PageId(77);

    proptest! {
        #[test]
        fn decode_gives_back_what_encode_took(
            previous in pointers(), tree: u32, kind in 0..4, marks_delete: bool,
            key in proptest::collection::vec(any::<u8>(), 0..300),
            value in proptest::collection::vec(any::<u8>(), 0..300),
            room in 0usize..100,
        ) {
            let record = UndoRecord {
                previous,
                tree: TreeId(tree),
                kind: [Kind::Absent, Kind::Previous, Kind::PurgeNote, Kind::RollbackNote][kind as usize],
                marks_delete,
                key: &key,
                value: &value,
            };
            let len = record.len(PAGE);
            prop_assert!(len <= MAX_FIXED + key.len() + value.len());
            let mut bytes = vec![0xaa; len + room];
            prop_assert!(record.encode(PAGE, &mut bytes).is_some());
            prop_assert_eq!(UndoRecord::decode(PAGE, &bytes), Some(record));
            prop_assert!(bytes[len..].iter().all(|b| *b == 0xaa));
            prop_assert!(record.encode(PAGE, &mut bytes[..len - 1]).is_none());
        }

        #[test]
        fn any_bytes_decode_or_are_refused(bytes: Vec<u8>) {
            if let Some(record) = UndoRecord::decode(PAGE, &bytes) {
                prop_assert!(record.key.len() + record.value.len() < bytes.len());
            }
        }
    }

    proptest! {
        /// A chain that ends after some records, or leads back to one of them.
        #[test]
        fn a_circle_is_found_and_nothing_else(records in 1u64..300, back_to in proptest::option::of(0u64..300)) {
            let place = |n: u64| UndoPtr::new(PageId(PAGE.0 + n / 7), (n % 7) as u16);
            let back_to = back_to.filter(|to| *to < records);
            let mut walk = ChainWalk::from(place(0));
            let mut n = 0;
            for _ in 0..10 * records {
                n = match (n + 1 < records, back_to) {
                    (true, _) => n + 1,
                    (false, Some(to)) => to,
                    (false, None) => {
                        prop_assert!(walk.go_on(UndoPtr::NONE).is_ok());
                        return Ok(());
                    }
                };
                if walk.go_on(place(n)).is_err() {
                    prop_assert!(back_to.is_some());
                    return Ok(());
                }
            }
            prop_assert!(false, "the circle was not found");
        }
    }

    #[test]
    fn the_longest_record_is_as_long_as_is_reserved_for_it() {
        let record = UndoRecord {
            previous: UndoPtr(u64::MAX),
            tree: TreeId(u32::MAX),
            kind: Kind::Previous,
            marks_delete: true,
            key: &[1; MAX_KEY],
            value: &[2; MAX_VALUE],
        };
        assert!(record.len(PAGE) <= MAX_RECORD);
        let mut page = vec![0; BODY_SIZE];
        assert!(record.encode(PAGE, &mut page).is_some());
    }
}
