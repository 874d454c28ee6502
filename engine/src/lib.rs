//! Peregrine: an embeddable transactional storage engine.
#![warn(missing_docs)]

pub mod error;
pub mod ids;

pub use error::{Error, Result};
