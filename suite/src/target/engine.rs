//! The engines that are measured, and what differs between them.

use serde::{Deserialize, Serialize};

use crate::error::{Result, SuiteError};

/// A storage engine of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// The server's default engine.
    InnoDb,
    /// The old engine without transactions.
    MyIsam,
    /// `MyISAM`'s crash-safe successor.
    Aria,
    /// The engine over `RocksDB`.
    MyRocks,
    /// Ours.
    Peregrine,
}

impl Engine {
    /// Every engine, in the order they are shown.
    pub const ALL: [Self; 5] = [
        Self::InnoDb,
        Self::MyIsam,
        Self::Aria,
        Self::MyRocks,
        Self::Peregrine,
    ];

    /// Its name in options and results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::InnoDb => "innodb",
            Self::MyIsam => "myisam",
            Self::Aria => "aria",
            Self::MyRocks => "myrocks",
            Self::Peregrine => "peregrine",
        }
    }

    /// Its name for people.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::InnoDb => "InnoDB",
            Self::MyIsam => "MyISAM",
            Self::Aria => "Aria",
            Self::MyRocks => "MyRocks",
            Self::Peregrine => "Peregrine",
        }
    }

    /// The engine of this name.
    ///
    /// # Errors
    /// [`SuiteError::Usage`] with the names there are.
    pub fn parse(name: &str) -> Result<Self> {
        Self::ALL
            .into_iter()
            .find(|engine| engine.name().eq_ignore_ascii_case(name))
            .ok_or_else(|| {
                SuiteError::Usage(format!(
                    "unknown engine '{name}': the engines are {}",
                    Self::ALL.map(Self::name).join(", ")
                ))
            })
    }

    /// Its name in `ENGINE=…`.
    #[must_use]
    pub fn sql_name(self) -> &'static str {
        match self {
            Self::MyRocks => "ROCKSDB",
            other => other.title(),
        }
    }

    /// The schema that its table lies in.
    #[must_use]
    pub fn schema(self) -> String {
        format!("bench_{}", self.name())
    }

    /// The plug-in of the server's own that must be loaded for it.
    #[must_use]
    pub fn server_plugin(self) -> Option<&'static str> {
        (self == Self::MyRocks).then_some("ha_rocksdb")
    }

    /// The variable that holds the size of its cache.
    #[must_use]
    pub fn cache_variable(self) -> &'static str {
        match self {
            Self::InnoDb => "innodb_buffer_pool_size",
            Self::MyIsam => "key_buffer_size",
            Self::Aria => "aria_pagecache_buffer_size",
            Self::MyRocks => "rocksdb_block_cache_size",
            Self::Peregrine => "peregrine_buffer_pool_size",
        }
    }

    /// The variable that says when a commit is durable, for engines that have such a thing; the
    /// suite sets each to 1.
    #[must_use]
    pub fn durability_variable(self) -> Option<&'static str> {
        match self {
            Self::InnoDb => Some("innodb_flush_log_at_trx_commit"),
            Self::MyRocks => Some("rocksdb_flush_log_at_trx_commit"),
            Self::Peregrine => Some("peregrine_flush_log_at_trx_commit"),
            Self::MyIsam | Self::Aria => None,
        }
    }

    /// What its durability is called in results.
    #[must_use]
    pub fn durability(self) -> &'static str {
        match self {
            Self::InnoDb | Self::MyRocks | Self::Peregrine => "sync at commit",
            Self::Aria => "crash-safe, no transactions",
            Self::MyIsam => "none",
        }
    }

    /// Whether its tables have transactions.
    #[must_use]
    pub fn is_transactional(self) -> bool {
        self.durability_variable().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_parses_to_its_engine_and_others_name_them_all() {
        for engine in Engine::ALL {
            assert_eq!(Engine::parse(engine.name()).expect("known"), engine);
            assert_eq!(Engine::parse(engine.title()).expect("known"), engine);
        }
        let message = Engine::parse("falcon").expect_err("unknown").to_string();
        for engine in Engine::ALL {
            assert!(message.contains(engine.name()), "{message}");
        }
    }
}
