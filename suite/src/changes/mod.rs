//! Random changes of one session, each on tables of `InnoDB` and on the same tables of Peregrine: errors, numbers of
//! rows and the rows must be the same.
//!
//! [`crate::statements`] compares plans of one engine, which may all see a row wrongly, or all lose a change. Here a
//! second engine says what is right. So only that is asked for which has one right outcome, in whatever order an engine
//! comes upon the rows: keys move by `ORDER BY`, nothing is limited that has no order, counters go on from a number
//! that is given.
//!
//! | file | holds |
//! |---|---|
//! | `tables.rs` | the tables: kinds of columns and keys, a partitioned one, a temporary one, one with triggers |
//! | `author.rs` | who makes statements up, in transactions of every kind |
//! | `compare.rs` | running them on both, and comparing |

mod author;
mod compare;
mod tables;

pub use compare::{run, Outcome, Request};
