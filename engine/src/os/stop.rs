//! The flag that says that the engine has stopped for good.

use std::sync::OnceLock;

use crate::error::{Error, Result};

/// Set once, by the first failure that leaves the durable state unknown, or by closing. Checked before every write and
/// every acknowledgement.
///
/// A failed `fsync` is such a failure: the kernel may have dropped the dirty pages and report
/// success the next time, so it is never retried ("fsyncgate", PostgreSQL, 2018).
#[derive(Debug, Default)]
pub struct StopFlag(OnceLock<String>);

impl StopFlag {
    /// A flag that is not set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Stops the engine; the first reason stays.
    pub fn stop(&self, reason: impl Into<String>) -> Error {
        let reason = reason.into();
        if self.0.set(reason.clone()).is_ok() {
            tracing::error!("the engine stops: {reason}");
        }
        self.check().err().unwrap_or(Error::Stopped(reason))
    }

    /// Stops the engine because it is being closed: like [`StopFlag::stop`], but no failure.
    pub fn close(&self) {
        // If the engine has stopped before, that reason stays.
        let _ = self.0.set("the database was closed".into());
    }

    /// `Ok` while the engine runs.
    ///
    /// # Errors
    /// [`Error::Stopped`] with the first reason.
    pub fn check(&self) -> Result<()> {
        match self.0.get() {
            None => Ok(()),
            Some(reason) => Err(Error::Stopped(reason.clone())),
        }
    }

    /// Returns whether the engine has stopped.
    pub fn is_stopped(&self) -> bool {
        self.0.get().is_some()
    }
}
