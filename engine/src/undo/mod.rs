//! Undo records, the streams of pages to which they are appended, and how these pages become free.
//!
//! - `record`, `stream`, `streams`: one record, one stream, all streams of a database;
//! - `prune_chain`, `pruning`: removal of versions that no snapshot sees from a chain;
//! - `purge_thread`: the state that the purge thread shares with the threads that wake it;
//! - `committed`: the committed version of a record in files that no recovery has processed.
#![forbid(unsafe_code)]

mod committed;
pub(crate) mod prune_chain;
pub(crate) mod pruning;
pub(crate) mod purge_thread;
pub(crate) mod record;
pub(crate) mod stream;
pub(crate) mod streams;

pub(crate) use committed::committed_version;
