//! The measured engines, and their differences.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::embedded::Embedded;
use crate::error::{HarnessError, Result};

/// A storage engine of a server, or a store without a server.
///
/// The server's engine is one that the harness configures on a private server, or any other by the name that a server
/// lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Engine {
    /// The server's default engine.
    InnoDb,
    /// MariaDB's older engine without transactions.
    MyIsam,
    /// `MyISAM`'s crash-safe successor.
    Aria,
    /// The engine over `RocksDB`.
    MyRocks,
    /// Peregrine.
    Peregrine,
    /// A store in this process, without a server.
    Embedded(Embedded),
    /// Another engine, of a server that is reached by its URL.
    Other(Name),
}

/// The longest engine name of a server, in bytes.
const LONGEST: usize = 64;

/// The name of an engine, in lower case; the process keeps each name once, until it ends.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(&'static str);

impl Name {
    fn of(text: &str) -> Self {
        static KNOWN: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
        let text = text.to_ascii_lowercase();
        // A panic of another thread can't leave the set half changed.
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(name) = known.get(text.as_str()) {
            return Self(name);
        }
        let kept: &'static str = Box::leak(text.into_boxed_str());
        known.insert(kept);
        Self(kept)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.0)
    }
}

impl Serialize for Engine {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Engine {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Self::named(&name).map_err(serde::de::Error::custom)
    }
}

impl Engine {
    /// The engines that the harness configures on a private server, in the order of the report.
    pub const ALL: [Self; 5] = [
        Self::InnoDb,
        Self::MyIsam,
        Self::Aria,
        Self::MyRocks,
        Self::Peregrine,
    ];

    /// Returns the engines that `bench run` can compare: those of a private server, and the embedded stores.
    pub fn measured() -> impl Iterator<Item = Self> {
        let embedded = Embedded::ALL.map(Self::Embedded);
        Self::ALL.into_iter().chain(embedded)
    }

    /// Returns its name in options and results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::InnoDb => "innodb",
            Self::MyIsam => "myisam",
            Self::Aria => "aria",
            Self::MyRocks => "myrocks",
            Self::Peregrine => "peregrine",
            Self::Embedded(store) => store.name(),
            Self::Other(name) => name.0,
        }
    }

    /// Returns its name for people.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::InnoDb => "InnoDB",
            Self::MyIsam => "MyISAM",
            Self::Aria => "Aria",
            Self::MyRocks => "MyRocks",
            Self::Peregrine => "Peregrine",
            Self::Embedded(store) => store.title(),
            Self::Other(name) => name.0,
        }
    }

    /// Returns the engine with this name in a server's list, in options or in results.
    ///
    /// # Errors
    /// [`HarnessError::Usage`] for a text that can't be an engine's name.
    pub fn named(name: &str) -> Result<Self> {
        let is = |known: &str| known.eq_ignore_ascii_case(name);
        if let Some(engine) = Self::measured().find(|e| is(e.name()) || is(e.sql_name())) {
            return Ok(engine);
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || name.len() > LONGEST || !name.chars().all(plain) {
            return Err(HarnessError::Usage(format!(
                "'{name}' is no name of an engine: letters, digits and _, at most {LONGEST}"
            )));
        }
        Ok(Self::Other(Name::of(name)))
    }

    /// Returns the private server's engine with this name.
    ///
    /// # Errors
    /// [`HarnessError::Usage`] with the known names.
    pub fn parse(name: &str) -> Result<Self> {
        among(name, &Self::ALL)
    }

    /// Returns the engine or store with this name, among those that `bench run` can compare.
    ///
    /// # Errors
    /// [`HarnessError::Usage`] with the known names.
    pub fn parse_measured(name: &str) -> Result<Self> {
        among(name, &Self::measured().collect::<Vec<_>>())
    }

    /// Returns whether it is a store in this process.
    #[must_use]
    pub fn is_embedded(self) -> bool {
        matches!(self, Self::Embedded(_))
    }

    /// Returns its name in `ENGINE=…`.
    #[must_use]
    pub fn sql_name(self) -> &'static str {
        match self {
            Self::MyRocks => "ROCKSDB",
            other => other.title(),
        }
    }

    /// Returns the schema of its tables; no other program uses this name.
    #[must_use]
    pub fn schema(self) -> String {
        format!("peregrine_bench_{}", self.name())
    }

    /// Returns the server's own plug-in that must be loaded for the engine.
    #[must_use]
    pub fn server_plugin(self) -> Option<&'static str> {
        (self == Self::MyRocks).then_some("ha_rocksdb")
    }

    /// Returns the variable with the size of its cache, if known.
    #[must_use]
    pub fn cache_variable(self) -> Option<&'static str> {
        match self {
            Self::InnoDb => Some("innodb_buffer_pool_size"),
            Self::MyIsam => Some("key_buffer_size"),
            Self::Aria => Some("aria_pagecache_buffer_size"),
            Self::MyRocks => Some("rocksdb_block_cache_size"),
            Self::Peregrine => Some("peregrine_buffer_pool_size"),
            Self::Embedded(_) | Self::Other(_) => None,
        }
    }

    /// Returns the variable that controls when a commit is durable, if the engine has one; the harness sets it to 1.
    #[must_use]
    pub fn durability_variable(self) -> Option<&'static str> {
        match self {
            Self::InnoDb => Some("innodb_flush_log_at_trx_commit"),
            Self::MyRocks => Some("rocksdb_flush_log_at_trx_commit"),
            Self::Peregrine => Some("peregrine_flush_log_at_trx_commit"),
            Self::MyIsam | Self::Aria | Self::Embedded(_) | Self::Other(_) => None,
        }
    }

    /// Returns the name of its durability in results.
    #[must_use]
    pub fn durability(self) -> &'static str {
        match self {
            Self::InnoDb | Self::MyRocks | Self::Peregrine | Self::Embedded(_) => "sync at commit",
            Self::Aria => "crash-safe, no transactions",
            Self::MyIsam => "none",
            Self::Other(_) => "not known",
        }
    }

    /// Returns whether its tables have transactions; for [`Engine::Other`] only the server knows.
    #[must_use]
    pub fn is_transactional(self) -> bool {
        self.is_embedded() || self.durability_variable().is_some()
    }
}

