//! What an embedded store must do to be measured.

use std::path::Path;

use super::question::Question;
use crate::engines::RowSink;
use crate::error::{Result, SuiteError};
use crate::normal::generator::Row;

/// A store with table `normal`: primary key `id`, a unique index on `email`, an index on `country_id`,
/// `state_id`, `city`.
pub trait Store: Sync {
    /// Its name.
    fn title(&self) -> &'static str;

    /// How it is used: durability, cache, how rows are read.
    fn settings(&self) -> String;

    /// How large its cache may become, in bytes, with whatever of its file it maps into memory; 0 where it has
    /// none of its own.
    fn cache_bytes(&self) -> u64;

    /// Whether a file of its directory, by its path within, is its log: how large that becomes is a setting.
    fn is_log(&self, file: &Path) -> bool;

    /// Adds rows, whose ids follow on those of the last call, in one transaction that is on disk when
    /// this returns.
    ///
    /// # Errors
    /// What the store says.
    fn load(&mut self, rows: &[Row]) -> Result<()>;

    /// What its documentation says to do after loading, before reading.
    ///
    /// # Errors
    /// What the store says.
    fn settle(&mut self) -> Result<()>;

    /// What one thread reads by.
    ///
    /// # Errors
    /// What the store says.
    fn reader(&self) -> Result<Box<dyn StoreReader>>;
}

/// One thread's means of reading. What can be kept from read to read (statements, handles) it keeps; each
/// call reads by one snapshot of its own, taken when the call begins. A store is gone, and can be opened again,
/// when its readers are.
pub trait StoreReader: Send {
    /// Finds the rows of these ids, each by itself, and gives the bytes of its `name`, in the order of
    /// the ids; nothing for a row that is not there.
    ///
    /// # Errors
    /// What the store says.
    fn names(&mut self, ids: &[u32], see: &mut dyn FnMut(&[u8])) -> Result<()>;

    /// Gives all bytes of every row, as the store has them: a row at once, or a column at once.
    ///
    /// # Errors
    /// What the store says.
    fn scan(&mut self, see: &mut dyn FnMut(&[u8])) -> Result<()>;

    /// As [`StoreReader::scan`], by the same way, and each row decoded besides.
    ///
    /// # Errors
    /// What the store says.
    fn rows(&mut self, see: &mut dyn FnMut(&[u8]), row: &mut dyn FnMut(&Row)) -> Result<()>;

    /// How many rows the index says a country has.
    ///
    /// # Errors
    /// What the store says.
    fn of_country(&mut self, country: u16) -> Result<u64>;

    /// The id of the row with this address, by the index.
    ///
    /// # Errors
    /// What the store says.
    fn by_email(&mut self, email: &str) -> Result<Option<u32>>;

    /// Answers a query: every row of the answer, in any order.
    ///
    /// # Errors
    /// What the store says.
    fn answer(&mut self, question: &Question, rows: &mut dyn RowSink) -> Result<()>;
}

/// An error of a store as one of the suite's.
pub(super) fn failed(store: &str, error: impl std::fmt::Display) -> SuiteError {
    SuiteError::Server(format!("{store}: {error}"))
}
