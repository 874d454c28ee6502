//! Reads of single rows, of some columns, in data many times larger than the buffer pool: the mini-pages must equal the
//! leaves, for every snapshot.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use peregrine::{
    Aggregate, Aggregated, Column, ColumnType, Comparison, Condition, Cursor, CursorOptions,
    Database, Error, Index, IndexRange, Isolation, Key, OwnedValue, Seek, Table, TableSchema,
    Transaction, Value,
};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::tables::schemas::{options, INT};

const IDS: u32 = 20_000;
const GROUPS: u32 = 400;
const NAME: usize = 1;
const NOTE: usize = 2;
const TOKEN: usize = 4;

type Row = Vec<OwnedValue>;
type Model = BTreeMap<u32, Row>;

fn schema() -> TableSchema {
    TableSchema {
        columns: vec![
            Column::new("id", INT),
            Column::new("name", ColumnType::VarBytes { max: 40 }),
            Column {
                nullable: true,
                ..Column::new("note", ColumnType::VarBytes { max: 20 })
            },
            Column::new("group", INT),
            Column::new("token", INT),
            Column::new("filler", ColumnType::VarBytes { max: 400 }),
        ],
        primary: Some(Key::new(&[0])),
        indexes: vec![
            Index::new("group", &[3]),
            Index::new("token", &[TOKEN]).unique(),
        ],
        user: vec![],
    }
}

/// Tokens from this value on are large.
const LARGE: u64 = u32::MAX as u64 / 3;

fn number(value: &OwnedValue) -> Option<u64> {
    match value {
        OwnedValue::UInt(number) => Some(*number),
        _ => None,
    }
}

fn token(id: u32) -> u32 {
    id.wrapping_mul(2_654_435_761)
}

fn row(rng: &mut StdRng, id: u32) -> Row {
    let mut bytes = |len: usize| -> Vec<u8> { (0..len).map(|_| rng.random()).collect() };
    let (name, note, filler) = (bytes(12), bytes(5), bytes(300));
    vec![
        OwnedValue::UInt(id.into()),
        OwnedValue::Bytes(name),
        match rng.random_range(0..4) {
            0 => OwnedValue::Null,
            1 => OwnedValue::Bytes(Vec::new()),
            _ => OwnedValue::Bytes(note),
        },
        OwnedValue::UInt((id % GROUPS).into()),
        OwnedValue::UInt(token(id).into()),
        OwnedValue::Bytes(filler),
    ]
}

fn values(row: &Row) -> Vec<Value<'_>> {
    row.iter().map(OwnedValue::as_value).collect()
}

/// Creates the table with the rows of these ids, several times larger than the pool.
fn filled(db: &Database, rng: &mut StdRng, ids: impl Iterator<Item = u32>) -> (Arc<Table>, Model) {
    let table = db.create_table("t", &schema()).unwrap();
    let mut model = Model::new();
    let mut txn = db.begin(Isolation::RepeatableRead);
    for id in ids {
        let row = row(rng, id);
        txn.insert(&table, &values(&row)).unwrap();
        model.insert(id, row);
        if id % 500 == 1 {
            txn.commit().unwrap();
        }
    }
    txn.commit().unwrap();
    (table, model)
}

