//! The model of the database: the rows that must be in it, and those that sessions have locked.

pub mod ledger;
pub mod links;
pub(super) mod now;
pub mod reading;
pub(super) mod whole;
