//! SERIALIZABLE: transactions read and change as if they ran one after the other, in the order of their commits.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use peregrine::{
    Column, ColumnType, Cursor, CursorOptions, Database, Error, Index, Isolation, Key, Result,
    RowLock, Seek, Table, TableSchema, Text, Transaction, Value,
};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::reading::ascii::NO_CASE;
use crate::tables::schemas::{options, INT};

/// Creates rows (id, group with an index, code with a unique index, filler so that few rows fill a leaf).
fn open(dir: &std::path::Path) -> (Database, Arc<Table>) {
    let db = Database::open(dir.join("db"), options()).unwrap();
    let schema = TableSchema {
        columns: vec![
            Column::new("id", INT),
            Column::new("group", INT),
            Column::new("code", INT),
            Column::new("filler", ColumnType::VarBytes { max: 2000 }),
        ],
        primary: Some(Key::new(&[0])),
        indexes: vec![
            Index::new("by_group", &[1]),
            Index::new("by_code", &[2]).unique(),
        ],
        user: vec![],
    };
    let table = db.create_table("t", &schema).unwrap();
    (db, table)
}

static FILLER: [u8; 1500] = [b'f'; 1500];

fn row(id: u32, group: u32, code: u32) -> [Value<'static>; 4] {
    [id.into(), group.into(), code.into(), Value::Bytes(&FILLER)]
}

fn number(value: Value<'_>) -> u32 {
    match value {
        Value::UInt(value) => value as u32,
        other => panic!("{other:?}"),
    }
}

/// The start of a read, its index, and its greatest number of rows.
#[derive(Clone, Debug)]
struct Scan {
    index: usize,
    from: Option<u32>,
    seek: Seek,
    /// The first key that is not wanted.
    end: Option<u32>,
    most: usize,
    lock: RowLock,
}

#[derive(Clone, Debug)]
enum Op {
    Scan(Scan),
    Insert(u32, u32, u32),
    Update(u32, u32, u32),
    Delete(u32),
}

/// The result of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Given {
    Rows(Vec<(u32, u32, u32)>),
    Done,
    Duplicate,
    Missing,
}

fn scan(txn: &mut Transaction, table: &Arc<Table>, scan: &Scan) -> Result<Given> {
    let options = CursorOptions {
        lock: scan.lock,
        ..CursorOptions::default()
    };
    let mut cursor = Cursor::new(table, scan.index, options);
    if let Some(end) = scan.end {
        cursor.set_end(&table.encode_key(scan.index, &[end.into()])?, false);
    }
    let prefix = match scan.from {
        Some(from) => table.encode_key(scan.index, &[from.into()])?,
        None => Vec::new(),
    };
    let backward = is_backward(scan.seek);
    let mut rows = Vec::new();
    let mut more = cursor.seek(txn, &prefix, scan.seek)?;
    while more {
        let row = cursor.row()?;
        rows.push((
            number(row.get(0)?),
            number(row.get(1)?),
            number(row.get(2)?),
        ));
        if rows.len() == scan.most {
            break;
        }
        more = match scan.seek {
            Seek::Exact => cursor.next_same_prefix(txn)?,
            _ if backward => cursor.prev(txn)?,
            _ => cursor.next(txn)?,
        };
    }
    Ok(Given::Rows(rows))
}

fn is_backward(seek: Seek) -> bool {
    matches!(
        seek,
        Seek::ExactLast | Seek::AtOrBefore | Seek::Before | Seek::Last
    )
}

fn run(txn: &mut Transaction, table: &Arc<Table>, op: &Op) -> Result<Given> {
    let key = |id: u32| table.encode_key(0, &[id.into()]);
    let done = match op {
        Op::Scan(wanted) => return scan(txn, table, wanted),
        Op::Insert(id, group, code) => txn.insert(table, &row(*id, *group, *code)),
        Op::Update(id, group, code) => txn.update(table, &key(*id)?, &row(*id, *group, *code)),
        Op::Delete(id) => txn.delete(table, &key(*id)?),
    };
    match done {
        Ok(()) => Ok(Given::Done),
        Err(Error::Duplicate { .. }) => Ok(Given::Duplicate),
        Err(Error::NotFound { .. }) => Ok(Given::Missing),
        Err(error) => Err(error),
    }
}

/// id → group, code.
type Model = BTreeMap<u32, (u32, u32)>;

