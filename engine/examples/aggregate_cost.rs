//! The cost of an aggregate over a whole table, compared with a loop over a cursor: the benchmark's table `normal`,
//! with rows of the same length.
//!
//! `cargo run --release -p peregrine --example aggregate_cost [ROWS] [POOL_MB] [ROUNDS]` prints the
//! least and the median time of each in turn.

use std::sync::Arc;
use std::time::{Duration, Instant};

use peregrine::{
    Aggregate, Aggregated, Column, ColumnType, Comparison, Condition, Cursor, CursorOptions,
    Database, Durability, IndexRange, Isolation, Key, Options, Result, Seek, Table, TableSchema,
    Transaction, Value,
};

/// Rows of a transaction while loading.
const BATCH: u64 = 1000;
const DOB: usize = 4;
/// In every leaf, half of all rows have a lower value.
const MIDDLE: u64 = 715_000;

/// Splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    fn text(&mut self, least: u64, most: u64) -> Vec<u8> {
        let len = least + self.below(most - least + 1);
        (0..len).map(|_| b'a' + self.below(26) as u8).collect()
    }
}

fn schema() -> TableSchema {
    let int = |bytes| ColumnType::Int {
        bytes,
        signed: false,
    };
    let text = |max| ColumnType::VarBytes { max };
    TableSchema {
        columns: vec![
            Column::new("id", int(4)),
            Column::new("name", text(64)),
            Column::new("email", text(64)),
            Column::new("password", text(64)),
            Column::new("dob", int(3)).nullable(),
            Column::new("address", text(128)),
            Column::new("city", text(64)),
            Column::new("state_id", int(1)),
            Column::new("zip", text(8)),
            Column::new("country_id", int(2)),
        ],
        primary: Some(Key::new(&[0])),
        indexes: vec![],
        user: vec![],
    }
}

fn load(db: &Database, table: &Table, rows: u64) -> Result<()> {
    let mut random = Random(1);
    let mut txn = db.begin(Isolation::RepeatableRead);
    for id in 1..=rows {
        let lengths = [(8, 30), (15, 37), (20, 40), (20, 60), (5, 20), (5, 8)];
        let texts = lengths.map(|(least, most)| random.text(least, most));
        let row = [
            Value::UInt(id),
            Value::Bytes(&texts[0]),
            Value::Bytes(&texts[1]),
            Value::Bytes(&texts[2]),
            Value::UInt(700_000 + random.below(30_000)),
            Value::Bytes(&texts[3]),
            Value::Bytes(&texts[4]),
            Value::UInt(random.below(50)),
            Value::Bytes(&texts[5]),
            Value::UInt(random.below(200)),
        ];
        txn.insert(table, &row)?;
        if id % BATCH == 0 {
            txn.commit()?;
        }
    }
    txn.commit()
}

/// Returns the least value of a column, row by row.
fn by_cursor(txn: &mut Transaction, table: &Arc<Table>) -> Result<u64> {
    let mut cursor = Cursor::new(table, 0, CursorOptions::default());
    let mut least = u64::MAX;
    let mut more = cursor.seek(txn, b"", Seek::First)?;
    while more {
        if let Value::UInt(dob) = cursor.row()?.get(DOB)? {
            least = least.min(dob);
        }
        more = cursor.next(txn)?;
    }
    Ok(least)
}

/// Returns the number of rows below the middle of a column's values, row by row.
fn count_by_cursor(txn: &mut Transaction, table: &Arc<Table>) -> Result<u64> {
    let mut cursor = Cursor::new(table, 0, CursorOptions::default());
    let mut count = 0;
    let mut more = cursor.seek(txn, b"", Seek::First)?;
    while more {
        if let Value::UInt(dob) = cursor.row()?.get(DOB)? {
            count += u64::from(dob < MIDDLE);
        }
        more = cursor.next(txn)?;
    }
    Ok(count)
}

/// A measured operation, with its name.
type Work<'a> = (
    &'a str,
    Box<dyn FnMut(&mut Transaction) -> Result<Duration> + 'a>,
);

fn timed<R>(work: impl FnOnce() -> Result<R>) -> Result<Duration> {
    let begun = Instant::now();
    work()?;
    Ok(begun.elapsed())
}

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1).map_while(|arg| arg.parse().ok());
    let rows: u64 = args.next().unwrap_or(1_000_000);
    let pool_mb = args.next().unwrap_or(1024) as usize;
    let rounds = args.next().unwrap_or(15);
    let dir = std::env::temp_dir().join(format!("peregrine-aggregate-{}", std::process::id()));
    let options = Options {
        pool_bytes: pool_mb << 20,
        durability: Durability::WriteAtCommit,
        scan_threads: 1,
        ..Options::default()
    };
    let db = Database::open(&dir, options)?;
    let table = db.create_table("normal", &schema())?;
    load(&db, &table, rows)?;
    db.checkpoint()?;
    println!(
        "{rows} rows, {} pages of 16 KiB",
        table.size_bytes()?.0 / 16384
    );

    let all = IndexRange::whole(0);
    let least = [Aggregate::Min(DOB)];
    let half = [Condition::Compare(
        DOB,
        Comparison::Less,
        Value::UInt(MIDDLE),
    )];
    let counted = |txn: &mut Transaction, threads| {
        db.set_scan_threads(threads)?;
        let took = timed(|| txn.aggregate(&table, &all, &half, &[Aggregate::Rows]));
        db.set_scan_threads(1)?;
        took
    };
    let mut works: Vec<Work<'_>> = vec![
        (
            "min(dob), a loop with a cursor",
            Box::new(|txn| timed(|| by_cursor(txn, &table))),
        ),
        (
            "min(dob), every leaf read",
            Box::new(|txn| {
                // This aggregate replaces the zone maps of `dob` by those of another column.
                txn.aggregate(&table, &all, &[], &[Aggregate::Sum(0)])?;
                timed(|| txn.aggregate(&table, &all, &[], &least))
            }),
        ),
        (
            "min(dob), no leaf changed",
            Box::new(|txn| timed(|| txn.aggregate(&table, &all, &[], &least))),
        ),
        (
            "count(*), no leaf changed",
            Box::new(|txn| timed(|| txn.aggregate(&table, &all, &[], &[Aggregate::Rows]))),
        ),
        (
            "count(*) where dob < ?, a cursor",
            Box::new(|txn| timed(|| count_by_cursor(txn, &table))),
        ),
        (
            "count(*) where dob < ?, one thread",
            Box::new(|txn| counted(txn, 1)),
        ),
        (
            "count(*) where dob < ?, two threads",
            Box::new(|txn| counted(txn, 2)),
        ),
    ];
    let mut times: Vec<Vec<Duration>> = works.iter().map(|_| Vec::new()).collect();
    let mut txn = db.begin(Isolation::ReadCommitted);
    for _ in 0..rounds {
        for ((_, work), times) in works.iter_mut().zip(&mut times) {
            txn.start_statement();
            times.push(work(&mut txn)?);
            txn.end_statement();
        }
    }
    for ((what, _), times) in works.iter().zip(&mut times) {
        times.sort();
        let (least, median) = (times[0], times[times.len() / 2]);
        println!("{what:<36} least {least:>12.1?}, median {median:>12.1?}");
    }
    let want = Aggregated::Value(Some(peregrine::OwnedValue::UInt(by_cursor(
        &mut txn, &table,
    )?)));
    assert_eq!(txn.aggregate(&table, &all, &[], &least)?, [want]);
    txn.commit()?;
    drop(works);
    drop((txn, table));
    db.close()?;
    let _ = std::fs::remove_dir_all(&dir);
    Ok(())
}
