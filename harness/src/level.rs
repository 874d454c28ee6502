//! The four isolation levels of SQL.

use serde::{Deserialize, Serialize};

use crate::error::{HarnessError, Result};

/// An isolation level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// READ UNCOMMITTED.
    ReadUncommitted,
    /// READ COMMITTED.
    ReadCommitted,
    /// REPEATABLE READ.
    RepeatableRead,
    /// SERIALIZABLE.
    Serializable,
}

impl Level {
    /// Every level, from weak to strong.
    pub const ALL: [Self; 4] = [
        Self::ReadUncommitted,
        Self::ReadCommitted,
        Self::RepeatableRead,
        Self::Serializable,
    ];

    /// Returns its name in SQL.
    #[must_use]
    pub fn sql(self) -> &'static str {
        match self {
            Self::ReadUncommitted => "READ UNCOMMITTED",
            Self::ReadCommitted => "READ COMMITTED",
            Self::RepeatableRead => "REPEATABLE READ",
            Self::Serializable => "SERIALIZABLE",
        }
    }

    /// Returns its name in options.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ReadUncommitted => "read-uncommitted",
            Self::ReadCommitted => "read-committed",
            Self::RepeatableRead => "repeatable-read",
            Self::Serializable => "serializable",
        }
    }

    /// Parses the name of a level.
    ///
    /// # Errors
    /// [`HarnessError::Usage`] with the known names.
    pub fn parse(name: &str) -> Result<Self> {
        let plain = |text: &str| text.to_ascii_lowercase().replace(['-', '_'], " ");
        Self::ALL
            .into_iter()
            .find(|level| plain(level.name()) == plain(name.trim()))
            .ok_or_else(|| {
                HarnessError::Usage(format!(
                    "unknown isolation level '{name}': the levels are {}",
                    Self::ALL.map(Self::name).join(", ")
                ))
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_parses_and_others_are_told_the_names() {
        for level in Level::ALL {
            assert_eq!(Level::parse(level.name()).expect("known"), level);
            assert_eq!(Level::parse(level.sql()).expect("known"), level);
        }
        let message = Level::parse("strict").expect_err("unknown").to_string();
        assert!(message.contains("repeatable-read"), "{message}");
    }
}
