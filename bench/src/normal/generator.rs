//! The rows of table `normal`.
//!
//! Each row has a random stream of its own. The stream is `ChaCha8`: Bernstein's `ChaCha` with eight rounds, from crate
//! `rand_chacha`, whose output is the same on every platform. Its key is the seed, and its stream number is the row's
//! id. So row `id` can be computed without the rows before it, and the same seed gives the same table everywhere. A row
//! takes [`BYTES_PER_ROW`] bytes from its stream and reads its fields from fixed places in them.

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

use super::{COUNTRIES, STATES};

/// The number of random bytes of a row.
const BYTES_PER_ROW: usize = 384;

/// The 32 letters of random words: 32, so that one byte gives one letter.
///
/// The vowels are in it twice, so that the words look less strange.
const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyzaeioue";

/// The 64 letters and digits of passwords.
const PASSWORD: &[u8; 64] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789./";

/// Mail hosts.
const HOSTS: [&str; 8] = [
    "@example.com",
    "@example.org",
    "@example.net",
    "@mail.example",
    "@post.example",
    "@web.example.com",
    "@inbox.example",
    "@letters.example.org",
];

/// The number of days of birth, from 1940-01-01 to the end of 2004.
pub const BIRTH_DAYS: u16 = 23_742;

/// One row out of this many has no day of birth.
const WITHOUT_BIRTH_DAY: u32 = 50;

/// The generator of one table.
#[derive(Debug, Clone)]
pub struct Generator {
    base: ChaCha8Rng,
    rows: u32,
}

/// A row.
///
/// A caller fills the same `Row` again and again, so that no row costs an allocation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Row {
    /// The primary key.
    pub id: u32,
    /// Two capitalised words.
    pub name: String,
    /// Unique; lower case.
    pub email: String,
    /// Letters and digits.
    pub password: String,
    /// Days since 1940-01-01; `None` is NULL.
    pub birth_day: Option<u16>,
    /// A number and words.
    pub address: String,
    /// One capitalised word.
    pub city: String,
    /// 1 to [`STATES`].
    pub state_id: u8,
    /// Five to eight digits.
    pub zip: String,
    /// 1 to [`COUNTRIES`].
    pub country_id: u16,
}

impl Generator {
    /// The table of `rows` rows that belongs to `seed`.
    #[must_use]
    pub fn new(seed: u64, rows: u32) -> Self {
        Self {
            base: ChaCha8Rng::seed_from_u64(seed),
            rows,
        }
    }

    /// The number of rows; ids are 1 to this.
    #[must_use]
    pub fn rows(&self) -> u32 {
        self.rows
    }

    /// Computes row `id`.
    pub fn row(&self, id: u32, row: &mut Row) {
        let mut random = self.base.clone();
        random.set_stream(u64::from(id));
        let mut bytes = [0_u8; BYTES_PER_ROW];
        random.fill_bytes(&mut bytes);
        let mut source = Source {
            bytes: &bytes,
            at: 0,
        };

        row.id = id;
        row.country_id = 1 + source.below_u16(COUNTRIES);
        row.state_id = 1 + u8::try_from(source.below(u32::from(STATES))).unwrap_or(0);
        let without = source.below(WITHOUT_BIRTH_DAY) == 0;
        let day = source.below_u16(BIRTH_DAYS);
        row.birth_day = (!without).then_some(day);

        row.name.clear();
        source.word(3, 14, true, &mut row.name);
        row.name.push(' ');
        source.word(4, 26, true, &mut row.name);

        row.email.clear();
        source.word(3, 18, false, &mut row.email);
        // The odd factor scatters the ids, so that ids that follow each other are far apart in the index. No two
        // products are equal, so the address is unique.
        row.email.push('.');
        base36(id.wrapping_mul(0x9E37_79B1), &mut row.email);
        let host = source.below(8) as usize;
        row.email.push_str(HOSTS[host % HOSTS.len()]);

        row.password.clear();
        let length = 24 + source.below(41);
        for _ in 0..length {
            row.password
                .push(char::from(PASSWORD[usize::from(source.byte()) % 64]));
        }

        row.address.clear();
        digits(1 + source.below(9_999), &mut row.address);
        let words = 2 + source.below(5);
        for _ in 0..words {
            row.address.push(' ');
            source.word(4, 18, true, &mut row.address);
        }

        row.city.clear();
        source.word(4, 24, true, &mut row.city);

        row.zip.clear();
        let length = 5 + source.below(4);
        for _ in 0..length {
            row.zip.push(char::from(b'0' + source.byte() % 10));
        }
    }
}

/// A row's random bytes, taken from the front.
struct Source<'a> {
    bytes: &'a [u8; BYTES_PER_ROW],
    at: usize,
}

