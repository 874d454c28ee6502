//! Aggregates beside concurrent changes: they equal the results of a plain loop over a cursor.

use std::ops::{Bound, Range};
use std::path::Path;
use std::sync::Arc;

use peregrine::os::simulated::SimulatedOs;
use peregrine::os::{Os, RealOs};
use peregrine::{
    knobs, Aggregate, Aggregated, Column, ColumnType, Condition, Cursor, CursorOptions, Database,
    Error, Index, IndexRange, Isolation, Key, Options, OwnedValue, Seek, Table, TableSchema,
    Transaction, Value,
};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::model::{answer, condition, holds};
use crate::tables::schemas::{noise, options, INT};

/// Columns: id; group, with an index of group and amount; a signed amount, which may be NULL; fixed bytes; and a text
/// that is sometimes so long that the row is stored outside the tree.
pub(crate) fn schema() -> TableSchema {
    let amount = ColumnType::Int {
        bytes: 8,
        signed: true,
    };
    TableSchema {
        columns: vec![
            Column::new("id", INT),
            Column::new("group", INT),
            Column::new("amount", amount).nullable(),
            Column::new("day", ColumnType::Bytes { len: 5 }).nullable(),
            Column::new("text", ColumnType::VarBytes { max: 20_000 }),
        ],
        primary: Some(Key::new(&[0])),
        indexes: vec![Index::new("by_group", &[1, 2])],
        user: vec![],
    }
}

fn row<'a>(
    rng: &mut StdRng,
    id: u32,
    text_len: &Range<usize>,
    day: &'a mut [u8; 5],
    text: &'a mut Vec<u8>,
) -> [Value<'a>; 5] {
    let amount = match rng.random_range(0..6) {
        0 => Value::Null,
        1 => Value::Int(rng.random()),
        _ => Value::Int(rng.random_range(-100..100)),
    };
    rng.fill(day);
    let long = rng.random_ratio(1, 60);
    let len = if long {
        9_000
    } else {
        rng.random_range(text_len.clone())
    };
    *text = noise(rng.random(), len);
    let group = Value::UInt(rng.random_range(0..20));
    let day = match rng.random_ratio(1, 5) {
        true => Value::Null,
        false => Value::Bytes(day),
    };
    [id.into(), group, amount, day, Value::Bytes(text)]
}

const CLUSTERED: [Aggregate; 9] = [
    Aggregate::Rows,
    Aggregate::Count(2),
    Aggregate::Sum(2),
    Aggregate::Min(2),
    Aggregate::Max(2),
    Aggregate::Min(3),
    Aggregate::Max(3),
    Aggregate::Sum(0),
    Aggregate::Count(4),
];

const SECONDARY: [Aggregate; 5] = [
    Aggregate::Rows,
    Aggregate::Sum(2),
    Aggregate::Max(2),
    Aggregate::Min(1),
    Aggregate::Max(0),
];

/// Returns a random range of an index, as encoded prefixes.
fn ends(rng: &mut StdRng, table: &Table, index: usize, ids: u32) -> [Bound<Vec<u8>>; 2] {
    [(); 2].map(|()| {
        let n: u32 = rng.random_range(0..if index == 0 { ids } else { 20 });
        let key = table.encode_key(index, &[n.into()]).unwrap();
        match rng.random_range(0..4) {
            0 => Bound::Included(key),
            1 => Bound::Excluded(key),
            _ => Bound::Unbounded,
        }
    })
}

