//! The embedded stores that are measured beside servers' engines.

/// An embedded store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Embedded {
    /// Ours, the library without a server.
    Library,
    /// SQL in a library.
    Sqlite,
    /// A B+tree in a memory map.
    Lmdb,
    /// A copy-on-write B+tree in Rust.
    Redb,
    /// A log-structured merge tree in Rust.
    Fjall,
}

impl Embedded {
    /// All of them, in the order they are shown.
    pub const ALL: [Self; 5] = [
        Self::Library,
        Self::Sqlite,
        Self::Lmdb,
        Self::Redb,
        Self::Fjall,
    ];

    /// Its name in options and results.
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

    /// Its name for people.
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
