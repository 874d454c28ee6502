//! The targets of histories.

use super::history::{Group, Key, Keys, Predicate, Version};
use peregrine_harness::error::Result;

/// The reason for a failed operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    /// The target refused the operation (deadlock, conflict, lock wait), and the session must roll back.
    Refused,
    /// The target has crashed.
    Gone,
    /// The target did something that no isolation level allows, such as a duplicate of a locked row.
    Wrong(String),
}

/// The result of an operation.
pub type Done<T> = std::result::Result<T, Trouble>;

/// A session; keys are numbers within its window.
pub trait Session: Send {
    /// Begins a transaction.
    ///
    /// Begins a transaction.
    ///
    /// # Errors
    /// See [`Trouble`], here and below.
    fn begin(&mut self) -> Done<()>;
    /// Reads a register, with an exclusive lock if `lock` is true.
    fn read(&mut self, key: Key, lock: bool) -> Done<Version>;
    /// Overwrites a register, and returns the replaced version; `blind` omits the separate step that locks the row.
    fn write(&mut self, key: Key, version: Version, blind: bool) -> Done<Version>;
    /// Reads a list.
    fn read_list(&mut self, key: Key) -> Done<Vec<Version>>;
    /// Appends to a list, and returns the elements before it.
    fn append(&mut self, key: Key, version: Version) -> Done<Vec<Version>>;
    /// Puts a place's row into a group, or removes it, and returns the replaced version.
    fn place(&mut self, key: Key, version: Version, state: Option<Group>) -> Done<Version>;
    /// Returns the version of a place, whether its row exists or not.
    fn read_place(&mut self, key: Key) -> Done<Version>;
    /// Reads the rows that a predicate selects.
    fn scan(&mut self, predicate: Predicate) -> Done<Vec<(Key, Version)>>;
    /// Commits.
    fn commit(&mut self) -> Done<()>;
    /// Rolls back.
    fn rollback(&mut self) -> Done<()>;
}

/// A system that transactions can run on.
pub trait Target {
    /// Creates the keys of a window.
    ///
    /// # Errors
    /// When the target refuses.
    fn prepare(&mut self, window: u32, keys: Keys) -> Result<()>;
    /// Opens a session for a window's keys.
    ///
    /// # Errors
    /// When the target refuses.
    fn session(&self, window: u32) -> Result<Box<dyn Session>>;
    /// Ends the target as a crash would, while sessions work; they then get [`Trouble::Gone`].
    ///
    /// # Errors
    /// When the target can't be ended.
    fn crash(&mut self) -> Result<()>;
    /// Makes the target usable again after a crash, after all sessions have ended.
    ///
    /// # Errors
    /// When it does not recover.
    fn recover(&mut self) -> Result<()>;
    /// Returns the number of lock waits and other conflicts so far, if the target reports them.
    fn conflicts(&self) -> Option<u64>;
}
