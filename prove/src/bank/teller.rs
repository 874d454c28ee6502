//! A teller moves money; an auditor counts it.

use mysql::prelude::Queryable;

use peregrine_harness::dice::Dice;

/// Accounts in each of the schemas.
pub const ACCOUNTS: u32 = 50;

/// The schemas.
pub const SCHEMAS: [&str; 2] = ["bank_a", "bank_b"];

/// Each account's first balance.
pub const BEGIN: i64 = 1_000;

/// Rows that a transfer changes: two accounts and a book.
const CHANGED: u64 = 3;

/// The sum of all balances.
pub const ALL: i64 = BEGIN * ACCOUNTS as i64 * 2;

/// Errors that are no fault: deadlock, lock wait timeout, and a row changed since the snapshot.
///
/// The transaction is rolled back, and the teller makes another one.
const REFUSALS: [u16; 3] = [1213, 1205, 1020];

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attempt<T> {
    /// The transaction committed.
    Done(T),
    /// The server refused the transaction.
    Refused,
    /// The connection broke; `true` if COMMIT may have been sent.
    Gone(bool),
    /// An unexpected error.
    Failed(String),
}

/// Runs `work` in a transaction and commits it.
fn transaction<T>(
    connection: &mut mysql::Conn,
    work: impl FnOnce(&mut mysql::Conn) -> mysql::Result<T>,
) -> Attempt<T> {
    let done = connection
        .query_drop("BEGIN")
        .and_then(|()| work(connection));
    let (result, asked) = match done {
        Ok(value) => (connection.query_drop("COMMIT").map(|()| value), true),
        Err(error) => (Err(error), false),
    };
    match result {
        Ok(value) => Attempt::Done(value),
        Err(mysql::Error::MySqlError(error)) if matches!(error.code, 1053 | 1927) => {
            Attempt::Gone(asked)
        }
        Err(mysql::Error::MySqlError(error)) => match connection.query_drop("ROLLBACK") {
            Ok(()) if REFUSALS.contains(&error.code) => Attempt::Refused,
            Ok(()) => Attempt::Failed(error.to_string()),
            Err(_) => Attempt::Gone(asked),
        },
        Err(_) => Attempt::Gone(asked),
    }
}

/// Returns the statements that make the accounts and the tellers' books.
#[must_use]
pub fn tables(engine: &str, tellers: u32) -> Vec<String> {
    let mut statements = Vec::new();
    for schema in SCHEMAS {
        let rows: Vec<String> = (0..ACCOUNTS).map(|id| format!("({id}, {BEGIN})")).collect();
        statements.push(format!("CREATE DATABASE {schema}"));
        statements.push(format!(
            "CREATE TABLE {schema}.accounts (id int unsigned primary key, balance bigint not null) ENGINE={engine}"
        ));
        statements.push(format!(
            "INSERT INTO {schema}.accounts VALUES {}",
            rows.join(", ")
        ));
    }
    let rows: Vec<String> = (0..tellers)
        .map(|teller| format!("({teller}, 0)"))
        .collect();
    statements.push(format!(
        "CREATE TABLE bank_a.books (teller int unsigned primary key, transfers bigint unsigned not null) ENGINE={engine}"
    ));
    statements.push(format!(
        "INSERT INTO bank_a.books VALUES {}",
        rows.join(", ")
    ));
    statements
}

/// Moves money once, as programs do: reads both balances, computes, writes both.
///
/// The same transaction writes `number` into the teller's book.
pub fn transfer(
    connection: &mut mysql::Conn,
    dice: &mut Dice,
    teller: u32,
    number: u64,
) -> Attempt<()> {
    let account = |dice: &mut Dice| {
        let number = dice.below(ACCOUNTS * 2);
        (SCHEMAS[(number % 2) as usize], number / 2)
    };
    let from = account(dice);
    let mut to = account(dice);
    while to == from {
        to = account(dice);
    }
    let amount = i64::from(1 + dice.below(20));
    let done = transaction(connection, |connection| {
        let mut changed = 0;
        let mut change = |(schema, id): (&str, u32), by: i64| -> mysql::Result<String> {
            let balance: Option<i64> = connection.query_first(format!(
                "SELECT balance FROM {schema}.accounts WHERE id = {id}"
            ))?;
            // If the account is missing, the UPDATE changes no row, and the count of changed rows shows it.
            let new = balance.unwrap_or(0) + by;
            Ok(format!(
                "UPDATE {schema}.accounts SET balance = {new} WHERE id = {id}"
            ))
        };
        let take = change(from, -amount)?;
        let give = change(to, amount)?;
        let book = format!("UPDATE bank_a.books SET transfers = {number} WHERE teller = {teller}");
        for sql in [take, give, book] {
            connection.query_drop(sql)?;
            changed += connection.affected_rows();
        }
        Ok(changed)
    });
    match done {
        Attempt::Done(CHANGED) => Attempt::Done(()),
        Attempt::Done(other) => {
            Attempt::Failed(format!("a transfer changed {other} rows, not {CHANGED}"))
        }
        Attempt::Refused => Attempt::Refused,
        Attempt::Gone(asked) => Attempt::Gone(asked),
        Attempt::Failed(error) => Attempt::Failed(error),
    }
}

/// Sums all the money in one transaction, with one statement for each schema.
pub fn audit(connection: &mut mysql::Conn) -> Attempt<i64> {
    transaction(connection, |connection| {
        let mut sum = 0;
        for schema in SCHEMAS {
            let part: Option<i64> = connection.query_first(format!(
                "SELECT cast(sum(balance) AS signed) FROM {schema}.accounts"
            ))?;
            sum += part.unwrap_or(0);
        }
        Ok(sum)
    })
}
