//! The decoders of the data file's own parts, fed with arbitrary bytes behind a correct checksum.

use std::path::Path;

use super::header::{self, Header, Record, HEADER};
use super::image::{self, IMAGE_HEADER};
use super::place::UNIT;
use crate::ids::{PageId, PAGE_SIZE};

/// The page whose image [`image()`] decodes.
const PAGE: PageId = PageId(7);

fn sealed(bytes: &[u8], magic: &[u8], checksum_at: usize, from: usize, to: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if bytes.len() >= to.max(checksum_at + 4) && from <= to {
        bytes[..magic.len()].copy_from_slice(magic);
        let checksum = crc32c::crc32c(&bytes[from..to]);
        bytes[checksum_at..checksum_at + 4].copy_from_slice(&checksum.to_le_bytes());
    }
    bytes
}

/// Decodes the bytes as both headers, as a checkpoint record, and as a chunk of the place table.
pub fn headers(bytes: &[u8]) -> bool {
    let mut accepted = header::read(Path::new("data"), bytes).is_ok();
    let mut slots = vec![0; 2 * HEADER];
    let len = bytes.len().min(2 * HEADER);
    slots[..len].copy_from_slice(&bytes[..len]);
    for slot in slots.chunks_exact_mut(HEADER) {
        let whole = sealed(slot, b"PEREGRIN", HEADER - 4, 0, HEADER - 4);
        slot.copy_from_slice(&whole);
    }
    let headers = header::read(Path::new("data"), &slots);
    accepted |= headers.is_ok_and(|headers| headers.newest().is_ok());

    let u64_at = |at: usize| {
        let word = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>());
        word.map_or(0, |word| u64::from_le_bytes(*word))
    };
    let header = Header {
        database_id: u64_at(8),
        sequence: u64_at(16),
        record_offset: 8,
        record_len: bytes.len() as u64,
    };
    let record = sealed(bytes, b"PGcp", 4, 8, bytes.len());
    accepted |= Record::decode(&record, &header).is_ok();
    let chunk = sealed(bytes, b"PGpt", 4, 8, bytes.len());
    accepted | header::decode_chunk(&chunk, u64_at(8) as usize).is_ok()
}

/// Decodes the bytes as a page's image into `page` (`PAGE_SIZE` bytes); returns whether they are one.
pub fn image(bytes: &[u8], page: &mut [u8]) -> bool {
    if page.len() != PAGE_SIZE {
        return false;
    }
    let mut image = bytes.to_vec();
    if image.len() >= IMAGE_HEADER {
        image.resize(image.len().next_multiple_of(UNIT), 0);
        image[8..16].copy_from_slice(&PAGE.0.to_le_bytes());
        image[31] = (image.len() / UNIT) as u8;
        let len = image.len();
        image = sealed(&image, b"PGim", 4, 8, len);
    }
    image::decode(PAGE, &image, page).is_ok()
}
