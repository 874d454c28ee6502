//! The thirteen queries.

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

use super::schema::{COUNTRIES, STATES};
use crate::error::{Result, SuiteError};
use crate::target::Parameters;

/// How many ids a range over `id` covers.
pub const ID_RANGE: u32 = 100;

/// How many states a range over `state_id` covers.
pub const STATE_RANGE: u8 = 10;

/// One of the thirteen read queries; named as published.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[allow(missing_docs)] // The names are the published ones and `statement` says what each is.
pub enum Query {
    ReadPkPoint,
    ReadKeyPoint,
    ReadKeyPointLimit,
    ReadKeyPointNoData,
    ReadKeyPointNoDataLimit,
    ReadPkPointIndex,
    ReadPkRange,
    ReadPkRangeIndex,
    ReadKeyRange,
    ReadKeyRangeLimit,
    ReadKeyRangeNoData,
    ReadKeyRangeNoDataLimit,
    ReadFts,
}

/// What an answer is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    /// Strings: names.
    Name,
    /// Strings: cities.
    City,
    /// Whole numbers: states.
    State,
    /// Whole numbers: ids, or a count.
    Number,
    /// A date or NULL.
    Date,
}

impl Query {
    /// All of them, in the order they are shown.
    pub const ALL: [Self; 13] = [
        Self::ReadPkPoint,
        Self::ReadKeyPoint,
        Self::ReadKeyPointLimit,
        Self::ReadKeyPointNoData,
        Self::ReadKeyPointNoDataLimit,
        Self::ReadPkPointIndex,
        Self::ReadPkRange,
        Self::ReadPkRangeIndex,
        Self::ReadKeyRange,
        Self::ReadKeyRangeLimit,
        Self::ReadKeyRangeNoData,
        Self::ReadKeyRangeNoDataLimit,
        Self::ReadFts,
    ];

    /// Its published name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ReadPkPoint => "READ_PK_POINT",
            Self::ReadKeyPoint => "READ_KEY_POINT",
            Self::ReadKeyPointLimit => "READ_KEY_POINT_LIMIT",
            Self::ReadKeyPointNoData => "READ_KEY_POINT_NO_DATA",
            Self::ReadKeyPointNoDataLimit => "READ_KEY_POINT_NO_DATA_LIMIT",
            Self::ReadPkPointIndex => "READ_PK_POINT_INDEX",
            Self::ReadPkRange => "READ_PK_RANGE",
            Self::ReadPkRangeIndex => "READ_PK_RANGE_INDEX",
            Self::ReadKeyRange => "READ_KEY_RANGE",
            Self::ReadKeyRangeLimit => "READ_KEY_RANGE_LIMIT",
            Self::ReadKeyRangeNoData => "READ_KEY_RANGE_NO_DATA",
            Self::ReadKeyRangeNoDataLimit => "READ_KEY_RANGE_NO_DATA_LIMIT",
            Self::ReadFts => "READ_FTS",
        }
    }

    /// The query of this name; upper or lower case.
    ///
    /// # Errors
    /// [`SuiteError::Usage`] with the names there are.
    pub fn parse(name: &str) -> Result<Self> {
        Self::ALL
            .into_iter()
            .find(|query| query.name().eq_ignore_ascii_case(name))
            .ok_or_else(|| {
                SuiteError::Usage(format!(
                    "unknown query '{name}': the queries are {}",
                    Self::ALL.map(Self::name).join(", ")
                ))
            })
    }

    /// The statement, with `?` for its parameters.
    #[must_use]
    pub fn statement(self) -> &'static str {
        match self {
            Self::ReadPkPoint => "SELECT name FROM normal WHERE id = ?",
            Self::ReadKeyPoint => "SELECT name FROM normal WHERE country_id = ?",
            Self::ReadKeyPointLimit => "SELECT name FROM normal WHERE country_id = ? LIMIT 5",
            Self::ReadKeyPointNoData => "SELECT state_id FROM normal WHERE country_id = ?",
            Self::ReadKeyPointNoDataLimit => {
                "SELECT state_id FROM normal WHERE country_id = ? LIMIT 5"
            }
            Self::ReadPkPointIndex => "SELECT id FROM normal WHERE id = ?",
            Self::ReadPkRange => "SELECT min(dob) FROM normal WHERE id BETWEEN ? AND ?",
            Self::ReadPkRangeIndex => "SELECT count(id) FROM normal WHERE id BETWEEN ? AND ?",
            Self::ReadKeyRange => {
                "SELECT name FROM normal WHERE country_id = ? AND state_id BETWEEN ? AND ?"
            }
            Self::ReadKeyRangeLimit => {
                "SELECT name FROM normal WHERE country_id = ? AND state_id BETWEEN ? AND ? LIMIT 50"
            }
            Self::ReadKeyRangeNoData => {
                "SELECT city FROM normal WHERE country_id = ? AND state_id BETWEEN ? AND ?"
            }
            Self::ReadKeyRangeNoDataLimit => {
                "SELECT city FROM normal WHERE country_id = ? AND state_id BETWEEN ? AND ? LIMIT 50"
            }
            Self::ReadFts => "SELECT min(dob) FROM normal",
        }
    }

    /// What its answer is made of.
    #[must_use]
    pub fn column(self) -> Column {
        match self {
            Self::ReadPkPoint
            | Self::ReadKeyPoint
            | Self::ReadKeyPointLimit
            | Self::ReadKeyRange
            | Self::ReadKeyRangeLimit => Column::Name,
            Self::ReadKeyPointNoData | Self::ReadKeyPointNoDataLimit => Column::State,
            Self::ReadPkPointIndex | Self::ReadPkRangeIndex => Column::Number,
            Self::ReadPkRange | Self::ReadFts => Column::Date,
            Self::ReadKeyRangeNoData | Self::ReadKeyRangeNoDataLimit => Column::City,
        }
    }

    /// Its `LIMIT`.
    #[must_use]
    pub fn limit(self) -> Option<usize> {
        match self {
            Self::ReadKeyPointLimit | Self::ReadKeyPointNoDataLimit => Some(5),
            Self::ReadKeyRangeLimit | Self::ReadKeyRangeNoDataLimit => Some(50),
            _ => None,
        }
    }

    /// Draws its parameters for a table of `rows` rows.
    pub fn draw(self, random: &mut Dice, rows: u32) -> Parameters {
        match self {
            Self::ReadPkPoint | Self::ReadPkPointIndex => {
                Parameters::new(&[1 + random.below(rows)])
            }
            Self::ReadPkRange | Self::ReadPkRangeIndex => {
                let width = ID_RANGE.min(rows);
                let first = 1 + random.below(rows - width + 1);
                Parameters::new(&[first, first + width - 1])
            }
            Self::ReadKeyPoint
            | Self::ReadKeyPointLimit
            | Self::ReadKeyPointNoData
            | Self::ReadKeyPointNoDataLimit => {
                Parameters::new(&[1 + random.below(u32::from(COUNTRIES))])
            }
            Self::ReadKeyRange
            | Self::ReadKeyRangeLimit
            | Self::ReadKeyRangeNoData
            | Self::ReadKeyRangeNoDataLimit => {
                let country = 1 + random.below(u32::from(COUNTRIES));
                let first = 1 + random.below(u32::from(STATES - STATE_RANGE + 1));
                Parameters::new(&[country, first, first + u32::from(STATE_RANGE) - 1])
            }
            Self::ReadFts => Parameters::new(&[]),
        }
    }
}

