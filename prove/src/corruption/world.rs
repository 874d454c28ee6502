//! The database that the tests damage: three tables, and their expected rows.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use peregrine::{
    Column, ColumnType, Cursor, CursorOptions, Database, Index, Isolation, Key, Options,
    OwnedValue, Seek, Table, TableSchema, Transaction, Value,
};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

use super::disk::Disk;
use super::unexpected;
use peregrine_harness::error::Result;

/// A row.
pub type Row = Vec<OwnedValue>;
/// Rows by their first column.
pub type Rows = BTreeMap<u64, Row>;
/// Rows by table.
pub type Content = BTreeMap<&'static str, Rows>;

/// The tables, in the order of their creation, which determines the numbers of their trees.
pub const TABLES: [&str; 3] = ["letters", "numbers", "heap"];
/// The trees of each table: clustered, then indexes, then large values.
pub const TREES: [&[Tree]; 3] = [
    &[Tree::Clustered, Tree::Index, Tree::Large],
    &[Tree::Clustered, Tree::Index],
    &[Tree::Clustered],
];
/// The number of the first of these trees.
pub const FIRST_TREE: u32 = 16;
/// The number of the catalog's tree.
pub const CATALOG: u32 = 1;

/// The purpose of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tree {
    /// Rows.
    Clustered,
    /// Entries of a secondary index.
    Index,
    /// Large values.
    Large,
}

/// Returns the table (an index into [`TABLES`]) and the purpose of a tree.
#[must_use]
pub fn owner(tree: u32) -> Option<(usize, Tree)> {
    let mut left = tree.checked_sub(FIRST_TREE)? as usize;
    for (table, trees) in TREES.iter().enumerate() {
        match trees.get(left) {
            Some(&use_of) => return Some((table, use_of)),
            None => left -= trees.len(),
        }
    }
    None
}

/// A database as of before its crash and as of the crash.
pub struct World {
    /// A copy after an earlier clean close; its bytes are those that a lost write leaves.
    pub older: Disk,
    /// The disk at the crash; transactions were running at its last checkpoint, and others committed after it.
    pub crashed: Disk,
    /// The rows committed at the crash.
    pub content: Content,
    /// Every committed version of each row.
    pub ever: BTreeMap<&'static str, BTreeMap<u64, Vec<Row>>>,
    /// The most rows of each table that the transaction still open at the crash had changed.
    pub in_flight: usize,
}

impl World {
    /// Returns whether this version of a row was ever committed.
    #[must_use]
    pub fn was(&self, table: &str, id: u64, row: &Row) -> bool {
        let versions = self.ever.get(table).and_then(|rows| rows.get(&id));
        versions.is_some_and(|versions| versions.contains(row))
    }
}

/// Returns the database's directory on the disks.
#[must_use]
pub fn dir() -> &'static Path {
    Path::new("/database")
}

/// Returns the options of the databases.
#[must_use]
pub fn options() -> Options {
    Options {
        pool_bytes: 16 << 20,
        log_bytes: 8 << 20,
        checkpoint_interval: Duration::from_secs(3600),
        ..Options::default()
    }
}

fn schema(table: &str) -> TableSchema {
    let number = |bytes| ColumnType::Int {
        bytes,
        signed: false,
    };
    let id = Column::new("id", number(4));
    let columns = match table {
        "letters" => vec![
            id,
            Column::new("name", ColumnType::VarBytes { max: 300 }),
            Column::new("body", ColumnType::Large { max: 1 << 20 }).nullable(),
        ],
        "numbers" => vec![
            id,
            Column::new(
                "number",
                ColumnType::Int {
                    bytes: 8,
                    signed: true,
                },
            )
            .nullable(),
            Column::new("pad", ColumnType::VarBytes { max: 600 }),
        ],
        _ => vec![id, Column::new("pad", ColumnType::VarBytes { max: 600 })],
    };
    TableSchema {
        columns,
        primary: (table != "heap").then(|| Key::new(&[0])),
        indexes: match table {
            "letters" => vec![Index::new("by_name", &[1])],
            "numbers" => vec![Index::new("by_number", &[1])],
            _ => vec![],
        },
        user: vec![],
    }
}