/// Returns the engine with this name among `engines`.
fn among(name: &str, engines: &[Engine]) -> Result<Engine> {
    let mut all = engines.iter().copied();
    all.find(|engine| engine.name().eq_ignore_ascii_case(name))
        .ok_or_else(|| {
            let names: Vec<&str> = engines.iter().map(|engine| engine.name()).collect();
            HarnessError::Usage(format!(
                "unknown engine '{name}': the engines are {}",
                names.join(", ")
            ))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_engine_of_a_server_has_one_identity() {
        for (name, engine) in [
            ("INNODB", Engine::InnoDb),
            ("ROCKSDB", Engine::MyRocks),
            ("myrocks", Engine::MyRocks),
        ] {
            assert_eq!(Engine::named(name).expect("known"), engine);
        }
        let memory = Engine::named("MEMORY").expect("a name");
        assert_eq!(memory, Engine::named("Memory").expect("a name"));
        assert_ne!(memory, Engine::named("csv").expect("a name"));
        assert_eq!(memory.schema(), "peregrine_bench_memory");
        let json = serde_json::to_string(&memory).expect("written");
        assert_eq!(json, "\"memory\"");
        let read: Engine = serde_json::from_str(&json).expect("read");
        assert_eq!(read, memory);
        for wrong in ["", "a b", "x; DROP TABLE y", &"a".repeat(65)] {
            assert!(Engine::named(wrong).is_err(), "{wrong}");
        }
    }

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
        assert!(Engine::parse("sqlite").is_err(), "no engine of a server");
        let message = Engine::parse_measured("falcon").expect_err("unknown");
        let message = message.to_string();
        for engine in Engine::measured() {
            assert_eq!(
                Engine::parse_measured(engine.name()).expect("known"),
                engine
            );
            assert!(message.contains(engine.name()), "{message}");
            let json = serde_json::to_string(&engine).expect("written");
            let read: Engine = serde_json::from_str(&json).expect("read");
            assert_eq!(read, engine, "results are read back as they were");
        }
    }
}
