//! The work of the memory test's sessions, and the checks of their answers.
//!
//! The sessions move money between accounts, so the sum over all accounts is constant. Each long value has its checksum
//! in the same row. The session of the large transaction knows how many rows there must be.

use std::fmt;
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;

use peregrine_harness::dice::Dice;

/// The schema.
pub const SCHEMA: &str = "memory";

/// The initial amount of an account.
const BEGIN: u64 = 1_000;

/// The number of long values at a time.
const VALUES: u32 = 16;

/// The maximum length of a long value, in repetitions of 32 bytes (4 MiB).
const LONGEST: u32 = 4 << 20 >> 5;

/// The sizes of the test's data.
#[derive(Debug, Clone, Copy)]
pub struct Sizes {
    /// The number of accounts; each takes about 250 bytes with its index entries.
    pub accounts: u32,
    /// The number of rows of the large transaction.
    pub large: u32,
}

impl Sizes {
    /// Returns sizes for data of about four times the cache.
    #[must_use]
    pub fn for_cache(bytes: u64) -> Self {
        let accounts = u32::try_from(bytes / 60).unwrap_or(u32::MAX);
        Self {
            accounts,
            large: (accounts / 4).max(1_000),
        }
    }

    fn all_money(self) -> u64 {
        u64::from(self.accounts) * BEGIN
    }

    /// Returns the statements that create and fill the tables.
    #[must_use]
    pub fn tables(self) -> Vec<String> {
        let accounts = self.accounts;
        vec![
            format!("CREATE DATABASE {SCHEMA}"),
            format!("USE {SCHEMA}"),
            "CREATE TABLE accounts (id int unsigned primary key, n bigint not null, pad varchar(160) not null, \
             k int unsigned not null, key by_k (k)) ENGINE=Peregrine"
                .to_owned(),
            format!(
                "INSERT INTO accounts SELECT seq, {BEGIN}, concat(md5(seq), md5(-seq), md5(seq / 7), md5(seq / 3)), \
                 crc32(seq) FROM seq_1_to_{accounts}"
            ),
            "CREATE TABLE long_values (id int unsigned primary key, length int unsigned not null, \
             crc int unsigned not null, v longblob not null) ENGINE=Peregrine"
                .to_owned(),
            "CREATE TABLE large (id int unsigned primary key, k int unsigned not null, pad varchar(60) not null, \
             key by_k (k)) ENGINE=Peregrine"
                .to_owned(),
        ]
    }
}

/// The work that a session repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Reads accounts by key and moves money.
    Points,
    /// Writes, reads and deletes values of up to 4 MiB.
    LongValues,
    /// Sorts all accounts and scans them by each index.
    Sorts,
    /// Inserts and updates many rows in a transaction, commits or rolls back, and locks them.
    Large,
    /// Copies a part of the accounts, alters the copy and drops it.
    Definitions,
    /// Holds a snapshot.
    Snapshot,
}

impl Role {
    /// The roles of the sessions.
    pub const SESSIONS: [Role; 8] = [
        Role::Points,
        Role::Points,
        Role::Points,
        Role::LongValues,
        Role::Sorts,
        Role::Large,
        Role::Definitions,
        Role::Snapshot,
    ];
}

/// The reason for which a round ended.
#[derive(Debug)]
pub enum Trouble {
    /// An error of the server.
    Sql(mysql::Error),
    /// A wrong answer.
    Wrong(String),
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Sql(error) => write!(f, "{error}"),
            Trouble::Wrong(what) => write!(f, "{what}"),
        }
    }
}

impl From<mysql::Error> for Trouble {
    fn from(error: mysql::Error) -> Self {
        Trouble::Sql(error)
    }
}

/// One session.
#[derive(Debug)]
pub struct Session {
    /// Its connection.
    pub connection: mysql::Conn,
    /// Its role.
    pub role: Role,
    /// Its random numbers.
    pub dice: Dice,
    /// The sizes of the data.
    pub sizes: Sizes,
    /// The number of statements so far.
    pub statements: u64,
    /// The time for which a snapshot is held, in seconds.
    pub hold_s: f64,
}

impl Session {
    fn run(&mut self, statement: &str) -> Result<(), Trouble> {
        self.statements += 1;
        Ok(self.connection.query_drop(statement)?)
    }

    fn ask<T: mysql::prelude::FromRow>(&mut self, statement: &str) -> Result<T, Trouble> {
        self.statements += 1;
        self.connection
            .query_first(statement)?
            .ok_or_else(|| Trouble::Wrong(format!("no answer to {statement}")))
    }

    fn expect(&mut self, statement: &str, expected: (u64, u64)) -> Result<(), Trouble> {
        let found: (u64, u64) = self.ask(statement)?;
        if found == expected {
            return Ok(());
        }
        Err(Trouble::Wrong(format!(
            "{statement}: {found:?} instead of {expected:?}"
        )))
    }

    /// The number of all accounts, and all money.
    fn all(&self) -> (u64, u64) {
        (self.sizes.accounts.into(), self.sizes.all_money())
    }

    /// Runs one round.
    ///
    /// After an error the caller must roll back.
    ///
    /// # Errors
    /// [`Trouble`].
    pub fn round(&mut self, stop: &dyn Fn() -> bool) -> Result<(), Trouble> {
        match self.role {
            Role::Points => self.points(),
            Role::LongValues => self.long_values(),
            Role::Sorts => self.sorts(stop),
            Role::Large => self.large(),
            Role::Definitions => self.definitions(),
            Role::Snapshot => self.snapshot(stop),
        }
    }

    fn account(&mut self) -> u32 {
        1 + self.dice.below(self.sizes.accounts)
    }

