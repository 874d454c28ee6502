//! Writing rows: insert, update and delete.
#![forbid(unsafe_code)]

mod row;
