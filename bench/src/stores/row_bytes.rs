//! A row as bytes, for stores of keys and values: compact, with quick access to each field.
//!
//! ```text
//! u16 birth day (ffff: NULL) · u8 state · u16 country · u8 length of each of the six strings · the strings
//! ```
//! The name is the first string, so that its place is fixed.

use crate::normal::generator::Row;

/// The offset of the lengths.
const LENGTHS: usize = 5;
/// The number of strings.
const STRINGS: usize = 6;
/// The offset of the strings.
const TEXT: usize = LENGTHS + STRINGS;
/// The number for no day of birth, above all days.
pub const NULL: u16 = u16::MAX;

/// Encodes a row without its id, which is the key, into `out`, which it clears first.
pub fn encode(row: &Row, out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(&row.birth_day.unwrap_or(NULL).to_le_bytes());
    out.push(row.state_id);
    out.extend_from_slice(&row.country_id.to_le_bytes());
    let strings = strings(row);
    // The longest column has 128 bytes.
    out.extend(strings.map(|text| u8::try_from(text.len()).unwrap_or(u8::MAX)));
    for text in strings {
        out.extend_from_slice(text.as_bytes());
    }
}

/// Returns the strings of a row, in their order.
fn strings(row: &Row) -> [&str; STRINGS] {
    [
        &row.name,
        &row.email,
        &row.password,
        &row.address,
        &row.city,
        &row.zip,
    ]
}

/// The bytes of a row's values, which are the unit for scans of any store, however it stores them.
pub fn value_bytes(row: &Row) -> u64 {
    let text: usize = strings(row).iter().map(|text| text.len()).sum();
    let numbers = 4 + 2 + 1 + 2;
    text as u64 + numbers
}

/// Returns the name within a row's bytes.
#[inline]
pub fn name(bytes: &[u8]) -> Option<&[u8]> {
    let len = usize::from(*bytes.get(LENGTHS)?);
    bytes.get(TEXT..TEXT + len)
}

/// Returns the number of the day of birth within a row's bytes, or [`NULL`].
#[inline]
pub fn birth_day(bytes: &[u8]) -> Option<u16> {
    let (day, _) = bytes.split_first_chunk()?;
    Some(u16::from_le_bytes(*day))
}

/// Decodes a row; returns `None` if the bytes are not those of a row.
pub fn decode(id: u32, bytes: &[u8], row: &mut Row) -> Option<()> {
    let (head, mut rest) = bytes.split_at_checked(TEXT)?;
    let [b0, b1, state, c0, c1, lengths @ ..] = head else {
        return None;
    };
    row.id = id;
    row.birth_day = Some(u16::from_le_bytes([*b0, *b1])).filter(|day| *day != NULL);
    row.state_id = *state;
    row.country_id = u16::from_le_bytes([*c0, *c1]);
    let strings = [
        &mut row.name,
        &mut row.email,
        &mut row.password,
        &mut row.address,
        &mut row.city,
        &mut row.zip,
    ];
    for (text, len) in strings.into_iter().zip(lengths) {
        let (own, after) = rest.split_at_checked(usize::from(*len))?;
        rest = after;
        text.clear();
        text.push_str(std::str::from_utf8(own).ok()?);
    }
    rest.is_empty().then_some(())
}

/// Encodes the key of an entry of the index on country, state and city.
///
/// Keys sort like these columns, then by id.
pub fn country_key(row: &Row, out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(&row.country_id.to_be_bytes());
    out.push(row.state_id);
    out.extend_from_slice(row.city.as_bytes());
    out.push(0);
    out.extend_from_slice(&row.id.to_be_bytes());
}

/// The fields of an entry of that index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    /// `state_id`
    pub state: u8,
    /// `city`
    pub city: &'a [u8],
    /// `id`
    pub id: u32,
}

/// Decodes an entry's key.
#[inline]
pub fn entry(key: &[u8]) -> Option<Entry<'_>> {
    let (columns, id) = key.split_last_chunk()?;
    let [_, _, state, city @ .., 0] = columns else {
        return None;
    };
    Some(Entry {
        state: *state,
        city,
        id: u32::from_be_bytes(*id),
    })
}

/// Returns the lower and upper bound of a country's entries, in all states or in some.
pub fn country_range(country: u16, states: Option<(u8, u8)>) -> ([u8; 3], [u8; 4]) {
    let (first, last) = states.unwrap_or((0, u8::MAX));
    let [high, low] = country.to_be_bytes();
    // No city begins with the byte ff.
    ([high, low, first], [high, low, last, u8::MAX])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::normal::Generator;

    #[test]
    fn rows_come_back_as_they_were() {
        let generator = Generator::new(5, 3_000);
        let (mut row, mut back) = (Row::default(), Row::default());
        let mut bytes = Vec::new();
        for id in 1..=3_000 {
            generator.row(id, &mut row);
            encode(&row, &mut bytes);
            assert_eq!(name(&bytes), Some(row.name.as_bytes()));
            let day = birth_day(&bytes).expect("a day");
            assert_eq!(row.birth_day, (day != NULL).then_some(day));
            assert_eq!(decode(id, &bytes, &mut back), Some(()));
            assert_eq!(row, back);
            assert_eq!(decode(id, &bytes[..bytes.len() - 1], &mut back), None);
        }
        assert_eq!(name(&[]), None);
    }

    #[test]
    fn index_keys_sort_as_their_columns() {
        let generator = Generator::new(5, 500);
        let columns = |row: &Row| (row.country_id, row.state_id, row.city.clone(), row.id);
        let mut keys: Vec<_> = (1..=500)
            .map(|id| {
                let (mut row, mut key) = (Row::default(), Vec::new());
                generator.row(id, &mut row);
                country_key(&row, &mut key);
                (key, columns(&row))
            })
            .collect();
        keys.sort();
        for (key, (country, state, city, id)) in &keys {
            let found = Entry {
                state: *state,
                city: city.as_bytes(),
                id: *id,
            };
            assert_eq!(entry(key), Some(found));
            for states in [None, Some((*state, *state)), Some((1, 25))] {
                let (first, last) = country_range(*country, states);
                let within = states.is_none_or(|(a, b)| (a..=b).contains(state));
                assert_eq!(*key >= first.to_vec() && *key <= last.to_vec(), within);
            }
        }
        assert_eq!(entry(&keys[0].0[..4]), None);
        assert!(keys.is_sorted_by_key(|(_, columns)| columns));
    }
}