struct Maker {
    random: ChaCha8Rng,
    content: Content,
    ever: BTreeMap<&'static str, BTreeMap<u64, Vec<Row>>>,
    /// The last id that [`Maker::change`] gave to a new row.
    next: u64,
}

impl Maker {
    fn bytes(&mut self, minimum: usize, most: usize) -> OwnedValue {
        let len = minimum + self.random.next_u32() as usize % (most - minimum + 1);
        let mut bytes = vec![0; len];
        self.random.fill_bytes(&mut bytes);
        OwnedValue::Bytes(bytes)
    }

    fn row(&mut self, table: &str, id: u64) -> Row {
        let id = OwnedValue::UInt(id);
        match table {
            "letters" => {
                let body = match self.random.next_u32() % 32 {
                    0 => self.bytes(5_000, 30_000),
                    1..=8 => OwnedValue::Null,
                    _ => self.bytes(0, 60),
                };
                vec![id, self.bytes(100, 300), body]
            }
            "numbers" => {
                let number = match self.random.next_u32() % 10 {
                    0 => OwnedValue::Null,
                    _ => OwnedValue::Int(i64::from(self.random.next_u32()) - (1 << 31)),
                };
                vec![id, number, self.bytes(200, 600)]
            }
            _ => vec![id, self.bytes(200, 600)],
        }
    }

    fn insert(
        &mut self,
        txn: &mut Transaction,
        table: &Arc<Table>,
        name: &'static str,
        id: u64,
    ) -> peregrine::Result<Row> {
        let row = self.row(name, id);
        txn.insert(table, &borrowed(&row))?;
        Ok(row)
    }

    /// Changes rows of every table in a transaction, and leaves it open.
    ///
    /// Transactions of different parts never change the same row.
    fn change(
        &mut self,
        db: &Database,
        rows: usize,
        part: u64,
    ) -> peregrine::Result<(Transaction, Changes)> {
        let mut txn = db.begin(Isolation::ReadCommitted);
        let mut changes = Changes::new();
        for name in TABLES {
            let table = db.table(name)?;
            let own = self.content[name].keys().filter(|id| *id % 4 == part);
            let mut left: Vec<u64> = own.copied().collect();
            for n in 0..rows {
                let take = self.random.next_u64() as usize % left.len().max(1);
                match n % 5 {
                    // A heap has no key to find its rows by, so they are only inserted.
                    1..=4 if name == "heap" || left.is_empty() => {}
                    1 => {
                        let id = left.swap_remove(take);
                        txn.delete(&table, &table.encode_key(0, &[Value::UInt(id)])?)?;
                        changes.push((name, id, None));
                    }
                    2..=4 => {
                        let id = left[take];
                        let row = self.row(name, id);
                        let key = table.encode_key(0, &[Value::UInt(id)])?;
                        txn.update(&table, &key, &borrowed(&row))?;
                        changes.push((name, id, Some(row)));
                    }
                    _ => {
                        self.next += 1;
                        let row = self.insert(&mut txn, &table, name, self.next)?;
                        changes.push((name, self.next, Some(row)));
                    }
                }
            }
        }
        Ok((txn, changes))
    }

    fn commit(&mut self, mut txn: Transaction, changes: Changes) -> peregrine::Result<()> {
        txn.commit()?;
        for (table, id, row) in changes {
            let rows = self.content.entry(table).or_default();
            if let Some(row) = &row {
                let ever = self.ever.entry(table).or_default();
                ever.entry(id).or_default().push(row.clone());
            }
            match row {
                Some(row) => rows.insert(id, row),
                None => rows.remove(&id),
            };
        }
        Ok(())
    }
}

