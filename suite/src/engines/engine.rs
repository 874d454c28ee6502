//! The engines that are measured, and what differs between them.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::embedded::Embedded;
use crate::error::{Result, SuiteError};

/// A storage engine of a server: one of those that a private server is made ready for, or any other by the
/// name that a server lists it by. Or a store that needs none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
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
    /// A store in this process, which no server has.
    Embedded(Embedded),
    /// Another engine of a server that is reached by its URL.
    Other(Name),
}

/// The longest name of an engine that servers have.
const LONGEST: usize = 64;

/// The name of an engine, in lower case. Names are kept for as long as the process lives, each once.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(&'static str);

impl Name {
    fn of(text: &str) -> Self {
        static KNOWN: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
        let text = text.to_ascii_lowercase();
        // A set of strings is whole whatever happened to whoever held it.
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
    /// The engines that a private server is made ready for, in the order they are shown.
    pub const ALL: [Self; 5] = [
        Self::InnoDb,
        Self::MyIsam,
        Self::Aria,
        Self::MyRocks,
        Self::Peregrine,
    ];

    /// Those that `bench run` can compare: the engines of a private server, and the embedded stores.
    pub fn measured() -> impl Iterator<Item = Self> {
        let embedded = Embedded::ALL.map(Self::Embedded);
        Self::ALL.into_iter().chain(embedded)
    }

    /// Its name in options and results.
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

    /// Its name for people.
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

    /// The engine that a server lists by this name, or that options and results call so.
    ///
    /// # Errors
    /// [`SuiteError::Usage`] when it can be no engine's name.
    pub fn named(name: &str) -> Result<Self> {
        let is = |known: &str| known.eq_ignore_ascii_case(name);
        if let Some(engine) = Self::measured().find(|e| is(e.name()) || is(e.sql_name())) {
            return Ok(engine);
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || name.len() > LONGEST || !name.chars().all(plain) {
            return Err(SuiteError::Usage(format!(
                "'{name}' is no name of an engine: letters, digits and _, at most {LONGEST}"
            )));
        }
        Ok(Self::Other(Name::of(name)))
    }

    /// The engine of this name, among those of a private server.
    ///
    /// # Errors
    /// [`SuiteError::Usage`] with the names there are.
    pub fn parse(name: &str) -> Result<Self> {
        among(name, &Self::ALL)
    }

    /// The engine or store of this name, among those that `bench run` can compare.
    ///
    /// # Errors
    /// [`SuiteError::Usage`] with the names there are.
    pub fn parse_measured(name: &str) -> Result<Self> {
        among(name, &Self::measured().collect::<Vec<_>>())
    }

    /// Whether it is a store in this process.
    #[must_use]
    pub fn is_embedded(self) -> bool {
        matches!(self, Self::Embedded(_))
    }

    /// Its name in `ENGINE=…`.
    #[must_use]
    pub fn sql_name(self) -> &'static str {
        match self {
            Self::MyRocks => "ROCKSDB",
            other => other.title(),
        }
    }

    /// The schema that its tables lie in: nobody else's, on anybody's server.
    #[must_use]
    pub fn schema(self) -> String {
        format!("peregrine_bench_{}", self.name())
    }

    /// The plug-in of the server's own that must be loaded for it.
    #[must_use]
    pub fn server_plugin(self) -> Option<&'static str> {
        (self == Self::MyRocks).then_some("ha_rocksdb")
    }

    /// The variable that holds the size of its cache, if that is known.
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

    /// The variable that says when a commit is durable, for engines that have such a thing; the
    /// suite sets each to 1.
    #[must_use]
    pub fn durability_variable(self) -> Option<&'static str> {
        match self {
            Self::InnoDb => Some("innodb_flush_log_at_trx_commit"),
            Self::MyRocks => Some("rocksdb_flush_log_at_trx_commit"),
            Self::Peregrine => Some("peregrine_flush_log_at_trx_commit"),
            Self::MyIsam | Self::Aria | Self::Embedded(_) | Self::Other(_) => None,
        }
    }

    /// What its durability is called in results.
    #[must_use]
    pub fn durability(self) -> &'static str {
        match self {
            Self::InnoDb | Self::MyRocks | Self::Peregrine | Self::Embedded(_) => "sync at commit",
            Self::Aria => "crash-safe, no transactions",
            Self::MyIsam => "none",
            Self::Other(_) => "not known",
        }
    }

    /// Whether its tables have transactions; of another engine the server must be asked.
    #[must_use]
    pub fn is_transactional(self) -> bool {
        self.is_embedded() || self.durability_variable().is_some()
    }
}

/// The engine of this name among some.
fn among(name: &str, engines: &[Engine]) -> Result<Engine> {
    let mut all = engines.iter().copied();
    all.find(|engine| engine.name().eq_ignore_ascii_case(name))
        .ok_or_else(|| {
            let names: Vec<&str> = engines.iter().map(|engine| engine.name()).collect();
            SuiteError::Usage(format!(
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