fn expected(model: &mut Model, op: &Op) -> Given {
    let code_taken = |model: &Model, id: u32, code: u32| {
        model
            .iter()
            .any(|(other, (_, taken))| *other != id && *taken == code)
    };
    match *op {
        Op::Scan(ref scan) => {
            let column = |row: &(u32, u32, u32)| [row.0, row.1, row.2][scan.index];
            let mut rows: Vec<_> = model.iter().map(|(id, (g, c))| (*id, *g, *c)).collect();
            rows.sort_by_key(|row| (column(row), row.0));
            if is_backward(scan.seek) {
                rows.reverse();
            }
            let from = scan.from.unwrap_or(0);
            rows.retain(|row| {
                let key = column(row);
                scan.end.is_none_or(|end| key < end)
                    && match scan.seek {
                        Seek::Exact => key == from,
                        Seek::AtOrAfter => key >= from,
                        Seek::After => key > from,
                        Seek::AtOrBefore | Seek::ExactLast => key <= from,
                        Seek::Before => key < from,
                        Seek::First | Seek::Last => true,
                    }
            });
            let first = rows.first().map(column);
            if scan.seek == Seek::ExactLast && first != Some(from) {
                rows.clear();
            }
            rows.truncate(scan.most);
            Given::Rows(rows)
        }
        Op::Insert(id, group, code) => {
            if model.contains_key(&id) || code_taken(model, id, code) {
                return Given::Duplicate;
            }
            model.insert(id, (group, code));
            Given::Done
        }
        Op::Update(id, group, code) => {
            if !model.contains_key(&id) {
                return Given::Missing;
            }
            if code_taken(model, id, code) {
                return Given::Duplicate;
            }
            model.insert(id, (group, code));
            Given::Done
        }
        Op::Delete(id) => match model.remove(&id) {
            Some(_) => Given::Done,
            None => Given::Missing,
        },
    }
}

const IDS: u32 = 40;
const GROUPS: u32 = 5;
const CODES: u32 = 40;

fn any_scan(rng: &mut StdRng) -> Scan {
    let index = rng.random_range(0..3usize);
    let values = [IDS, GROUPS, CODES][index];
    let seek = match rng.random_range(0..8) {
        0 => Seek::AtOrAfter,
        1 => Seek::After,
        2 => Seek::AtOrBefore,
        3 => Seek::Before,
        4 => Seek::First,
        5 => Seek::Last,
        6 => Seek::ExactLast,
        _ => Seek::Exact,
    };
    let forward = matches!(seek, Seek::AtOrAfter | Seek::After | Seek::First);
    let from = rng.random_range(0..values);
    let wide = rng.random_range(1..6);
    Scan {
        index,
        from: (!matches!(seek, Seek::First | Seek::Last)).then_some(from),
        seek,
        end: (forward && rng.random_bool(0.7)).then_some(from + wide),
        most: rng.random_range(1..8),
        lock: if rng.random_bool(0.2) {
            RowLock::Exclusive
        } else {
            RowLock::None
        },
    }
}

fn any_op(rng: &mut StdRng) -> Op {
    let id = rng.random_range(0..IDS);
    let group = rng.random_range(0..GROUPS);
    let code = rng.random_range(0..CODES);
    match rng.random_range(0..8) {
        0..=3 => Op::Scan(any_scan(rng)),
        4 => Op::Insert(id, group, code),
        5 | 6 => Op::Update(id, group, code),
        _ => Op::Delete(id),
    }
}

/// The operations of each transaction, in the order of commits.
type History = Vec<(u64, Vec<(Op, Given)>)>;

/// Runs random transactions in several threads; returns the histories of those that committed.
fn histories(seed: u64, threads: u64, transactions: usize) -> History {
    let dir = tempfile::tempdir().unwrap();
    let (db, table) = open(dir.path());
    let tickets = AtomicU64::new(0);
    let histories = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (db, table, tickets, histories) = (&db, &table, &tickets, &histories);
            scope.spawn(move || {
                let mut rng = StdRng::seed_from_u64(seed * 1000 + thread);
                let mut done = Vec::new();
                let mut txn = db.begin(Isolation::Serializable);
                while done.len() < transactions {
                    let mut history = Vec::new();
                    let mut ended = Ok(());
                    for _ in 0..rng.random_range(1..6) {
                        let op = any_op(&mut rng);
                        let savepoint = rng.random_bool(0.1).then(|| txn.savepoint());
                        match run(&mut txn, table, &op) {
                            Ok(given) => history.push((op, given)),
                            Err(error) => {
                                ended = Err(error);
                                break;
                            }
                        }
                        if let Some(savepoint) = savepoint {
                            // The rollback to the savepoint does not undo reads.
                            txn.rollback_to(&savepoint).unwrap();
                            if !matches!(history.last(), Some((Op::Scan(_), _))) {
                                history.pop();
                            }
                        }
                    }
                    match ended {
                        Ok(()) => {
                            // All of the transaction's locks are still held here.
                            let ticket = tickets.fetch_add(1, Ordering::SeqCst);
                            txn.commit().unwrap();
                            done.push((ticket, history));
                        }
                        Err(Error::Deadlock) => txn.rollback().unwrap(),
                        Err(error) => panic!("{error}"),
                    }
                }
                histories.lock().append(&mut done);
            });
        }
    });
    let mut histories = histories.into_inner();
    histories.sort_by_key(|(ticket, _)| *ticket);
    histories
}

