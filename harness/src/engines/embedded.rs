//! The embedded stores that are measured together with servers' engines.

/// An embedded store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Embedded {
    /// Peregrine's library, without a server.
    Library,
    /// A library with SQL.
    Sqlite,
    /// A B+tree in a memory map.
    Lmdb,
    /// A copy-on-write B+tree in Rust.
    Redb,
    /// A log-structured merge tree in Rust.
    Fjall,
}

impl Embedded {
    /// All stores, in the order of the report.
    pub const ALL: [Self; 5] = [
        Self::Library,
        Self::Sqlite,
        Self::Lmdb,
        Self::Redb,
        Self::Fjall,
    ];

    /// Returns its name in options and results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Library => "peregrine-library",
            Self::Sqlite => "sqlite",
            Self::Lmdb => "lmdb",
            Self::Redb => "redb",
            Self::Fjall => "fjall",
        }
    }

    /// Returns its name for people.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Library => "Peregrine library",
            Self::Sqlite => "SQLite",
            Self::Lmdb => "LMDB",
            Self::Redb => "redb",
            Self::Fjall => "fjall",
        }
    }
}
