//! Undo records, the streams of pages that they are appended to, and how these pages come back.
//!
//! - `record`, `stream`, `streams`: one record, one stream, all streams of a database;
//! - `prune_chain`, `pruning`: versions that no snapshot sees leave a chain; `purge_thread`: what the purge thread and who wakes it share;
//! - `committed`: the committed version of a record in files that nobody has recovered.
#![forbid(unsafe_code)]

mod committed;
pub(crate) mod prune_chain;
pub(crate) mod pruning;
pub(crate) mod purge_thread;
pub(crate) mod record;
pub(crate) mod stream;
pub(crate) mod streams;

pub(crate) use committed::committed_version;