#[test]
fn random_transactions_are_as_if_one_followed_the_other() {
    for seed in 0..3 {
        let mut model = Model::new();
        for (ticket, history) in histories(seed, 6, 150) {
            for (op, given) in history {
                let right = expected(&mut model, &op);
                assert_eq!(given, right, "seed {seed}, commit {ticket}: {op:?}");
            }
        }
    }
}

/// Creates rows 10, 20, … 50, with groups 1, 2, … 5 and codes 100, 200, … 500.
///
/// No transaction waits.
fn fixed(dir: &std::path::Path) -> (Database, Arc<Table>) {
    let (db, table) = open(dir);
    let mut txn = db.begin(Isolation::ReadCommitted);
    for n in 1..=5 {
        txn.insert(&table, &row(10 * n, n, 100 * n)).unwrap();
    }
    txn.commit().unwrap();
    db.set_lock_wait_timeout(Duration::ZERO);
    (db, table)
}

fn look(index: usize, seek: Seek, from: u32, end: Option<u32>, most: usize) -> Scan {
    Scan {
        index,
        from: (!matches!(seek, Seek::First | Seek::Last)).then_some(from),
        seek,
        end,
        most,
        lock: RowLock::None,
    }
}

/// The rows that others can't insert after a read, and those that they can.
#[test]
fn nothing_appears_where_a_transaction_has_looked() {
    // A read; rows that others can't insert; rows that they can.
    type Row = (u32, u32, u32);
    let cases: Vec<(Scan, Vec<Row>, Vec<Row>)> = vec![
        (
            look(0, Seek::AtOrAfter, 20, Some(40), 9),
            vec![(21, 9, 901), (39, 9, 902), (31, 9, 903)],
            vec![(19, 9, 904), (41, 9, 905)],
        ),
        (
            look(0, Seek::Exact, 25, None, 1),
            vec![(25, 9, 901)],
            vec![(24, 9, 902), (26, 9, 903)],
        ),
        (
            look(1, Seek::Exact, 9, None, 9),
            vec![(11, 9, 901), (60, 9, 902)],
            vec![(11, 8, 903), (60, 10, 904)],
        ),
        (
            look(1, Seek::Exact, 3, None, 9),
            vec![(11, 3, 901), (60, 3, 902)],
            vec![(12, 2, 903), (13, 4, 904)],
        ),
        (
            look(2, Seek::Exact, 250, None, 1),
            vec![(11, 9, 250)],
            vec![(12, 9, 251), (13, 9, 249)],
        ),
        (
            look(2, Seek::AtOrAfter, 150, Some(350), 9),
            vec![(11, 9, 150), (12, 9, 349)],
            vec![(13, 9, 149), (14, 9, 350)],
        ),
        (
            look(0, Seek::Last, 0, None, 1),
            vec![(51, 9, 901), (4_000_000, 9, 902)],
            vec![],
        ),
        (
            look(0, Seek::First, 0, None, 1),
            vec![(9, 9, 901), (1, 9, 902)],
            vec![],
        ),
        (
            look(0, Seek::Before, 35, None, 2),
            vec![(34, 9, 901), (31, 9, 902), (21, 9, 903)],
            vec![(35, 9, 904), (36, 9, 905)],
        ),
        (
            look(0, Seek::First, 0, None, 99),
            vec![(9, 9, 901), (35, 9, 902), (51, 9, 903)],
            vec![],
        ),
    ];
    let dir = tempfile::tempdir().unwrap();
    let (db, table) = fixed(dir.path());
    for (read, refused, taken) in cases {
        let mut reader = db.begin(Isolation::Serializable);
        scan(&mut reader, &table, &read).unwrap();
        for level in [Isolation::ReadCommitted, Isolation::Serializable] {
            for (id, group, code) in &refused {
                let mut writer = db.begin(level);
                let done = writer.insert(&table, &row(*id, *group, *code));
                assert!(
                    matches!(done, Err(Error::LockNotAvailable)),
                    "{read:?}: {id} {group} {code}: {done:?}"
                );
            }
            for (id, group, code) in &taken {
                let mut writer = db.begin(level);
                let done = writer.insert(&table, &row(*id, *group, *code));
                assert!(done.is_ok(), "{read:?}: {id} {group} {code}: {done:?}");
            }
        }
        // The reader can insert these rows itself, and other transactions can after its end.
        let (id, group, code) = refused[0];
        reader.insert(&table, &row(id, group, code)).unwrap();
        reader.rollback().unwrap();
        for (id, group, code) in &refused {
            let mut writer = db.begin(Isolation::ReadCommitted);
            writer.insert(&table, &row(*id, *group, *code)).unwrap();
        }
    }
}