/// Returns the rows that a cursor finds in a range.
fn rows(txn: &mut Transaction, table: &Arc<Table>, range: &IndexRange<'_>) -> Vec<Vec<OwnedValue>> {
    let mut cursor = Cursor::new(table, range.index, CursorOptions::default());
    match range.end {
        Bound::Unbounded => {}
        Bound::Included(end) => cursor.set_end(end, true),
        Bound::Excluded(end) => cursor.set_end(end, false),
    }
    let mut more = match range.start {
        Bound::Unbounded => cursor.seek(txn, b"", Seek::First),
        Bound::Included(start) => cursor.seek(txn, start, Seek::AtOrAfter),
        Bound::Excluded(start) => cursor.seek(txn, start, Seek::After),
    }
    .unwrap();
    let mut found = Vec::new();
    while more {
        let row = cursor.row().unwrap();
        let value = |column| row.get(column).unwrap().to_owned();
        found.push((0..4).map(value).chain([OwnedValue::UInt(0)]).collect());
        more = cursor.next(txn).unwrap();
    }
    found
}

/// The kind of most aggregates in a test.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    /// Any range, with or without conditions.
    Any,
    /// Rows up to the table's end for which a condition holds: then no zone map can replace a leaf.
    ToTheEndWhere,
}

/// Compares aggregates of a few ranges, each run twice, with a plain loop.
///
/// The second run uses the zone maps that the first has kept.
fn compare(
    txn: &mut Transaction,
    table: &Arc<Table>,
    rng: &mut StdRng,
    ids: u32,
    mostly: Asked,
    what: &str,
) {
    for index in [0, 1] {
        let asked = if index == 0 {
            &CLUSTERED[..]
        } else {
            &SECONDARY
        };
        let whole = match mostly {
            Asked::Any => 1,
            Asked::ToTheEndWhere => 2,
        };
        let [start, end] = match rng.random_ratio(whole, 3) {
            true => [Bound::Unbounded, Bound::Unbounded],
            false => ends(rng, table, index, ids),
        };
        let range = IndexRange {
            index,
            start: start.as_ref().map(|key| &key[..]),
            end: end.as_ref().map(|key| &key[..]),
        };
        let found = rows(txn, table, &range);
        let limits = [(); 2].map(|()| {
            let (mut day, mut text) = ([0; 5], Vec::new());
            row(rng, 0, &(0..1), &mut day, &mut text).map(|value| value.to_owned())
        });
        let mut conditions = vec![];
        for limit in &limits {
            let column = rng.random_range(0..if index == 0 { 4 } else { 3 });
            let chance = match (mostly, conditions.is_empty()) {
                (Asked::ToTheEndWhere, true) => 5,
                _ => 2,
            };
            if rng.random_ratio(chance, 6) {
                conditions.push(condition(rng, column, &limit[column]));
            }
        }
        let hold = |row: &&Vec<OwnedValue>| conditions.iter().all(|c| holds(c, row));
        let found: Vec<&Vec<OwnedValue>> = found.iter().filter(hold).collect();
        for time in ["first", "second"] {
            let got = txn.aggregate(table, &range, &conditions, asked).unwrap();
            for (aggregate, got) in asked.iter().zip(got) {
                let want = answer(*aggregate, &found);
                assert_eq!(
                    got, want,
                    "{what}, {time} time: {aggregate:?} of {range:?} where {conditions:?}"
                );
            }
            let alone = txn
                .aggregate(table, &range, &conditions, &asked[..1])
                .unwrap();
            assert_eq!(alone, [Aggregated::Count(found.len() as u64)], "{what}");
        }
    }
}

/// A table with changing rows, and its reads.
struct Changing {
    pool_bytes: usize,
    scan_threads: usize,
    text_len: Range<usize>,
    ids: u32,
    rounds: u32,
    /// The number of rows changed in a round is below this.
    changes: u32,
    mostly: Asked,
}

