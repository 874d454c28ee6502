//! Writing rows: insert, update and delete.
//!
//! - `row`: the transaction's row operations, with retries after waits and values outside the row;
//! - `row/operation`: one operation inside the barrier: the clustered tree, the secondary trees, the log;
//! - `row/deferred`: bulk inserts, which insert index entries later, in the order of their keys;
//! - `row/fill`: the rows with which a table of one session is created, written without versions and without log.
#![forbid(unsafe_code)]

mod row;
