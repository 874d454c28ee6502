//! A page's image on disk: without its hole, compressed if that saves space, with a checksum.
//!
//! The byte layout is in `docs/format.md`, "Page image".

use super::aligned::Aligned;
use super::place::{units_for, UNIT};
use crate::ids::{PageId, PAGE_SIZE};
use crate::planted::{is_planted, PlantedFault};

/// Bytes before an image's body.
pub const IMAGE_HEADER: usize = 32;
const MAGIC: [u8; 4] = *b"PGim";
const LZ4: u8 = 1;

/// Offsets of the two hole fields in a page's own header; the store reads nothing else of a page.
const PAGE_HOLE_START: usize = 22;
const PAGE_HOLE_END: usize = 24;
/// The page header, which a hole never overlaps.
const PAGE_HEADER: usize = 26;

/// Working memory of [`encode`] and [`decode`], to be reused.
#[derive(Debug, Default)]
pub struct Scratch {
    plain: Vec<u8>,
    /// The image that [`encode`] made, or the one to be decoded; whole units.
    pub image: Vec<u8>,
    /// Memory that images are read into.
    pub(super) read: Aligned,
}

fn u16_at(bytes: &[u8], at: usize) -> usize {
    usize::from(bytes[at]) | usize::from(bytes[at + 1]) << 8
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

/// The hole that a page's header names; empty if the fields are not valid.
fn hole_of(page: &[u8]) -> (usize, usize) {
    let (start, end) = (u16_at(page, PAGE_HOLE_START), u16_at(page, PAGE_HOLE_END));
    if PAGE_HEADER <= start && start < end && end <= PAGE_SIZE {
        (start, end)
    } else {
        (0, 0)
    }
}

/// Makes the image of `page` (`PAGE_SIZE` bytes) in `scratch.image`; returns its length in units.
pub fn encode(id: PageId, generation: u64, page: &[u8], scratch: &mut Scratch) -> u64 {
    debug_assert_eq!(page.len(), PAGE_SIZE);
    let (hole_start, hole_end) = hole_of(page);
    let plain = &mut scratch.plain;
    plain.clear();
    plain.extend_from_slice(&page[..hole_start]);
    plain.extend_from_slice(&page[hole_end..]);

    let image = &mut scratch.image;
    image.clear();
    let most = lz4_flex::block::get_maximum_output_size(plain.len());
    image.resize(IMAGE_HEADER + most, 0);
    let packed = lz4_flex::block::compress_into(plain, &mut image[IMAGE_HEADER..]);
    let (flags, stored) = match packed {
        Ok(len) if units_for(IMAGE_HEADER + len) < units_for(IMAGE_HEADER + plain.len()) => {
            (LZ4, len)
        }
        _ => {
            image[IMAGE_HEADER..IMAGE_HEADER + plain.len()].copy_from_slice(plain);
            (0, plain.len())
        }
    };
    let units = units_for(IMAGE_HEADER + stored);
    image.truncate(IMAGE_HEADER + stored);
    image.resize(units as usize * UNIT, 0);

    image[0..4].copy_from_slice(&MAGIC);
    image[8..16].copy_from_slice(&id.0.to_le_bytes());
    image[16..24].copy_from_slice(&generation.to_le_bytes());
    image[24..26].copy_from_slice(&(stored as u16).to_le_bytes());
    image[26..28].copy_from_slice(&(hole_start as u16).to_le_bytes());
    image[28..30].copy_from_slice(&(hole_end as u16).to_le_bytes());
    image[30] = flags;
    image[31] = units as u8;
    let checksum = crc32c::crc32c(&image[8..]);
    image[4..8].copy_from_slice(&checksum.to_le_bytes());
    units
}

/// Checks an image and unpacks it into `page` (`PAGE_SIZE` bytes); returns its generation.
///
/// # Errors
/// Says what was expected and what was found.
pub fn decode(id: PageId, image: &[u8], page: &mut [u8]) -> Result<u64, String> {
    debug_assert_eq!(page.len(), PAGE_SIZE);
    if image.len() < IMAGE_HEADER {
        return Err(format!("the image has only {} bytes", image.len()));
    }
    if image[0..4] != MAGIC {
        return Err(format!(
            "expected a page image, which begins with {MAGIC:02x?}, found {:02x?}",
            &image[0..4]
        ));
    }
    let (expected, found) = (u32_at(image, 4), crc32c::crc32c(&image[8..]));
    if expected != found && !is_planted(PlantedFault::IgnorePageChecksum) {
        return Err(format!(
            "the image's checksum says {expected:#010x}, its bytes give {found:#010x}"
        ));
    }
    let found_id = u64_at(image, 8);
    if found_id != id.0 {
        return Err(format!("expected page {id}, found page {found_id}"));
    }
    let stored = u16_at(image, 24);
    let (hole_start, hole_end) = (u16_at(image, 26), u16_at(image, 28));
    let (flags, units) = (image[30], usize::from(image[31]));
    let sound = IMAGE_HEADER + stored <= image.len()
        && units * UNIT == image.len()
        && hole_start <= hole_end
        && hole_end <= PAGE_SIZE
        && flags <= LZ4;
    let plain_len = PAGE_SIZE - hole_end.saturating_sub(hole_start).min(PAGE_SIZE);
    if !sound || (flags != LZ4 && stored != plain_len) {
        return Err(format!(
            "the image's lengths contradict each other: {stored} bytes stored, hole {hole_start}..{hole_end}, \
             flags {flags}, {units} units in {} bytes",
            image.len()
        ));
    }
    let body = &image[IMAGE_HEADER..IMAGE_HEADER + stored];
    if flags == LZ4 {
        match lz4_flex::block::decompress_into(body, &mut page[..plain_len]) {
            Ok(len) if len == plain_len => {}
            Ok(len) => return Err(format!("expected {plain_len} bytes unpacked, found {len}")),
            Err(error) => return Err(format!("the image does not unpack: {error}")),
        }
        page.copy_within(hole_start..plain_len, hole_end);
    } else {
        page[..hole_start].copy_from_slice(&body[..hole_start]);
        page[hole_end..].copy_from_slice(&body[hole_start..]);
    }
    page[hole_start..hole_end].fill(0);
    Ok(u64_at(image, 16))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A page that compresses well or badly, with a hole or without.
    pub(crate) fn page() -> impl Strategy<Value = Vec<u8>> {
        (
            any::<u64>(),
            1u32..=256,
            0usize..=PAGE_SIZE,
            0usize..=PAGE_SIZE,
        )
            .prop_map(|(seed, spread, a, b)| {
                let mut state = seed;
                let mut page: Vec<u8> = (0..PAGE_SIZE)
                    .map(|_| {
                        state = state
                            .wrapping_mul(6_364_136_223_846_793_005)
                            .wrapping_add(1);
                        ((state >> 33) as u32 % spread) as u8
                    })
                    .collect();
                let (start, end) = (a.min(b), a.max(b));
                page[22..24].copy_from_slice(&(start as u16).to_le_bytes());
                page[24..26].copy_from_slice(&(end as u16).to_le_bytes());
                let (start, end) = hole_of(&page);
                page[start..end].fill(0);
                page
            })
    }

    proptest! {
        #[test]
        fn an_image_gives_back_its_page(page in page(), id in 1u64..1 << 48, generation: u64) {
            let mut scratch = Scratch::default();
            let units = encode(PageId(id), generation, &page, &mut scratch);
            prop_assert_eq!(scratch.image.len(), units as usize * UNIT);
            prop_assert!(units <= 17);
            let mut back = vec![0xAA; PAGE_SIZE];
            prop_assert_eq!(decode(PageId(id), &scratch.image, &mut back), Ok(generation));
            prop_assert_eq!(back, page);
            let mut back = vec![0; PAGE_SIZE];
            prop_assert!(decode(PageId(id + 1), &scratch.image, &mut back).is_err());
        }

        #[test]
        fn any_bytes_are_refused_or_decoded_without_a_panic(
            bytes in proptest::collection::vec(any::<u8>(), 0..3000), sealed: bool,
        ) {
            let mut bytes = bytes;
            if sealed && bytes.len() >= IMAGE_HEADER {
                // A valid checksum over arbitrary bytes, so that the checks behind it run too.
                bytes[0..4].copy_from_slice(&MAGIC);
                bytes[8..16].copy_from_slice(&7u64.to_le_bytes());
                bytes[31] = (bytes.len() / UNIT) as u8;
                let checksum = crc32c::crc32c(&bytes[8..]);
                bytes[4..8].copy_from_slice(&checksum.to_le_bytes());
            }
            let _ = decode(PageId(7), &bytes, &mut vec![0; PAGE_SIZE]);
        }
    }

    #[test]
    fn every_flipped_bit_is_found() {
        let mut page = vec![0u8; PAGE_SIZE];
        page[100..140].fill(7);
        for (at, byte) in page[300..2100].iter_mut().enumerate() {
            *byte = (at * at % 251) as u8;
        }
        page[22..24].copy_from_slice(&2100u16.to_le_bytes());
        page[24..26].copy_from_slice(&(PAGE_SIZE as u16).to_le_bytes());
        let mut scratch = Scratch::default();
        encode(PageId(3), 9, &page, &mut scratch);
        let mut back = vec![0; PAGE_SIZE];
        for bit in 0..scratch.image.len() * 8 {
            scratch.image[bit / 8] ^= 1 << (bit % 8);
            let answer = decode(PageId(3), &scratch.image, &mut back);
            assert!(answer.is_err(), "bit {bit} of {}", scratch.image.len() * 8);
            scratch.image[bit / 8] ^= 1 << (bit % 8);
        }
        assert_eq!(decode(PageId(3), &scratch.image, &mut back), Ok(9));
    }

    #[test]
    fn an_empty_page_takes_one_unit_and_noise_takes_seventeen() {
        let mut scratch = Scratch::default();
        assert_eq!(encode(PageId(1), 1, &[0; PAGE_SIZE], &mut scratch), 1);
        let mut state = 1u64;
        let noise: Vec<u8> = (0..PAGE_SIZE)
            .map(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                (state >> 56) as u8
            })
            .collect();
        assert_eq!(encode(PageId(1), 1, &noise, &mut scratch), 17);
    }
}