impl Changing {
    /// Returns a table of about as many leaves as one thread reads alone, one less or one more: a scan then ends where
    /// helpers would begin.
    ///
    /// `None` when it would have very many rows, or only one leaf, which threads can't share.
    fn of_leaves_read_alone(rng: &mut StdRng) -> Option<Changing> {
        const PAGE: usize = 16 << 10;
        const MOST_ROWS: usize = 4_000;
        let leaves = knobs::leaves_alone() + rng.random_range(0..3) - 1;
        // Texts that just fit in their rows, beside about 60 bytes of other columns, so that few rows fill a leaf.
        let len = knobs::in_row_limit().min(3_000).saturating_sub(60);
        let in_a_leaf = PAGE / (len + 50);
        let rows = leaves.saturating_sub(1) * in_a_leaf + rng.random_range(1..=in_a_leaf);
        let is_one_leaf = knobs::leaves_alone() == 1;
        (!is_one_leaf && rows <= MOST_ROWS).then(|| Changing {
            pool_bytes: 16 << 20,
            scan_threads: rng.random_range(2..5),
            text_len: len * 7 / 8..len + 1,
            // Every second one exists at first.
            ids: 2 * rows as u32,
            rounds: 3,
            changes: 6,
            mostly: Asked::ToTheEndWhere,
        })
    }

