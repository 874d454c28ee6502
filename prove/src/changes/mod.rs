//! Random changes of one session, each on tables of `InnoDB` and on the same tables of Peregrine.
//!
//! Errors, counts of changed rows, and the rows themselves must be the same.
//!
//! [`crate::statements`] compares plans of one engine, which may all read a row wrongly, or all lose a change. Here a
//! second engine says what is right. A statement must therefore have one right outcome, in whatever order an engine
//! reads the rows. Keys move by `ORDER BY`, a statement with a LIMIT has an order, and counters continue from a given
//! number.
//!
//! | file | holds |
//! |---|---|
//! | `tables.rs` | the tables: kinds of columns and keys, a partitioned one, a temporary one, one with triggers |
//! | `author.rs` | the generator of statements, in transactions of every kind |
//! | `compare.rs` | runs them on both engines and compares |

mod author;
mod compare;
mod tables;

pub use compare::{run, Outcome, Request};
