//! What must be in the database, and what a session must see of it.

pub mod ledger;
pub mod links;
pub(super) mod now;
pub mod reading;
pub(super) mod snapshots;
pub(super) mod whole;