/// A read waits for a row that another transaction has inserted and not committed; it does not skip the row.
#[test]
fn what_is_being_inserted_is_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let (db, table) = fixed(dir.path());
    let mut writer = db.begin(Isolation::ReadCommitted);
    writer.insert(&table, &row(25, 9, 250)).unwrap();
    for read in [
        look(0, Seek::AtOrAfter, 20, Some(30), 9),
        look(0, Seek::Last, 0, None, 9),
        look(1, Seek::Exact, 9, None, 9),
        look(2, Seek::Exact, 250, None, 9),
        look(2, Seek::Before, 300, None, 9),
    ] {
        let mut reader = db.begin(Isolation::Serializable);
        let read = scan(&mut reader, &table, &read);
        assert!(matches!(read, Err(Error::LockNotAvailable)), "{read:?}");
    }
}

/// The state that caused a refusal can't change until the transaction ends.
#[test]
fn a_refusal_is_a_read() {
    let dir = tempfile::tempdir().unwrap();
    let (db, table) = fixed(dir.path());
    let key = |id: u32| table.encode_key(0, &[id.into()]).unwrap();
    let mut reader = db.begin(Isolation::Serializable);
    let done = reader.insert(&table, &row(60, 9, 300));
    assert!(matches!(done, Err(Error::Duplicate { index: 2 })));
    let done = reader.delete(&table, &key(25));
    assert!(matches!(done, Err(Error::NotFound { .. })));
    let mut writer = db.begin(Isolation::ReadCommitted);
    let done = writer.delete(&table, &key(30));
    assert!(matches!(done, Err(Error::LockNotAvailable)), "{done:?}");
    let done = writer.insert(&table, &row(25, 9, 901));
    assert!(matches!(done, Err(Error::LockNotAvailable)), "{done:?}");
}

/// At this level an index-only cursor locks the rows, and reads the rows instead of the entries.
#[test]
fn an_index_gives_its_strings_whatever_is_locked() {
    let dir = tempfile::tempdir().unwrap();
    let db = Database::open(dir.path(), options()).unwrap();
    let name = Column::new("name", ColumnType::VarBytes { max: 3000 });
    let schema = TableSchema {
        columns: vec![
            Column::new("id", INT),
            name.nullable().collation(NO_CASE),
            Column::new("body", ColumnType::Large { max: 1 << 20 }),
        ],
        primary: Some(Key::new(&[0])),
        indexes: vec![
            Index::new("name", &[1]),
            Index::new("unique", &[1]).unique(),
        ],
        user: vec![],
    };
    let table = db.create_table("t", &schema).unwrap();
    // The last name is stored outside its row.
    let names = [None, Some(""), Some("Ada"), Some("grace")];
    let long = "Z".repeat(2_000);
    let body = vec![b'b'; 3_400];
    let mut txn = db.begin(Isolation::ReadCommitted);
    let mut expected = Vec::new();
    for (id, name) in (0_u32..).zip(names.into_iter().chain([Some(&long[..])])) {
        let value = name.map_or(Value::Null, Value::from);
        let row = [id.into(), value, Value::Bytes(&body)];
        txn.insert(&table, &row).unwrap();
        expected.push(name.map(str::to_owned));
    }
    txn.commit().unwrap();

    let options = CursorOptions {
        index_only: true,
        ..CursorOptions::default()
    };
    for isolation in [Isolation::RepeatableRead, Isolation::Serializable] {
        for index in 1..=2 {
            let place = table.text_place(index, 1).unwrap();
            let mut cursor = Cursor::new(&table, index, options);
            let mut txn = db.begin(isolation);
            let text = |cursor: &Cursor| {
                let mut out = vec![0; 3_000];
                match cursor.text(&place, &mut out).unwrap() {
                    Text::Null => None,
                    Text::Bytes(n) => Some(String::from_utf8(out[..n].to_vec()).unwrap()),
                }
            };
            let mut found = Vec::new();
            let mut more = cursor.seek(&mut txn, &[], Seek::First).unwrap();
            while more {
                found.push(text(&cursor));
                more = cursor.next(&mut txn).unwrap();
            }
            assert_eq!(found, expected, "{isolation:?}, index {index}");
            let key = table.encode_key(index, &["ADA".into()]).unwrap();
            assert!(cursor.seek(&mut txn, &key, Seek::Exact).unwrap());
            assert_eq!(
                text(&cursor).as_deref(),
                Some("Ada"),
                "{isolation:?}, index {index}"
            );
            let mut short = [0; 2];
            assert!(cursor.text(&place, &mut short).is_err());
        }
    }
}