/// Random numbers for parameters and schedules: `ChaCha8`, the same for the same seed and stream
/// everywhere, so that every engine is asked the same questions.
#[derive(Debug)]
pub struct Dice(ChaCha8Rng);

impl Dice {
    /// The numbers of `seed` and `stream`.
    #[must_use]
    pub fn new(seed: u64, stream: u64) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        random.set_stream(stream);
        Self(random)
    }

    /// A number below `bound` (0 when `bound` is 0), by Lemire's multiplication.
    pub fn below(&mut self, bound: u32) -> u32 {
        let scaled = (u64::from(self.0.next_u32()) * u64::from(bound)) >> 32;
        u32::try_from(scaled).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_and_an_unknown_one_names_them_all() {
        for query in Query::ALL {
            assert_eq!(Query::parse(query.name()).expect("known"), query);
            let json = serde_json::to_string(&query).expect("json");
            assert_eq!(json, format!("\"{}\"", query.name()));
        }
        assert_eq!(Query::parse("read_fts").expect("known"), Query::ReadFts);
        let message = Query::parse("READ_ALL").expect_err("unknown").to_string();
        for query in Query::ALL {
            assert!(message.contains(query.name()), "{message}");
        }
    }

    #[test]
    fn parameters_fit_the_statement_and_the_table() {
        for query in Query::ALL {
            let marks = query.statement().matches('?').count();
            let mut dice = Dice::new(1, 2);
            for _ in 0..2_000 {
                for rows in [1, 50, 100, 101, 5_000_000] {
                    let parameters = query.draw(&mut dice, rows);
                    assert_eq!(parameters.values().len(), marks);
                    if let [first, last] = *parameters.values() {
                        assert!(first >= 1 && last <= rows);
                        assert_eq!(last - first + 1, ID_RANGE.min(rows));
                    }
                    if let [country, first, last] = *parameters.values() {
                        assert!((1..=200).contains(&country));
                        assert!(first >= 1 && last <= 50 && last - first == 9);
                    }
                }
            }
            assert_eq!(
                query.limit().is_some(),
                query.statement().contains("LIMIT"),
                "{}",
                query.name()
            );
        }
    }
}