/// Computes aggregates over the rows between two ids.
fn aggregate(
    txn: &mut Transaction,
    table: &Arc<Table>,
    ids: [u32; 2],
    conditions: &[Condition<'_>],
    aggregates: &[Aggregate],
) -> Vec<Aggregated> {
    let [start, end] = ids.map(|id| table.encode_key(0, &[id.into()]).unwrap());
    let range = IndexRange {
        index: 0,
        start: Bound::Included(&start),
        end: Bound::Included(&end),
    };
    txn.aggregate(table, &range, conditions, aggregates)
        .unwrap()
}

/// Reads rows like a statement that asks for some columns.
struct Reader {
    table: Arc<Table>,
    cursors: Vec<Cursor>,
    rng: StdRng,
    /// Ids near the rows written last.
    written: Vec<u32>,
}

impl Reader {
    fn new(table: &Arc<Table>, seed: u64) -> Reader {
        Reader {
            table: table.clone(),
            cursors: (0..3)
                .map(|index| Cursor::new(table, index, CursorOptions::default()))
                .collect(),
            rng: StdRng::seed_from_u64(seed),
            written: Vec::new(),
        }
    }

    fn id(&mut self) -> u32 {
        if self.written.is_empty() || self.rng.random_bool(0.6) {
            return self.rng.random_range(0..IDS + 10);
        }
        let n = self.rng.random_range(0..self.written.len());
        self.written[n] + self.rng.random_range(0..40)
    }

    /// Checks aggregates over the rows of a range of ids: those with a note, with a large token, or all.
    fn sum(&mut self, txn: &mut Transaction, model: &Model) {
        let first = self.id();
        let last = match self.rng.random_range(0..10) {
            0 => IDS,
            1..5 => first,
            _ => first + self.rng.random_range(0..120),
        };
        let (conditions, is_meant): (Vec<Condition<'_>>, fn(&Row) -> bool) =
            match self.rng.random_range(0..4) {
                0 => (vec![Condition::IsNotNull(NOTE)], |row| {
                    row[NOTE] != OwnedValue::Null
                }),
                1 => (
                    vec![Condition::Compare(
                        TOKEN,
                        Comparison::GreaterOrEqual,
                        Value::UInt(LARGE),
                    )],
                    |row| number(&row[TOKEN]) >= Some(LARGE),
                ),
                _ => (vec![], |_| true),
            };
        let (aggregates, column) = match self.rng.random_range(0..4) {
            0 => (vec![Aggregate::Rows], 0),
            1 => (vec![Aggregate::Min(0), Aggregate::Max(0)], 0),
            2 => (vec![Aggregate::Rows, Aggregate::Count(NOTE)], NOTE),
            _ => (vec![Aggregate::Sum(TOKEN), Aggregate::Min(TOKEN)], TOKEN),
        };
        let found = aggregate(txn, &self.table, [first, last], &conditions, &aggregates);

        let rows = || {
            let rows = model.range(first..=last.max(first)).map(|(_, row)| row);
            rows.filter(|row| first <= last && is_meant(row))
        };
        let numbers = || rows().filter_map(|row| number(&row[column]));
        let value = |number: Option<u64>| Aggregated::Value(number.map(OwnedValue::UInt));
        let wanted: Vec<Aggregated> = aggregates
            .iter()
            .map(|aggregate| match aggregate {
                Aggregate::Rows => Aggregated::Count(rows().count() as u64),
                Aggregate::Count(column) => {
                    let has = rows().filter(|row| row[*column] != OwnedValue::Null);
                    Aggregated::Count(has.count() as u64)
                }
                Aggregate::Sum(_) => Aggregated::Sum {
                    sum: numbers().map(i128::from).sum(),
                    values: numbers().count() as u64,
                },
                Aggregate::Min(_) => value(numbers().min()),
                Aggregate::Max(_) => value(numbers().max()),
            })
            .collect();
        assert_eq!(
            found, wanted,
            "{first} to {last}, {conditions:?}, {aggregates:?}"
        );
    }

    /// Checks one row, by its id or token, or the rows of a group, or aggregates of a range.
    fn look(&mut self, txn: &mut Transaction, model: &Model) {
        if self.rng.random_range(0..3) == 0 {
            return self.sum(txn, model);
        }
        let id = self.id();
        let columns = match self.rng.random_range(0..4) {
            0 => vec![NAME],
            1 => vec![NAME, NOTE],
            2 => vec![],
            _ => vec![0, NOTE, TOKEN],
        };
        let index = match self.rng.random_range(0..20) {
            0 => 1,
            1..6 => 2,
            _ => 0,
        };
        let number = [id, id % GROUPS, token(id)][index];
        let key = self.table.encode_key(index, &[number.into()]).unwrap();
        let cursor = &mut self.cursors[index];
        cursor.set_columns(Some(&columns));
        let mut wanted: Vec<&Row> = match index {
            1 => model
                .iter()
                .filter(|(other, _)| *other % GROUPS == number)
                .map(|(_, row)| row)
                .collect(),
            _ => model.get(&id).into_iter().collect(),
        };
        wanted.reverse();
        let mut found = cursor.seek(txn, &key, Seek::Exact).unwrap();
        // Half of the reads of a group want more columns from some row on.
        let more_from = self.rng.random_range(0..100);
        let mut columns = columns;
        for n in 0.. {
            if !found {
                break;
            }
            let row = wanted.pop().expect("a row that there is not");
            let view = cursor.row().unwrap();
            for &column in &columns {
                let value = view.get(column).unwrap();
                assert_eq!(value, row[column].as_value(), "id {id}, index {index}");
            }
            // A column that was not asked for is an error, or has the right value.
            match view.get(5) {
                Ok(value) => assert_eq!(value, row[5].as_value()),
                Err(Error::Invalid(text)) => assert!(text.contains("column filler"), "{text}"),
                Err(error) => panic!("{error}"),
            }
            if n == more_from {
                columns = vec![0, 1, 2, 3, 4, 5];
                cursor.set_columns(None);
            }
            found = cursor.next_same_prefix(txn).unwrap();
        }
        assert!(wanted.is_empty(), "id {id}, index {index}: {wanted:?}");
    }
}

#[test]
fn rows_are_those_of_each_snapshot() {
    if peregrine::knobs::SHAKEN {
        // The test relies on the knobs' default values.
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let db = Database::open(dir.path(), options()).unwrap();
    let mut rng = StdRng::seed_from_u64(5);
    let ids = (0..IDS).filter(|id| id % 10 != 0);
    let (table, mut model) = filled(&db, &mut rng, ids);

    let mut reader = Reader::new(&table, 6);
    let mut now = db.begin(Isolation::ReadCommitted);
    let mut old: Option<(Transaction, Model)> = None;
    for round in 0..12_000 {
        match rng.random_range(0..100) {
            0 => {
                let mut snapshot = db.begin(Isolation::RepeatableRead);
                let key = table.encode_key(0, &[1u32.into()]).unwrap();
                snapshot.get(&table, &key, |_| ()).unwrap();
                old = rng.random_bool(0.6).then(|| (snapshot, model.clone()));
            }
            1 | 2 => {
                // Writes a few neighbouring rows, and rolls a third of the transactions back.
                let mut after = model.clone();
                let mut writer = db.begin(Isolation::RepeatableRead);
                let first = rng.random_range(0..IDS);
                if reader.written.len() > 40 {
                    reader.written.drain(..20);
                }
                for n in 0..4 {
                    let id = first + n * rng.random_range(1..30);
                    reader.written.push(id.saturating_sub(20));
                    let key = table.encode_key(0, &[id.into()]).unwrap();
                    if after.remove(&id).is_some() {
                        writer.delete(&table, &key).unwrap();
                    }
                    if rng.random_bool(0.7) {
                        let row = row(&mut rng, id);
                        writer.insert(&table, &values(&row)).unwrap();
                        after.insert(id, row);
                    }
                }
                // The transaction sees its own changes.
                let mut own = Reader::new(&table, round);
                (0..20).for_each(|_| own.look(&mut writer, &after));
                if rng.random_bool(0.6) {
                    writer.commit().unwrap();
                    model = after;
                } else {
                    writer.rollback().unwrap();
                }
            }
            3..20 => {
                if let Some((snapshot, model)) = &mut old {
                    reader.look(snapshot, model);
                }
            }
            _ => {
                now.start_statement();
                reader.look(&mut now, &model);
            }
        }
    }
    let status = db.status();
    assert!(status.mini_page_reads > 1_000, "{status:?}");
}

#[test]
fn ranges_that_are_asked_for_again_are_found_in_memory() {
    if peregrine::knobs::SHAKEN {
        // The test relies on the knobs' default values.
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let db = Database::open(dir.path(), options()).unwrap();
    let mut rng = StdRng::seed_from_u64(9);
    let (table, model) = filled(&db, &mut rng, 0..IDS);
    db.checkpoint().unwrap();

    // Ranges over two or three leaves each.
    let mut pages = Vec::new();
    for _ in 0..5 {
        let before = db.status().pages_read;
        for _ in 0..500 {
            let first = rng.random_range(0..IDS - 80);
            let last = first + 79;
            let mut txn = db.begin(Isolation::ReadCommitted);
            let found = aggregate(
                &mut txn,
                &table,
                [first, last],
                &[],
                &[Aggregate::Min(TOKEN)],
            );
            let tokens = model
                .range(first..=last)
                .filter_map(|(_, row)| number(&row[TOKEN]));
            let least = tokens.min().map(OwnedValue::UInt);
            assert_eq!(found, [Aggregated::Value(least)]);
        }
        pages.push(db.status().pages_read - before);
    }
    assert!(pages[0] > 300 && pages[4] * 5 < pages[0], "{pages:?}");
}
