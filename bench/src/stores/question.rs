//! The questions of the thirteen queries, for stores without SQL.

use crate::normal::generator::date;
use crate::normal::Query;
use peregrine_harness::engines::{Datum, RowSink, Value};

/// A question to table `normal`.
///
/// Ranges include both ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    /// The name of one row.
    Name {
        /// Its id.
        id: u32,
    },
    /// The id of one row, if there is such a row.
    Id {
        /// The id.
        id: u32,
    },
    /// The first day of birth.
    FirstBirthDay {
        /// The ids of the rows; `None` for all rows.
        ids: Option<(u32, u32)>,
    },
    /// The number of rows.
    Count {
        /// The ids of the rows.
        ids: (u32, u32),
    },
    /// A column of each row of a country.
    InCountry {
        /// The column.
        wanted: Wanted,
        /// The country.
        country: u16,
        /// The states; `None` for all states.
        states: Option<(u8, u8)>,
        /// The maximum number of rows.
        limit: Option<usize>,
    },
}

/// The column that a query of a country asks for.
///
/// The index has all of these but the name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// `name`
    Name,
    /// `state_id`
    State,
    /// `city`
    City,
}

impl Question {
    /// Returns the question of a query with these parameters; `None` if they don't fit the query.
    #[must_use]
    pub fn of(query: Query, given: &[Datum]) -> Option<Self> {
        let number = |at: usize| -> Option<u32> {
            let number = given.get(at)?.integer()?;
            u32::try_from(number).ok()
        };
        let expected = match query {
            Query::ReadFts => 0,
            Query::ReadPkRange | Query::ReadPkRangeIndex => 2,
            Query::ReadKeyRange
            | Query::ReadKeyRangeLimit
            | Query::ReadKeyRangeNoData
            | Query::ReadKeyRangeNoDataLimit => 3,
            _ => 1,
        };
        if given.len() != expected {
            return None;
        }
        let in_country = |wanted: Wanted| -> Option<Self> {
            let state = |at: usize| Some(u8::try_from(number(at)?).unwrap_or(u8::MAX));
            Some(Self::InCountry {
                wanted,
                country: u16::try_from(number(0)?).unwrap_or(u16::MAX),
                states: match expected {
                    3 => Some((state(1)?, state(2)?)),
                    _ => None,
                },
                limit: query.limit(),
            })
        };
        match query {
            Query::ReadPkPoint => Some(Self::Name { id: number(0)? }),
            Query::ReadPkPointIndex => Some(Self::Id { id: number(0)? }),
            Query::ReadPkRange => Some(Self::FirstBirthDay {
                ids: Some((number(0)?, number(1)?)),
            }),
            Query::ReadFts => Some(Self::FirstBirthDay { ids: None }),
            Query::ReadPkRangeIndex => Some(Self::Count {
                ids: (number(0)?, number(1)?),
            }),
            Query::ReadKeyPoint
            | Query::ReadKeyPointLimit
            | Query::ReadKeyRange
            | Query::ReadKeyRangeLimit => in_country(Wanted::Name),
            Query::ReadKeyPointNoData | Query::ReadKeyPointNoDataLimit => in_country(Wanted::State),
            Query::ReadKeyRangeNoData | Query::ReadKeyRangeNoDataLimit => in_country(Wanted::City),
        }
    }
}

/// Writes a day of birth, as its number from 1940-01-01, as the only row of an answer.
pub(super) fn give_day(day: Option<u16>, rows: &mut dyn RowSink) {
    rows.row(&[match day {
        None => Value::Null,
        Some(day) => {
            let (year, month, day) = date(day);
            Value::Date(year, month, day)
        }
    }]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_must_be_those_of_the_query() {
        let numbers = |count: i64| -> Vec<Datum> { (1..=count).map(Datum::Integer).collect() };
        for query in Query::ALL {
            let taken = (0..6).filter(|count| Question::of(query, &numbers(*count)).is_some());
            assert_eq!(taken.count(), 1, "{query:?}");
            let texts = vec![Datum::Text("1".to_owned()); 3];
            assert_eq!(Question::of(query, &texts), None, "{query:?}");
        }
        assert_eq!(
            Question::of(Query::ReadKeyRangeLimit, &numbers(3)),
            Some(Question::InCountry {
                wanted: Wanted::Name,
                country: 1,
                states: Some((2, 3)),
                limit: Some(50),
            })
        );
    }
}
