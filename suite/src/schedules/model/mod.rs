//! The model of the database: the rows that must be in it, and those that a session must see.

pub mod ledger;
pub mod links;
pub(super) mod now;
pub mod reading;
pub(super) mod snapshots;
pub(super) mod whole;
