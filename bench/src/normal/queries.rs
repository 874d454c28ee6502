//! The thirteen queries.

use serde::{Deserialize, Serialize};

use peregrine_harness::error::{HarnessError, Result};

/// One of the thirteen read queries; named as published.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[allow(missing_docs)] // The names are the published ones and the workload file says what each is.
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

/// The values that an answer consists of.
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
    /// All queries, in the order in which they are shown.
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

    /// The query's published name.
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

    /// Returns the query of this name, in upper or lower case.
    ///
    /// # Errors
    /// [`HarnessError::Usage`], which lists all names.
    pub fn parse(name: &str) -> Result<Self> {
        Self::ALL
            .into_iter()
            .find(|query| query.name().eq_ignore_ascii_case(name))
            .ok_or_else(|| {
                HarnessError::Usage(format!(
                    "unknown query '{name}': the queries are {}",
                    Self::ALL.map(Self::name).join(", ")
                ))
            })
    }

    /// The values that the query's answer consists of.
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

    /// The query's `LIMIT`.
    #[must_use]
    pub fn limit(self) -> Option<usize> {
        match self {
            Self::ReadKeyPointLimit | Self::ReadKeyPointNoDataLimit => Some(5),
            Self::ReadKeyRangeLimit | Self::ReadKeyRangeNoDataLimit => Some(50),
            _ => None,
        }
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
}