impl Source<'_> {
    fn byte(&mut self) -> u8 {
        let byte = self.bytes[self.at % BYTES_PER_ROW];
        self.at += 1;
        byte
    }

    /// Returns a number below `bound`, by Lemire's multiplication.
    ///
    /// Its bias, at most `bound` in 2³², does not matter here.
    fn below(&mut self, bound: u32) -> u32 {
        let random = u32::from_le_bytes([self.byte(), self.byte(), self.byte(), self.byte()]);
        let scaled = (u64::from(random) * u64::from(bound)) >> 32;
        u32::try_from(scaled).unwrap_or(0)
    }

    fn below_u16(&mut self, bound: u16) -> u16 {
        u16::try_from(self.below(u32::from(bound))).unwrap_or(0)
    }

    /// A word of `shortest` to `longest` letters.
    fn word(&mut self, shortest: u32, longest: u32, capital: bool, into: &mut String) {
        let length = shortest + self.below(longest - shortest + 1);
        for place in 0..length {
            let letter = char::from(LETTERS[usize::from(self.byte()) % 32]);
            into.push(if capital && place == 0 {
                letter.to_ascii_uppercase()
            } else {
                letter
            });
        }
    }
}

fn digits(number: u32, into: &mut String) {
    use std::fmt::Write as _;
    // A write to memory does not fail.
    let _ = write!(into, "{number}");
}

fn base36(mut number: u32, into: &mut String) {
    loop {
        let digit = u8::try_from(number % 36).unwrap_or(0);
        into.push(char::from(if digit < 10 {
            b'0' + digit
        } else {
            b'a' + digit - 10
        }));
        number /= 36;
        if number == 0 {
            return;
        }
    }
}

/// The date that is `days` days after 1940-01-01: year, month, day.
#[must_use]
pub fn date(days: u16) -> (u16, u8, u8) {
    use jiff::{civil, ToSpan as _};
    let first = civil::date(1940, 1, 1);
    // All days of birth are far within the calendar's bounds.
    let date = first.checked_add(i64::from(days).days()).unwrap_or(first);
    (
        u16::try_from(date.year()).unwrap_or(0),
        u8::try_from(date.month()).unwrap_or(0),
        u8::try_from(date.day()).unwrap_or(0),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn row(seed: u64, id: u32) -> Row {
        let mut row = Row::default();
        Generator::new(seed, 1_000_000).row(id, &mut row);
        row
    }

    #[test]
    fn a_row_depends_on_seed_and_id_only() {
        let generator = Generator::new(7, 1_000);
        let (mut used, mut fresh) = (Row::default(), Row::default());
        for id in [900, 3, 1_000, 3, 1] {
            generator.row(id, &mut used);
            Generator::new(7, 50).row(id, &mut fresh);
            assert_eq!(used, fresh);
            fresh = Row::default();
        }
        assert_ne!(row(7, 3).name, row(8, 3).name);
        assert_ne!(row(7, 3).name, row(7, 4).name);
    }

    #[test]
    fn output_is_the_same_everywhere_and_for_ever() {
        // Recorded when the generator was written. It must not change, or results before and after can't be compared.
        let mut sum = 0_u64;
        let mut row = Row::default();
        let generator = Generator::new(1, 1_000_000);
        for id in (1..=1_000_000).step_by(997) {
            generator.row(id, &mut row);
            let line = format!("{row:?}");
            sum = sum.wrapping_add(super::super::fingerprint::of_text(line.as_bytes()));
        }
        assert_eq!(sum, GOLDEN);
    }

    const GOLDEN: u64 = 2_746_427_604_704_612_445;

    #[test]
    fn fields_have_the_lengths_and_ranges_that_the_table_allows() {
        let generator = Generator::new(3, 20_000);
        let mut row = Row::default();
        let mut emails = HashSet::new();
        let mut countries = HashSet::new();
        let mut states = HashSet::new();
        let mut without = 0;
        for id in 1..=20_000 {
            generator.row(id, &mut row);
            assert!((8..=64).contains(&row.name.len()), "{row:?}");
            assert!(row.email.len() <= 64 && row.email.contains('@'), "{row:?}");
            assert_eq!(row.email, row.email.to_lowercase());
            assert!((24..=64).contains(&row.password.len()), "{row:?}");
            assert!(row.address.len() <= 128, "{row:?}");
            assert!((4..=24).contains(&row.city.len()), "{row:?}");
            assert!((5..=8).contains(&row.zip.len()), "{row:?}");
            assert!((1..=COUNTRIES).contains(&row.country_id));
            assert!((1..=STATES).contains(&row.state_id));
            assert!(row.birth_day.is_none_or(|day| day < BIRTH_DAYS));
            assert!(emails.insert(row.email.clone()), "{row:?}");
            countries.insert(row.country_id);
            states.insert(row.state_id);
            without += u32::from(row.birth_day.is_none());
        }
        assert_eq!(countries.len(), usize::from(COUNTRIES));
        assert_eq!(states.len(), usize::from(STATES));
        assert!((200..=600).contains(&without), "{without}");
    }

    #[test]
    fn dates_follow_the_calendar() {
        assert_eq!(date(0), (1940, 1, 1));
        assert_eq!(date(59), (1940, 2, 29));
        assert_eq!(date(60), (1940, 3, 1));
        assert_eq!(date(366), (1941, 1, 1));
        assert_eq!(date(BIRTH_DAYS - 1), (2004, 12, 31));
    }
}
