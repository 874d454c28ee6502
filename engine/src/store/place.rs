//! The place of a page's image in the data file, in one word.

use crate::error::{Error, Result};
use crate::planted::{is_planted, PlantedFault};

/// Bytes of a unit, in which space is given out.
pub const UNIT: usize = 1024;

/// Low bits of the generation that the place repeats.
const GENERATION_BITS: u32 = 20;
const UNITS_BITS: u32 = 6;
const OFFSET_BITS: u32 = 38;

/// Offset, length and generation of an image, in one word; 0 is "nowhere".
///
/// From the top bit: offset in units (38 bits, so files up to 256 TiB), length in units (6 bits), and the low 20 bits
/// of the image's generation, which reveal a stale image in the right place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place(pub u64);

impl Place {
    /// No image.
    pub const NONE: Place = Place(0);

    /// A place at unit `offset`; `units` is at most 63.
    pub fn new(offset: u64, units: u64, generation: u64) -> Place {
        debug_assert!(offset < 1 << OFFSET_BITS && units < 1 << UNITS_BITS && units > 0);
        Place(
            offset << (UNITS_BITS + GENERATION_BITS)
                | units << GENERATION_BITS
                | generation & ((1 << GENERATION_BITS) - 1),
        )
    }

    /// Whether this is "nowhere".
    pub fn is_none(self) -> bool {
        self.0 == 0
    }

    /// First unit.
    pub fn offset(self) -> u64 {
        self.0 >> (UNITS_BITS + GENERATION_BITS)
    }

    /// Length in units.
    pub fn units(self) -> u64 {
        self.0 >> GENERATION_BITS & ((1 << UNITS_BITS) - 1)
    }

    /// First byte.
    pub fn byte_offset(self) -> u64 {
        self.offset() * UNIT as u64
    }

    /// Length in bytes.
    pub fn byte_len(self) -> usize {
        self.units() as usize * UNIT
    }

    /// The same image, copied to unit `offset`.
    pub fn moved_to(self, offset: u64) -> Place {
        Place::new(offset, self.units(), self.0)
    }

    /// The low bits of the image's generation.
    pub fn generation_bits(self) -> u64 {
        self.0 & ((1 << GENERATION_BITS) - 1)
    }

    /// Returns whether an image of this generation is the one that was put here.
    pub fn is_of_generation(self, generation: u64) -> bool {
        (self.0 ^ generation) & ((1 << GENERATION_BITS) - 1) == 0
    }
}

/// Refuses a file of `end` units if a place could not name the last ones.
pub fn check_end(end: u64) -> Result<()> {
    let most = 1 << OFFSET_BITS;
    if end <= most || is_planted(PlantedFault::UncheckedPlaces) {
        return Ok(());
    }
    Err(Error::TooLarge(format!(
        "the data file can't grow to {end} KiB; the limit is {most} KiB"
    )))
}

/// The number of units that `bytes` bytes take.
pub fn units_for(bytes: usize) -> u64 {
    bytes.div_ceil(UNIT) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_place_gives_back_its_parts(
            offset in 1u64..1 << 38, units in 1u64..64, generation: u64, other: u64,
        ) {
            let place = Place::new(offset, units, generation);
            prop_assert_eq!((place.offset(), place.units()), (offset, units));
            prop_assert!(place.is_of_generation(generation));
            prop_assert_eq!(place.is_of_generation(other), (other ^ generation) & 0xF_FFFF == 0);
        }
    }
}
