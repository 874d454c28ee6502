//! The rows that the killed process writes: their table, their right values, and a transaction's changes as a line of
//! text.

use std::collections::BTreeMap;

use peregrine::{
    Column, ColumnType, Database, Error, Index, Key, Options, Result, Table, TableSchema, Value,
};

/// The table's name.
pub const TABLE: &str = "t";
/// The number of the table's indexes, with the primary key.
pub const INDEXES: usize = 3;
/// The number of ids of all threads together.
pub const IDS: u32 = 400;

/// Maps an id to the token that determines the row.
pub type Rows = BTreeMap<u64, u64>;

/// Returns the database's options: small, so that pages are evicted and crashes hit checkpoints.
#[must_use]
pub fn options() -> Options {
    Options {
        pool_bytes: 1 << 20,
        log_bytes: 1 << 20,
        ..Options::default()
    }
}

/// Opens the table, or creates it.
///
/// # Errors
/// Those of the engine.
pub fn table(db: &Database) -> Result<std::sync::Arc<Table>> {
    match db.table(TABLE) {
        Err(Error::NotFound { .. }) => db.create_table(TABLE, &schema()),
        other => other,
    }
}

fn schema() -> TableSchema {
    let int = ColumnType::Int {
        bytes: 8,
        signed: false,
    };
    TableSchema {
        columns: vec![
            Column::new("id", int),
            Column::new("token", int),
            Column::new("group", int),
            Column::new("text", ColumnType::Large { max: 1 << 20 }),
        ],
        primary: Some(Key::new(&[0])),
        indexes: vec![
            Index::new("token", &[1]).unique(),
            Index::new("group", &[2]),
        ],
        user: vec![],
    }
}

/// Returns the group that the token determines.
#[must_use]
pub fn group(token: u64) -> u64 {
    token % 7
}

/// Returns the text that the token determines; some texts are long enough to be stored outside the row.
#[must_use]
pub fn text(token: u64) -> Vec<u8> {
    let len = match token % 16 {
        0 => 9_000,
        n => n as usize * 10,
    };
    token.to_le_bytes().into_iter().cycle().take(len).collect()
}

/// Returns a row's values; `text` is the text of its token.
#[must_use]
pub fn values(id: u64, token: u64, text: &[u8]) -> [Value<'_>; 4] {
    [
        Value::UInt(id),
        Value::UInt(token),
        Value::UInt(group(token)),
        Value::Bytes(text),
    ]
}

/// Returns a row's primary key.
///
/// # Errors
/// Those of the engine.
pub fn key(table: &Table, id: u64) -> Result<Vec<u8>> {
    table.encode_key(0, &[Value::UInt(id)])
}

/// A transaction's change of one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// The row exists, with this token.
    Put(u64, u64),
    /// The row is gone.
    Delete(u64),
}

impl Change {
    /// Returns the change as a word of a line.
    #[must_use]
    pub fn word(self) -> String {
        match self {
            Change::Put(id, token) => format!(" {id}:{token}"),
            Change::Delete(id) => format!(" -{id}"),
        }
    }

    fn parse(word: &str) -> Option<Change> {
        if let Some(id) = word.strip_prefix('-') {
            return Some(Change::Delete(id.parse().ok()?));
        }
        let (id, token) = word.split_once(':')?;
        Some(Change::Put(id.parse().ok()?, token.parse().ok()?))
    }

    /// Applies the change to the known rows.
    pub fn apply(self, rows: &mut Rows) {
        match self {
            Change::Put(id, token) => rows.insert(id, token),
            Change::Delete(id) => rows.remove(&id),
        };
    }
}

/// A line of the writing process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// This thread begins to commit these changes.
    Begins(usize, Vec<Change>),
    /// This thread's commit is acknowledged.
    Acknowledged(usize),
    /// An error that ends the process, which only a kill should end, or an error that the engine reports.
    Wrong(String),
}

impl Line {
    /// Returns the line as the pipe carries it, with its end.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Line::Begins(thread, changes) => {
                let words: String = changes.iter().map(|change| change.word()).collect();
                format!("B {thread}{words}\n")
            }
            Line::Acknowledged(thread) => format!("A {thread}\n"),
            Line::Wrong(what) => format!("W {}\n", what.replace('\n', "; ")),
        }
    }

    /// Parses a line without its end; returns `None` for a line of unknown form.
    #[must_use]
    pub fn parse(line: &str) -> Option<Line> {
        if let Some(what) = line.strip_prefix("W ") {
            return Some(Line::Wrong(what.to_owned()));
        }
        let mut words = line.split_whitespace();
        let kind = words.next()?;
        let thread = words.next()?.parse().ok()?;
        match kind {
            "B" => Some(Line::Begins(
                thread,
                words.map(Change::parse).collect::<Option<_>>()?,
            )),
            "A" => Some(Line::Acknowledged(thread)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn change() -> impl Strategy<Value = Change> {
        prop_oneof![
            (any::<u64>(), any::<u64>()).prop_map(|(id, token)| Change::Put(id, token)),
            any::<u64>().prop_map(Change::Delete),
        ]
    }

    proptest! {
        #[test]
        fn lines_come_through_the_pipe(thread in 0..99_usize, changes in prop::collection::vec(change(), 0..9)) {
            let wrong = Line::Wrong(format!("thread {thread} panicked"));
            for line in [Line::Begins(thread, changes), Line::Acknowledged(thread), wrong] {
                prop_assert_eq!(Line::parse(line.text().trim_end()), Some(line));
            }
        }
    }

    #[test]
    fn what_is_no_line_is_refused() {
        for line in ["", "A", "B x", "C 1", "B 1 2", "B 1 -x", "A one"] {
            assert_eq!(Line::parse(line), None, "{line:?}");
        }
    }
}
