//! The transactions of the writers, and the rows that the tables must hold after them.
//!
//! Every writer has its own rows, so it always knows what they must be. Their ids lie among those of all other writers,
//! so all writers change the same pages. The seed determines the transactions.

use std::collections::{BTreeMap, BTreeSet};

use peregrine_harness::dice::Dice;

/// The table of rows that change.
pub const ROWS: &str = "crash_rows";

/// The table that gets one row for every committed transaction.
pub const COMMITS: &str = "crash_commits";

/// The most rows that each writer has.
const SLOTS: u32 = 400;

/// On average, one in this many transactions is rolled back deliberately.
const ROLLED_BACK: u32 = 10;

/// Returns the statements that create the tables.
#[must_use]
pub fn create_tables(engine: &str) -> [String; 2] {
    [
        format!(
            "CREATE TABLE {ROWS} (id int unsigned not null primary key, writer smallint unsigned not null, \
             version bigint unsigned not null, note varchar(250) not null, \
             key by_writer (writer, version)) ENGINE={engine}"
        ),
        format!(
            "CREATE TABLE {COMMITS} (writer smallint unsigned not null, number bigint unsigned not null, \
             changes int unsigned not null, primary key (writer, number)) ENGINE={engine}"
        ),
    ]
}

/// A row's contents without its id and writer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// The number of the transaction that wrote it.
    pub version: u64,
    /// Text of varied length that begins with the writer's and the transaction's number.
    pub note: String,
}

/// The contents of the tables for one writer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct State {
    /// Its rows by id.
    pub rows: BTreeMap<u32, Content>,
    /// Its committed transactions.
    pub commits: BTreeSet<u64>,
}

/// A transaction: its statements, and the state after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transaction {
    /// Its number, from 1 for each writer.
    pub number: u64,
    /// The statements between `BEGIN` and the end.
    pub statements: Vec<String>,
    /// Whether the transaction is to be committed; otherwise it is rolled back deliberately.
    pub commits: bool,
    /// The writer's state after the commit.
    pub after: State,
}

/// Generates a writer's transactions.
#[derive(Debug)]
pub struct Author {
    writer: u32,
    writers: u32,
    dice: Dice,
    number: u64,
}

impl Author {
    /// Creates the author for one of `writers` writers; `round` gives it other random numbers after each kill.
    #[must_use]
    pub fn new(seed: u64, round: u32, writer: u32, writers: u32, number: u64) -> Self {
        Self {
            writer,
            writers,
            dice: Dice::new(seed, (u64::from(round) << 32) | u64::from(writer)),
            number,
        }
    }

    /// Returns the next transaction on top of `state`.
    pub fn next(&mut self, state: &State) -> Transaction {
        self.number += 1;
        let mut after = state.clone();
        let mut statements = Vec::new();
        let count = 1 + self.dice.below(3);
        for _ in 0..count {
            let statement = match self.dice.below(5) {
                0 | 1 => self.insert(&mut after),
                2 | 3 => self.update(&mut after),
                _ => self.delete(&mut after),
            };
            statements.extend(statement);
        }
        after.commits.insert(self.number);
        statements.push(format!(
            "INSERT INTO {COMMITS} VALUES ({}, {}, {})",
            self.writer,
            self.number,
            statements.len()
        ));
        Transaction {
            number: self.number,
            statements,
            commits: self.dice.below(ROLLED_BACK) != 0,
            after,
        }
    }

    fn insert(&mut self, state: &mut State) -> Option<String> {
        let ids = self.draw(|id| !state.rows.contains_key(&id));
        let mut values = Vec::new();
        for id in ids {
            let content = self.content();
            values.push(format!(
                "({id}, {}, {}, '{}')",
                self.writer, content.version, content.note
            ));
            state.rows.insert(id, content);
        }
        (!values.is_empty()).then(|| format!("INSERT INTO {ROWS} VALUES {}", values.join(", ")))
    }

    fn update(&mut self, state: &mut State) -> Option<String> {
        let ids = self.draw(|id| state.rows.contains_key(&id));
        let content = self.content();
        for id in &ids {
            state.rows.insert(*id, content.clone());
        }
        (!ids.is_empty()).then(|| {
            format!(
                "UPDATE {ROWS} SET version = {}, note = '{}' WHERE id IN ({})",
                content.version,
                content.note,
                listed(&ids)
            )
        })
    }

    fn delete(&mut self, state: &mut State) -> Option<String> {
        let ids = self.draw(|id| state.rows.contains_key(&id));
        for id in &ids {
            state.rows.remove(id);
        }
        (!ids.is_empty()).then(|| format!("DELETE FROM {ROWS} WHERE id IN ({})", listed(&ids)))
    }

    /// Draws up to five different ids of this writer for which `wanted` is true.
    fn draw(&mut self, wanted: impl Fn(u32) -> bool) -> BTreeSet<u32> {
        let tries = 1 + self.dice.below(5);
        (0..tries)
            .map(|_| self.dice.below(SLOTS) * self.writers + self.writer + 1)
            .filter(|id| wanted(*id))
            .collect()
    }

    fn content(&mut self) -> Content {
        let length = self.dice.below(200) as usize;
        let mut note = format!("{}-{}-", self.writer, self.number);
        let letter = char::from(b'a' + u8::try_from(self.dice.below(26)).unwrap_or(0));
        note.extend(std::iter::repeat_n(letter, length));
        Content {
            version: self.number,
            note,
        }
    }
}

fn listed(ids: &BTreeSet<u32>) -> String {
    let ids: Vec<String> = ids.iter().map(u32::to_string).collect();
    ids.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transactions_follow_from_the_seed_and_stay_among_their_writers_rows() {
        let mut state = State::default();
        let (mut one, mut two) = (Author::new(1, 2, 3, 16, 0), Author::new(1, 2, 3, 16, 0));
        let mut kinds = BTreeSet::new();
        for number in 1..=300 {
            let transaction = one.next(&state);
            assert_eq!(transaction, two.next(&state));
            assert_eq!(transaction.number, number);
            assert!(transaction.after.commits.contains(&number));
            for id in transaction.after.rows.keys() {
                assert_eq!((id - 1) % 16, 3);
            }
            for statement in &transaction.statements {
                kinds.insert(statement.split(' ').next().unwrap_or_default().to_owned());
            }
            if transaction.commits {
                state = transaction.after;
            }
        }
        assert_eq!(kinds.len(), 3, "{kinds:?}");
        assert!(state.commits.len() < 300, "some are rolled back");
        assert!(state.commits.len() > 200);
    }
}