    /// Runs writers that commit, roll back and stay open, and readers with snapshots of every age and with changes of
    /// their own.
    fn compare_beside_changes(self, os: Arc<dyn Os>, dir: &Path, seed: u64) {
        let Changing {
            text_len,
            ids,
            mostly,
            ..
        } = self;
        let options = Options {
            pool_bytes: self.pool_bytes,
            scan_threads: self.scan_threads,
            ..options()
        };
        let db = Database::open_on(os, dir, options).unwrap();
        let table = db.create_table("t", &schema()).unwrap();
        let mut rng = StdRng::seed_from_u64(seed);
        let (mut day, mut text) = ([0; 5], Vec::new());
        let mut load = db.begin(Isolation::RepeatableRead);
        for id in (0..ids).step_by(2) {
            let row = row(&mut rng, id, &text_len, &mut day, &mut text);
            load.insert(&table, &row).unwrap();
        }
        compare(&mut load, &table, &mut rng, ids, mostly, "while loading");
        load.commit().unwrap();

        let mut old: Vec<Transaction> = Vec::new();
        let mut open: Option<Transaction> = None;
        for round in 0..self.rounds {
            let mut txn = db.begin(match round % 3 {
                0 => Isolation::ReadCommitted,
                _ => Isolation::RepeatableRead,
            });
            for _ in 0..rng.random_range(0..self.changes) {
                let id = rng.random_range(0..ids);
                let key = table.encode_key(0, &[id.into()]).unwrap();
                let row = row(&mut rng, id, &text_len, &mut day, &mut text);
                txn.set_lock_wait_timeout(std::time::Duration::ZERO);
                let done = match rng.random_range(0..3) {
                    0 => txn.delete(&table, &key),
                    1 => txn.update(&table, &key, &row),
                    _ => txn.insert(&table, &row),
                };
                match done {
                    Ok(_)
                    | Err(Error::NotFound { .. })
                    | Err(Error::Duplicate { .. })
                    | Err(Error::LockNotAvailable) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            compare(&mut txn, &table, &mut rng, ids, mostly, "own changes");
            match rng.random_range(0..4) {
                0 => txn.rollback().unwrap(),
                1 if open.is_none() => open = Some(txn),
                _ => txn.commit().unwrap(),
            }
            if rng.random_ratio(1, 4) {
                if let Some(mut open) = open.take() {
                    open.commit().unwrap();
                }
            }
            let mut reader = db.begin(Isolation::RepeatableRead);
            compare(&mut reader, &table, &mut rng, ids, mostly, "a new snapshot");
            if round % 5 == 0 {
                old.push(reader);
            }
            for reader in &mut old {
                compare(reader, &table, &mut rng, ids, mostly, "an old snapshot");
            }
            if old.len() > 3 {
                old.remove(0);
            }
        }
    }
}

#[test]
fn aggregates_are_what_a_cursor_finds() {
    // With few leaves, and with so many that several threads read them; with and without evictions.
    for (seed, pool_bytes, scan_threads, text_len, rounds) in [
        (1, 1 << 20, 1, 0..250, 60),
        (2, 16 << 20, 4, 0..250, 60),
        (3, 1 << 20, 2, 2_500..3_000, 15),
        (4, 32 << 20, 4, 2_500..3_000, 30),
    ] {
        let changing = Changing {
            pool_bytes,
            scan_threads,
            text_len,
            ids: 6_000,
            rounds,
            changes: 60,
            mostly: Asked::Any,
        };
        let dir = tempfile::tempdir().unwrap();
        changing.compare_beside_changes(RealOs::new(), dir.path(), seed);
    }
}

/// The same with small tables, repeatedly: PEREGRINE_TIMES sets the number of runs, PEREGRINE_SEED the first seed.
///
/// With random knobs, a few leaves already count as many.
#[test]
fn aggregates_of_small_tables_are_what_a_cursor_finds() {
    let asked = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    let (first, times) = (
        asked("PEREGRINE_SEED").unwrap_or(1),
        asked("PEREGRINE_TIMES").unwrap_or(10),
    );
    for seed in first..first + times {
        let mut rng = StdRng::seed_from_u64(!seed);
        let most_ids = 2 << rng.random_range(0..8);
        let at_the_edge = match rng.random_ratio(1, 2) {
            true => Changing::of_leaves_read_alone(&mut rng),
            false => None,
        };
        let changing = at_the_edge.unwrap_or_else(|| Changing {
            pool_bytes: [1 << 20, 16 << 20][rng.random_range(0..2)],
            scan_threads: rng.random_range(1..5),
            text_len: [0..250, 2_500..3_000][rng.random_range(0..2)].clone(),
            ids: 1 + rng.random_range(1..most_ids),
            rounds: 3,
            changes: 60,
            mostly: [Asked::Any, Asked::ToTheEndWhere][rng.random_range(0..2)],
        });
        println!("seed {seed}");
        changing.compare_beside_changes(Arc::new(SimulatedOs::new(seed)), Path::new("/db"), seed);
    }
}

#[test]
fn serializable_aggregates_lock_what_they_have_read() {
    let dir = tempfile::tempdir().unwrap();
    let db = Database::open(dir.path(), options()).unwrap();
    let table = db.create_table("t", &schema()).unwrap();
    let row = |id: u32| {
        [
            id.into(),
            1u32.into(),
            Value::Int(7),
            Value::Null,
            Value::Bytes(b""),
        ]
    };
    let mut txn = db.begin(Isolation::ReadCommitted);
    for id in 0..10 {
        txn.insert(&table, &row(id)).unwrap();
    }
    txn.commit().unwrap();
    let mut reader = db.begin(Isolation::Serializable);
    let to = table.encode_key(0, &[5u32.into()]).unwrap();
    let range = IndexRange {
        index: 0,
        start: Bound::Unbounded,
        end: Bound::Excluded(&to),
    };
    let asked = [Aggregate::Rows, Aggregate::Sum(2)];
    let five = [Aggregated::Count(5), Aggregated::Sum { sum: 35, values: 5 }];
    assert_eq!(reader.aggregate(&table, &range, &[], &asked).unwrap(), five);
    txn.set_lock_wait_timeout(std::time::Duration::ZERO);
    let key = |id: u32| table.encode_key(0, &[id.into()]).unwrap();
    let deleted = txn.delete(&table, &key(2));
    assert!(
        matches!(deleted, Err(Error::LockNotAvailable)),
        "{deleted:?}"
    );
    txn.delete(&table, &key(7)).unwrap();
    txn.commit().unwrap();
    assert_eq!(reader.aggregate(&table, &range, &[], &asked).unwrap(), five);
    reader.commit().unwrap();
    txn.delete(&table, &key(2)).unwrap();
}

#[test]
fn a_count_of_rows_says_nothing_of_the_first_column() {
    let dir = tempfile::tempdir().unwrap();
    let db = Database::open(dir.path().join("db"), options()).unwrap();
    let columns = vec![Column::new("id", INT)];
    let schema = TableSchema {
        columns,
        primary: Some(Key::new(&[0])),
        indexes: vec![],
        user: vec![],
    };
    let table = db.create_table("t", &schema).unwrap();
    let mut txn = db.begin(Isolation::RepeatableRead);
    for id in 1..=5_000u32 {
        txn.insert(&table, &[id.into()]).unwrap();
    }
    txn.commit().unwrap();
    let mut txn = db.begin(Isolation::RepeatableRead);
    let whole = IndexRange::whole(0);
    for (asked, expected) in [
        (Aggregate::Rows, Aggregated::Count(5_000)),
        (Aggregate::Count(0), Aggregated::Count(5_000)),
        (Aggregate::Rows, Aggregated::Count(5_000)),
    ] {
        let found = txn.aggregate(&table, &whole, &[], &[asked]).unwrap();
        assert_eq!(found, [expected], "{asked:?}");
    }
}

#[test]
fn threads_of_a_scan_are_within_limits() {
    let dir = tempfile::tempdir().unwrap();
    let with = |scan_threads| Options {
        scan_threads,
        ..options()
    };
    for threads in [0, 65] {
        let refused = Database::open(dir.path(), with(threads));
        let refused = refused.err().map(|error| error.to_string());
        assert!(refused.is_some_and(|text| text.contains("from 1 to 64")));
    }
    let db = Database::open(dir.path(), with(64)).unwrap();
    assert!(matches!(db.set_scan_threads(0), Err(Error::Invalid(_))));
    db.set_scan_threads(1).unwrap();
}

#[test]
fn a_killed_transaction_stops_aggregating() {
    let dir = tempfile::tempdir().unwrap();
    let db = Database::open(dir.path(), options()).unwrap();
    let table = db.create_table("t", &schema()).unwrap();
    for isolation in [Isolation::RepeatableRead, Isolation::Serializable] {
        let mut txn = db.begin(isolation);
        let row = [
            Value::UInt(1),
            Value::UInt(1),
            Value::Null,
            Value::Null,
            Value::Bytes(b""),
        ];
        txn.insert(&table, &row).unwrap();
        let kill = txn.kill_handle();
        kill.kill();
        let range = IndexRange::whole(0);
        let asked = [Aggregate::Rows, Aggregate::Min(2)];
        let got = txn.aggregate(&table, &range, &[], &asked);
        assert!(matches!(got, Err(Error::Interrupted)), "{got:?}");
        kill.clear();
        let got = txn.aggregate(&table, &range, &[], &asked).unwrap();
        assert_eq!(got, [Aggregated::Count(1), Aggregated::Value(None)]);
        txn.rollback().unwrap();
    }
}

/// Helpers start after one thread has read this many leaves alone: tables that end exactly there, before and after.
#[test]
fn each_row_counts_once_however_many_leaves_there_are() {
    let dir = tempfile::tempdir().unwrap();
    // All leaves are in memory: no mini-page replaces a leaf.
    let options = Options {
        scan_threads: 2,
        pool_bytes: 16 << 20,
        ..options()
    };
    let db = Database::open(dir.path().join("db"), options).unwrap();
    let table = db.create_table("t", &schema()).unwrap();
    let text = noise(1, 3_000);
    let mut txn = db.begin(Isolation::ReadCommitted);
    // Five rows per leaf. With a condition, the leaves are read each time.
    let condition = [Condition::IsNotNull(2)];
    for id in 0..900u32 {
        let row = [
            id.into(),
            1u32.into(),
            Value::Int(3),
            Value::Null,
            Value::Bytes(&text),
        ];
        txn.insert(&table, &row).unwrap();
        let asked = [Aggregate::Rows, Aggregate::Sum(2)];
        let values = u64::from(id) + 1;
        let sum = 3 * i128::from(values);
        let want = [Aggregated::Count(values), Aggregated::Sum { sum, values }];
        let range = IndexRange::whole(0);
        let found = txn.aggregate(&table, &range, &condition, &asked);
        assert_eq!(found.unwrap(), want);
    }
}
