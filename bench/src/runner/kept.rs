//! An engine's durability, and the size of its cache.

/// An engine's durability and cache size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// The durability that a commit promises.
    pub durability: String,
    /// The size of its cache, in bytes; 0 where that is unknown.
    pub cache_bytes: u64,
}
