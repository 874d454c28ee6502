//! The interface that an embedded store needs to be measured.

use std::path::Path;

use super::question::Question;
use crate::normal::generator::Row;
use peregrine_harness::engines::RowSink;
use peregrine_harness::error::{HarnessError, Result};

/// A store with table `normal`: primary key `id`, a unique index on `email`, an index on `country_id`,
/// `state_id`, `city`.
pub trait Store: Sync {
    /// Its name.
    fn title(&self) -> &'static str;

    /// Describes its use: durability, cache, how rows are read.
    fn settings(&self) -> String;

    /// The maximum size of its cache, in bytes, including the mapped part of its file; 0 if it has no cache of its own.
    fn cache_bytes(&self) -> u64;

    /// Returns whether a file of its directory, by its relative path, belongs to its log, whose size is a setting.
    fn is_log(&self, file: &Path) -> bool;

    /// Adds rows in one transaction, which is durable when this function returns.
    ///
    /// The rows' ids follow those of the last call.
    ///
    /// # Errors
    /// The store's errors.
    fn load(&mut self, rows: &[Row]) -> Result<()>;

    /// Does the work that its documentation recommends between loading and reading.
    ///
    /// # Errors
    /// The store's errors.
    fn settle(&mut self) -> Result<()>;

    /// Creates a reader for one thread.
    ///
    /// # Errors
    /// The store's errors.
    fn reader(&self) -> Result<Box<dyn StoreReader>>;
}

/// The reader of one thread.
///
/// It keeps statements and handles from call to call. Each call reads by a snapshot of its own, taken when the call
/// begins. A store is closed, and can be opened again, once its readers are dropped.
pub trait StoreReader: Send {
    /// Finds the rows with these ids one by one, and passes the bytes of their `name` to `see`, in the order of the
    /// ids.
    ///
    /// Skips rows that do not exist.
    ///
    /// # Errors
    /// The store's errors.
    fn names(&mut self, ids: &[u32], see: &mut dyn FnMut(&[u8])) -> Result<()>;

    /// Passes all bytes of every row to `see`, as the store has them: a row at a time or a column at a time.
    ///
    /// # Errors
    /// The store's errors.
    fn scan(&mut self, see: &mut dyn FnMut(&[u8])) -> Result<()>;

    /// Reads in the same way as [`StoreReader::scan`], and also decodes each row.
    ///
    /// # Errors
    /// The store's errors.
    fn rows(&mut self, see: &mut dyn FnMut(&[u8]), row: &mut dyn FnMut(&Row)) -> Result<()>;

    /// Counts a country's rows by the index.
    ///
    /// # Errors
    /// The store's errors.
    fn of_country(&mut self, country: u16) -> Result<u64>;

    /// Returns the id of the row with this address, by the index.
    ///
    /// # Errors
    /// The store's errors.
    fn by_email(&mut self, email: &str) -> Result<Option<u32>>;

    /// Answers a query: passes every row of the answer, in any order.
    ///
    /// # Errors
    /// The store's errors.
    fn answer(&mut self, question: &Question, rows: &mut dyn RowSink) -> Result<()>;
}

/// Converts a store's error into one of the harness.
pub(super) fn failed(store: &str, error: impl std::fmt::Display) -> HarnessError {
    HarnessError::Server(format!("{store}: {error}"))
}
