//! The database that is damaged: three tables, and what must be in them.

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
use crate::error::Result;

/// A row.
pub type Row = Vec<OwnedValue>;
/// Rows by their first column.
pub type Rows = BTreeMap<u64, Row>;
/// Rows by table.
pub type Content = BTreeMap<&'static str, Rows>;

/// The tables, in the order in which they are created: so the trees of each are known by number.
pub const TABLES: [&str; 3] = ["letters", "numbers", "heap"];
/// The trees of each: clustered, then indexes, then large values.
pub const TREES: [&[Tree]; 3] = [
    &[Tree::Clustered, Tree::Index, Tree::Large],
    &[Tree::Clustered, Tree::Index],
    &[Tree::Clustered],
];
/// The number of the first of these trees.
pub const FIRST_TREE: u32 = 16;
/// The number of the catalog's tree.
pub const CATALOG: u32 = 1;

/// What a tree is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tree {
    /// Rows.
    Clustered,
    /// Entries of a secondary index.
    Index,
    /// Large values.
    Large,
}

/// The table (a place in [`TABLES`]) and the use of a tree.
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

/// Databases before and after a crash.
pub struct World {
    /// Closed in order, earlier: what stands where later writes got lost.
    pub older: Disk,
    /// Crashed: transactions were running at its last checkpoint, and others committed after it.
    pub crashed: Disk,
    /// What was committed when it crashed.
    pub content: Content,
    /// What each row ever was.
    pub ever: BTreeMap<&'static str, BTreeMap<u64, Vec<Row>>>,
    /// How many rows of each table running transactions had changed at the last checkpoint.
    pub in_flight: usize,
}

impl World {
    /// Whether a row was ever committed so.
    #[must_use]
    pub fn was(&self, table: &str, id: u64, row: &Row) -> bool {
        let versions = self.ever.get(table).and_then(|rows| rows.get(&id));
        versions.is_some_and(|versions| versions.contains(row))
    }
}

/// The database's directory on the disks.
#[must_use]
pub fn dir() -> &'static Path {
    Path::new("/database")
}

/// How the databases are opened.
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
    /// The last number given to a row that was inserted later.
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

    /// Changes rows of every table in a transaction that is left open. Transactions of two parts
    /// never meet in a row.
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
                    // Rows of a heap have no key by which they could be found again.
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

/// Table, row, and what the row is now, if it is.
type Changes = Vec<(&'static str, u64, Option<Row>)>;

fn borrowed(row: &[OwnedValue]) -> Vec<Value<'_>> {
    row.iter().map(OwnedValue::as_value).collect()
}

/// Makes the database, works on it, and crashes it.
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
            // Not in order, so that pages split as they do in life.
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
    // One transaction goes on over the checkpoint and the crash, one commits between the two.
    let in_flight = 200;
    let (running, _) = maker.change(&db, in_flight, 1)?;
    let (late, changes) = maker.change(&db, 100, 2)?;
    db.checkpoint()?;
    maker.commit(late, changes)?;
    for _ in 0..30 {
        let (txn, changes) = maker.change(&db, 20, 3)?;
        maker.commit(txn, changes)?;
    }
    // As a log is that has rested for seconds: in one that was being written to, what is bad in the
    // last write can't be told from a write that was torn.
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

/// Reads a table through a cursor over an index; with the error at which that ended, if it did.
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
