//! Mutations of inputs: changed bits and bytes, limits of numbers, and parts that are removed, doubled or taken from
//! another input.

use rand_chacha::ChaCha8Rng;
use rand_core::Rng;

/// Numbers at which decoders often fail.
const EDGES: [u64; 16] = [
    0,
    1,
    2,
    0x7f,
    0x80,
    0xff,
    0x100,
    0x7fff,
    0x8000,
    0xffff,
    0x4000,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    1 << 63,
    u64::MAX,
];
/// The most bytes of an input.
const LONGEST: usize = 1 << 16;

/// Returns a number below `below`, or 0 if `below` is 0.
pub fn pick(random: &mut ChaCha8Rng, below: usize) -> usize {
    match below {
        0 => 0,
        below => random.next_u64() as usize % below,
    }
}

fn range(random: &mut ChaCha8Rng, len: usize) -> std::ops::Range<usize> {
    let begin = pick(random, len + 1);
    let most = (len - begin).min(1 << pick(random, 12));
    begin..begin + pick(random, most + 1)
}

/// Changes bytes one to six times.
pub fn change(bytes: &mut Vec<u8>, others: &[Vec<u8>], random: &mut ChaCha8Rng) {
    for _ in 0..=pick(random, 6) {
        let at = pick(random, bytes.len());
        match pick(random, 10) {
            0 | 1 => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << pick(random, 8);
                }
            }
            2 => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = random.next_u32() as u8;
                }
            }
            3 | 4 => {
                let number = EDGES[pick(random, EDGES.len())];
                let number = number.wrapping_add(pick(random, 3) as u64).wrapping_sub(1);
                let width = [1, 2, 4, 8][pick(random, 4)];
                let mut encoded = number.to_le_bytes();
                if pick(random, 4) == 0 {
                    encoded[..width].reverse();
                }
                if let Some(place) = bytes.get_mut(at..at + width) {
                    place.copy_from_slice(&encoded[..width]);
                }
            }
            5 => {
                let range = range(random, bytes.len());
                bytes.drain(range);
            }
            6 => {
                let part = bytes[range(random, bytes.len())].to_vec();
                bytes.splice(at..at, part);
            }
            7 => {
                let range = range(random, bytes.len());
                bytes[range].fill(random.next_u32() as u8);
            }
            8 => bytes.truncate(at),
            _ => {
                if let Some(other) = others.get(pick(random, others.len())) {
                    let part = other[range(random, other.len())].to_vec();
                    let end = (at + pick(random, part.len() + 1)).min(bytes.len());
                    bytes.splice(at..end, part);
                }
            }
        }
        bytes.truncate(LONGEST);
    }
}

/// Returns a mutation of one of the inputs.
pub fn of(inputs: &[Vec<u8>], random: &mut ChaCha8Rng) -> Vec<u8> {
    let mut bytes = match inputs.get(pick(random, inputs.len())) {
        Some(input) => input.clone(),
        None => vec![0; pick(random, 64)],
    };
    change(&mut bytes, inputs, random);
    bytes
}
