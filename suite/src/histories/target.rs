//! What histories are run against.

use super::history::{Group, Key, Keys, Predicate, Version};
use crate::error::Result;

/// Why an operation did not come to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    /// The target gave the transaction up (deadlock, conflict, lock wait): it must be rolled back.
    Refused,
    /// The target is gone.
    Gone,
    /// Something that no isolation level allows, such as a duplicate of a row that was locked.
    Wrong(String),
}

/// The result of an operation.
pub type Done<T> = std::result::Result<T, Trouble>;

/// One session. Keys are numbers within the window.
pub trait Session: Send {
    /// Begins a transaction.
    ///
    /// # Errors
    /// See [`Trouble`], here and below.
    fn begin(&mut self) -> Done<()>;
    /// Reads a register, with an exclusive lock if asked to.
    fn read(&mut self, key: Key, lock: bool) -> Done<Version>;
    /// Overwrites a register; returns what stood there. `blind` writes without locking the row in a
    /// step of its own.
    fn write(&mut self, key: Key, version: Version, blind: bool) -> Done<Version>;
    /// Reads a list.
    fn read_list(&mut self, key: Key) -> Done<Vec<Version>>;
    /// Appends to a list; returns what stood in it.
    fn append(&mut self, key: Key, version: Version) -> Done<Vec<Version>>;
    /// Puts a place's row into a group, or removes it; returns the version that stood there.
    fn place(&mut self, key: Key, version: Version, state: Option<Group>) -> Done<Version>;
    /// The version of a place, whether its row is there or not.
    fn read_place(&mut self, key: Key) -> Done<Version>;
    /// Reads the rows that a predicate asks for.
    fn scan(&mut self, predicate: Predicate) -> Done<Vec<(Key, Version)>>;
    /// Commits.
    fn commit(&mut self) -> Done<()>;
    /// Rolls back.
    fn rollback(&mut self) -> Done<()>;
}

/// Something that transactions can be run on.
pub trait Target {
    /// Makes the keys of a window ready.
    ///
    /// # Errors
    /// When the target refuses.
    fn prepare(&mut self, window: u32, keys: Keys) -> Result<()>;
    /// Opens a session for a window's keys.
    ///
    /// # Errors
    /// When the target refuses.
    fn session(&self, window: u32) -> Result<Box<dyn Session>>;
    /// Ends the target as a crash would, while sessions work; they then meet [`Trouble::Gone`].
    ///
    /// # Errors
    /// When it can't be ended.
    fn crash(&mut self) -> Result<()>;
    /// Makes it usable again after a crash, when no session works any more.
    ///
    /// # Errors
    /// When it does not recover.
    fn recover(&mut self) -> Result<()>;
    /// Waits for locks and other conflicts so far, as far as the target tells.
    fn conflicts(&self) -> Option<u64>;
}
