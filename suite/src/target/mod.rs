//! What a workload is run against: sessions that prepare one statement and execute it many times.
//!
//! The runner knows only the traits here; [`mariadb`] implements them over the client library, and
//! tests implement them with a fake that answers as they wish.

pub mod engine;
#[cfg(test)]
pub(crate) mod fake;
pub mod hosted;
pub mod mariadb;
pub mod placement;
pub mod settings;

use serde::{Deserialize, Serialize};

use crate::error::Result;
pub use engine::Engine;
pub use placement::Placement;

/// How statements travel to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// The whole statement as text each time; values come back as text.
    Text,
    /// Prepared once, executed with parameters; values come back in binary form.
    Prepared,
}

impl Protocol {
    /// Its name in options and results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Prepared => "prepared",
        }
    }
}

/// One value of a result row, as the protocol delivers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value<'a> {
    /// SQL NULL.
    Null,
    /// A string, or any value in the text protocol.
    Bytes(&'a [u8]),
    /// An integer in the binary protocol.
    Integer(u64),
    /// A date in the binary protocol: year, month, day.
    Date(u16, u8, u8),
    /// Anything else: no query of the suite asks for it.
    Other,
}

/// Takes the rows of an answer as they arrive. Every query of the suite has one column.
pub trait RowSink {
    /// The next row.
    fn row(&mut self, value: Value<'_>);
}

/// The most parameters a query of the suite has.
pub const MOST_PARAMETERS: usize = 3;

/// The parameters of one execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Parameters {
    values: [u32; MOST_PARAMETERS],
    count: usize,
}

impl Parameters {
    /// The values given; at most [`MOST_PARAMETERS`] are kept.
    #[must_use]
    pub fn new(given: &[u32]) -> Self {
        let mut all = Self::default();
        for (slot, value) in all.values.iter_mut().zip(given) {
            *slot = *value;
            all.count += 1;
        }
        all
    }

    /// The values.
    #[must_use]
    pub fn values(&self) -> &[u32] {
        &self.values[..self.count]
    }
}

/// One connection.
pub trait Session: Send {
    /// Makes ready to execute `statement` (with `?` for parameters) on the engine's table.
    ///
    /// # Errors
    /// When the target refuses it.
    fn prepare(&mut self, engine: Engine, protocol: Protocol, statement: &str) -> Result<()>;

    /// Executes the prepared statement and hands every row to `rows`.
    ///
    /// # Errors
    /// When the statement fails, or the connection.
    fn execute(&mut self, parameters: &Parameters, rows: &mut dyn RowSink) -> Result<()>;

    /// Keeps the target's thread for this session on these processors, where it has such a thread.
    ///
    /// # Errors
    /// When that can't be done.
    fn keep_on(&mut self, processors: &[usize]) -> Result<()>;
}

/// Something that sessions can be opened on.
pub trait Target: Sync {
    /// Opens a session.
    ///
    /// # Errors
    /// When it can't be had.
    fn connect(&self) -> Result<Box<dyn Session>>;
}