    fn points(&mut self) -> Result<(), Trouble> {
        for _ in 0..4 {
            let id = self.account();
            let statement = format!("SELECT crc32(id) = k FROM accounts WHERE id = {id}");
            if !self.ask::<bool>(&statement)? {
                return Err(Trouble::Wrong(statement));
            }
        }
        let (a, b) = (self.account(), self.account());
        self.run("BEGIN")?;
        self.run(&format!("UPDATE accounts SET n = n - 1 WHERE id = {a}"))?;
        self.run(&format!("UPDATE accounts SET n = n + 1 WHERE id = {b}"))?;
        self.run("COMMIT")
    }

    fn long_values(&mut self) -> Result<(), Trouble> {
        let id = self.dice.below(VALUES);
        let times = 1 + self.dice.below(LONGEST);
        let seed = self.dice.below(u32::MAX);
        match self.dice.below(4) {
            0 => self.run(&format!("DELETE FROM long_values WHERE id = {id}"))?,
            1 => self.run(&format!(
                "UPDATE long_values SET v = concat(v, 'x'), length = length + 1, crc = crc32(v) WHERE id = {id}"
            ))?,
            _ => self.run(&format!(
                "REPLACE INTO long_values SELECT {id}, length(v), crc32(v), v FROM \
                 (SELECT repeat(md5({seed}), {times}) v) made"
            ))?,
        }
        self.check_values()
    }

    /// Checks that every value matches its length and checksum.
    fn check_values(&mut self) -> Result<(), Trouble> {
        self.expect(
            "SELECT count(*), 0 FROM long_values WHERE length(v) <> length OR crc32(v) <> crc",
            (0, 0),
        )
    }

    fn sorts(&mut self, stop: &dyn Fn() -> bool) -> Result<(), Trouble> {
        let all = self.all();
        for statement in [
            "SELECT count(*), cast(sum(n) AS unsigned) FROM accounts",
            "SELECT count(*), cast(sum(n) AS unsigned) FROM \
             (SELECT n, pad FROM accounts ORDER BY pad LIMIT 4000000000) sorted",
            "SELECT count(*), cast(sum(n) AS unsigned) FROM accounts FORCE INDEX (by_k) WHERE k >= 0",
        ] {
            if stop() {
                break;
            }
            self.expect(statement, all)?;
        }
        Ok(())
    }

    fn large(&mut self) -> Result<(), Trouble> {
        let rows = self.sizes.large;
        let commits = self.dice.below(2) == 0;
        self.run("DELETE FROM large")?;
        self.run("BEGIN")?;
        self.run(&format!(
            "INSERT INTO large SELECT seq, crc32(seq), md5(seq) FROM seq_1_to_{rows}"
        ))?;
        self.run("UPDATE large SET pad = concat(pad, '!') WHERE id % 3 = 0")?;
        self.run(if commits { "COMMIT" } else { "ROLLBACK" })?;
        let there = if commits { u64::from(rows) } else { 0 };
        self.expect("SELECT count(*), 0 FROM large", (there, 0))?;
        self.run("BEGIN")?;
        // Locks rows without changing them, because these locks need memory of their own.
        let locked: Result<(), Trouble> =
            self.expect("SELECT count(*), 0 FROM large FOR UPDATE", (there, 0));
        self.run("ROLLBACK")?;
        locked
    }

    fn definitions(&mut self) -> Result<(), Trouble> {
        let part = 1 + self.dice.below(self.sizes.accounts / 4);
        self.run("DROP TABLE IF EXISTS copied")?;
        self.run(&format!(
            "CREATE TABLE copied (PRIMARY KEY (id)) ENGINE=Peregrine SELECT * FROM accounts WHERE id <= {part}"
        ))?;
        self.run("ALTER TABLE copied ADD COLUMN more varchar(20) NOT NULL DEFAULT 'more'")?;
        self.run("ALTER TABLE copied ADD KEY by_pad (pad)")?;
        self.expect(
            "SELECT count(*), count(DISTINCT pad) > 0 FROM copied FORCE INDEX (by_pad) WHERE pad >= ''",
            (part.into(), 1),
        )?;
        self.run("TRUNCATE TABLE copied")?;
        self.run("DROP TABLE copied")
    }

    fn snapshot(&mut self, stop: &dyn Fn() -> bool) -> Result<(), Trouble> {
        let all = self.all();
        self.run("START TRANSACTION WITH CONSISTENT SNAPSHOT")?;
        let statement =
            "SELECT cast(sum(n * id) AS unsigned), cast(sum(n) AS unsigned) FROM accounts";
        let before: (u64, u64) = self.ask(statement)?;
        let until = Instant::now() + Duration::from_secs_f64(self.hold_s);
        while Instant::now() < until && !stop() {
            std::thread::sleep(Duration::from_millis(50));
        }
        self.expect(statement, (before.0, all.1))?;
        self.run("COMMIT")
    }

    /// Checks the tables at the end.
    ///
    /// # Errors
    /// [`Trouble`].
    pub fn final_look(&mut self) -> Result<(), Trouble> {
        let all = self.all();
        self.expect(
            "SELECT count(*), cast(sum(n) AS unsigned) FROM accounts",
            all,
        )?;
        self.check_values()?;
        for table in ["accounts", "long_values", "large"] {
            let rows: Vec<(String, String, String, String)> =
                self.connection.query(format!("CHECK TABLE {table}"))?;
            if let Some(bad) = rows.iter().find(|row| row.3 != "OK") {
                return Err(Trouble::Wrong(format!("CHECK TABLE {table}: {}", bad.3)));
            }
        }
        Ok(())
    }
}
