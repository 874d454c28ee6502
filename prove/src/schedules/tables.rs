//! The tables of a schedule.

use crate::simulated::model::{Kind, Row};

/// The table in which every session has rows of its own.
pub const OWN: &str = "own";
/// The table of accounts, between which sessions move amounts.
pub const ACCOUNTS: &str = "accounts";
/// The table of the shared rows, which all sessions insert, change and delete.
pub const SHARED: &str = "shared";
/// The number of keys of the shared rows.
pub const SHARED_KEYS: u32 = 6;
/// The initial amount of an account.
pub const AMOUNT: u64 = 1_000;

/// The prefix of the names of tables of one session.
pub const OF_ONE_SESSION: &str = "of one session ";

/// The definition of the table of accounts; an account's amount is its group.
pub const ACCOUNTS_KIND: Kind = Kind {
    large: false,
    indexes: true,
};

/// The definition of the table of shared rows.
pub const SHARED_KIND: Kind = ACCOUNTS_KIND;

/// The row of an account.
#[must_use]
pub fn account(id: u64, amount: u64) -> Row {
    let amount = u32::try_from(amount).unwrap_or(u32::MAX);
    Row::new(ACCOUNTS_KIND, id, amount, id, 10, None)
}