/// Table, id, and the row after the change, or `None` for a deleted row.
type Changes = Vec<(&'static str, u64, Option<Row>)>;

fn borrowed(row: &[OwnedValue]) -> Vec<Value<'_>> {
    row.iter().map(OwnedValue::as_value).collect()
}

/// Creates the database, works on it, and copies it as a crash would leave it.
///
/// # Errors
/// Those of the engine.
pub fn make(seed: u64) -> Result<World> {
    made(seed).map_err(|error| unexpected(&error))
}

fn made(seed: u64) -> peregrine::Result<World> {
    let disk = Disk::new(seed);
    let mut maker = Maker {
        random: ChaCha8Rng::seed_from_u64(seed),
        content: Content::new(),
        ever: BTreeMap::new(),
        next: 1_000_000,
    };
    let db = Database::open_on(disk.os(), dir(), options())?;
    for (name, rows) in TABLES.into_iter().zip([14_000, 2_000, 1_000]) {
        let table = db.create_table(name, &schema(name))?;
        let mut txn = db.begin(Isolation::ReadCommitted);
        let mut made = Rows::new();
        for id in 1..=rows {
            // The ids are not in order, so pages split as in real use.
            let id = id * 7919 % (rows + 1);
            made.insert(id, maker.insert(&mut txn, &table, name, id)?);
        }
        txn.commit()?;
        let ever = made.iter().map(|(id, row)| (*id, vec![row.clone()]));
        maker.ever.insert(name, ever.collect());
        maker.content.insert(name, made);
    }
    db.close()?;
    let older = disk.copy();

    let db = Database::open_on(disk.os(), dir(), options())?;
    let (txn, changes) = maker.change(&db, 1500, 0)?;
    maker.commit(txn, changes)?;
    // One transaction stays open beyond the checkpoint and the crash; another one commits between the two.
    let in_flight = 200;
    let (running, _) = maker.change(&db, in_flight, 1)?;
    let (late, changes) = maker.change(&db, 100, 2)?;
    db.checkpoint()?;
    maker.commit(late, changes)?;
    for _ in 0..30 {
        let (txn, changes) = maker.change(&db, 20, 3)?;
        maker.commit(txn, changes)?;
    }
    // This is the state of a log after seconds without a write. In a log that is being written to, damage to the last
    // write can't be told from a torn write.
    db.sync_log()?;
    let crashed = disk.copy();
    drop(running);
    Ok(World {
        older,
        crashed,
        content: maker.content,
        ever: maker.ever,
        in_flight,
    })
}

/// Reads a table through a cursor over an index; returns the rows, and the error that ended the scan, if any.
pub fn read(db: &Database, name: &str, index: usize) -> (Rows, Option<peregrine::Error>) {
    let mut rows = Rows::new();
    let error = read_into(db, name, index, &mut rows).err();
    (rows, error)
}

fn read_into(db: &Database, name: &str, index: usize, rows: &mut Rows) -> peregrine::Result<()> {
    let table = db.table(name)?;
    let mut txn = db.begin(Isolation::RepeatableRead);
    let mut cursor = Cursor::new(&table, index, CursorOptions::default());
    let mut more = cursor.seek(&mut txn, &[], Seek::First)?;
    let columns = table.schema().columns.len();
    let mut large = Vec::new();
    while more {
        let view = cursor.row()?;
        let mut row = Row::with_capacity(columns);
        for column in 0..columns {
            row.push(match view.get(column)? {
                Value::OutOfRow(_) => {
                    view.get_large(column, &mut large)?;
                    OwnedValue::Bytes(std::mem::take(&mut large))
                }
                value => value.to_owned(),
            });
        }
        if let Some(OwnedValue::UInt(id)) = row.first() {
            rows.insert(*id, row);
        }
        more = cursor.next(&mut txn)?;
    }
    Ok(())
}
