//! The model: the tables and rows that committed transactions left, kept beside the database.

use std::collections::BTreeMap;
use std::sync::Arc;

use peregrine::{Column, ColumnType, Index, Key, TableSchema, Value, Xid};

/// The column of the clustered key.
pub const ID: usize = 0;
/// The column of [`Row::group`].
pub const GROUP: usize = 1;
/// The column of [`Row::code`].
pub const CODE: usize = 2;
/// The column of [`Row::pad`].
pub const PAD: usize = 3;
/// The column of [`Row::large`], if there is one.
pub const LARGE: usize = 4;

/// The definition of a table, besides its clustered index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Whether it has a column of large values.
    pub large: bool,
    /// Whether it has an index of groups and a unique index of codes.
    pub indexes: bool,
}

impl Kind {
    /// Returns the table's definition.
    #[must_use]
    pub fn schema(self) -> TableSchema {
        let number = |name: &str, bytes| {
            let signed = false;
            Column::new(name, ColumnType::Int { bytes, signed })
        };
        let mut columns = vec![
            number("id", 8),
            number("grp", 4),
            number("code", 8),
            Column::new("pad", ColumnType::VarBytes { max: 3_800 }),
        ];
        if self.large {
            columns.push(Column::new("large", ColumnType::Large { max: 1 << 20 }).nullable());
        }
        let indexes = match self.indexes {
            true => vec![
                Index::new("by_group", &[GROUP]),
                Index::new("by_code", &[CODE]).unique(),
            ],
            false => Vec::new(),
        };
        TableSchema {
            columns,
            primary: Some(Key::new(&[ID])),
            indexes,
            user: Vec::new(),
        }
    }
}

/// A row without its key.
///
/// The row's bytes follow from these numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// A number that few rows share.
    pub group: u32,
    /// A number that no other row ever has; the padding bytes follow from it.
    pub code: u64,
    /// The number of padding bytes in the row.
    pub pad: u32,
    /// The large value, if there is one: the number from which its bytes follow, and its length.
    pub large: Option<(u64, u32)>,
    /// The row's fingerprint, from [`print()`].
    pub print: u64,
}

/// Returns `len` bytes: the first half is random, the rest compresses well.
fn bytes_of(code: u64, len: u32) -> Vec<u8> {
    let len = len as usize;
    let mut bytes = Vec::with_capacity(len + 8);
    let mut state = code;
    while bytes.len() < len / 2 {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bytes.extend_from_slice(&(z ^ (z >> 31)).to_le_bytes());
    }
    bytes.resize(len, (code >> 8) as u8);
    bytes
}

/// Returns a fingerprint: two different rows hardly ever have the same.
#[must_use]
pub fn print(id: u64, group: u64, code: u64, pad: &[u8], large: Option<&[u8]>) -> u64 {
    let mut hasher = xxhash_rust::xxh3::Xxh3::new();
    for number in [id, group, code, pad.len() as u64] {
        hasher.update(&number.to_le_bytes());
    }
    hasher.update(pad);
    if let Some(large) = large {
        hasher.update(&(large.len() as u64).to_le_bytes());
        hasher.update(large);
    }
    hasher.digest()
}

impl Row {
    /// Makes the row with these numbers, without a large value if `kind` has none.
    #[must_use]
    pub fn new(
        kind: Kind,
        id: u64,
        group: u32,
        code: u64,
        pad: u32,
        large: Option<(u64, u32)>,
    ) -> Row {
        let large = large.filter(|_| kind.large);
        let mut row = Row {
            group,
            code,
            pad,
            large,
            print: 0,
        };
        let (pad, large) = row.bytes();
        row.print = print(id, u64::from(group), code, &pad, large.as_deref());
        row
    }

    fn bytes(&self) -> (Vec<u8>, Option<Vec<u8>>) {
        let large = self.large.map(|(code, len)| bytes_of(!code, len));
        (bytes_of(self.code, self.pad), large)
    }

    /// Calls `f` with the values of the row's columns.
    ///
    /// With `keeps`, the large value is the one that the row has already.
    pub fn with_values<R>(
        &self,
        kind: Kind,
        id: u64,
        keeps: bool,
        f: impl FnOnce(&[Value<'_>]) -> R,
    ) -> R {
        let (pad, large) = self.bytes();
        let mut values = vec![
            Value::UInt(id),
            Value::UInt(u64::from(self.group)),
            Value::UInt(self.code),
            Value::Bytes(&pad),
        ];
        if kind.large {
            values.push(match &large {
                Some(large) if keeps => Value::OutOfRow(large.len() as u64),
                Some(large) => Value::Bytes(large),
                None => Value::Null,
            });
        }
        f(&values)
    }
}

/// A table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableState {
    /// Its definition.
    pub kind: Kind,
    /// Its rows, by their keys.
    pub rows: BTreeMap<u64, Row>,
    /// The minimum of the auto-increment counter.
    pub least_auto: u64,
}

impl TableState {
    /// An empty table.
    #[must_use]
    pub fn new(kind: Kind) -> TableState {
        TableState {
            kind,
            rows: BTreeMap::new(),
            least_auto: 1,
        }
    }
}

/// All tables by their names, after some commit, and the prepared transactions.
///
/// A copy shares the tables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// The tables.
    pub tables: BTreeMap<String, Arc<TableState>>,
    /// Transactions that are prepared and not decided, with the changes of each.
    pub prepared: BTreeMap<Xid, Arc<Changes>>,
}

/// The changes of a transaction so far, by table and key; `None` means that the row is deleted.
pub type Changes = BTreeMap<(String, u64), Option<Row>>;

impl State {
    /// Returns the state after a transaction's commit.
    #[must_use]
    pub fn after(&self, changes: &Changes) -> State {
        let mut state = self.clone();
        for ((table, id), row) in changes {
            let Some(table) = state.tables.get_mut(table) else {
                continue;
            };
            let table = Arc::make_mut(table);
            match row {
                Some(row) => table.rows.insert(*id, *row),
                None => table.rows.remove(id),
            };
        }
        state
    }

    /// The number of rows of all tables.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.tables.values().map(|table| table.rows.len()).sum()
    }
}
