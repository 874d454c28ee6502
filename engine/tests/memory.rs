//! When the system has no memory for a large object, only the statement fails: it leaves nothing behind, and the
//! transaction continues.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;

use peregrine::check::Report;
use peregrine::{
    Column, ColumnType, Cursor, CursorOptions, Database, Durability, Error, Index, Isolation, Key,
    Options, Result, RowLock, Seek, Table, TableSchema, Transaction, Value,
};

/// Allocations of at least this many bytes are large: the engine's own are all smaller.
const LARGE: usize = 5 << 19;
/// Bytes of a large value.
const VALUE: usize = 5 << 20;

thread_local! {
    /// Number of large allocations that are still granted to this thread; `None`: all.
    static GRANTED: Cell<Option<usize>> = const { Cell::new(None) };
    /// Number of allocations that were refused.
    static REFUSED: Cell<usize> = const { Cell::new(0) };
}

struct Refusing;

fn refuses(bytes: usize) -> bool {
    if bytes < LARGE {
        return false;
    }
    let refused = GRANTED.try_with(|granted| match granted.get() {
        Some(0) => true,
        Some(n) => {
            granted.set(Some(n - 1));
            false
        }
        None => false,
    });
    let refused = refused.unwrap_or(false);
    if refused {
        REFUSED.with(|count| count.set(count.get() + 1));
    }
    refused
}

// SAFETY: the system's allocator, or null, which an allocator returns when it has no memory.
unsafe impl GlobalAlloc for Refusing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if refuses(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if refuses(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        if bytes > layout.size() && refuses(bytes) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promises.
        unsafe { System.realloc(at, layout, bytes) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises; the memory is the system's.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Refusing = Refusing;

/// Runs `work` while only the first `granted` large allocations succeed; returns its result, and the number refused.
fn granting<R>(granted: usize, work: impl FnOnce() -> R) -> (R, usize) {
    GRANTED.set(Some(granted));
    REFUSED.set(0);
    let result = work();
    GRANTED.set(None);
    (result, REFUSED.get())
}

fn options() -> Options {
    Options {
        pool_bytes: 2 << 20,
        durability: Durability::WriteAtCommit,
        background: false,
        ..Options::default()
    }
}

/// Columns id, note, value, other; an index of the note.
fn schema() -> TableSchema {
    let int = ColumnType::Int {
        bytes: 4,
        signed: false,
    };
    let large = ColumnType::Large { max: 1 << 30 };
    TableSchema {
        columns: vec![
            Column::new("id", int),
            Column::new("note", ColumnType::VarBytes { max: 50 }),
            Column::new("value", large),
            Column::new("other", large).nullable(),
        ],
        primary: Some(Key::new(&[0])),
        indexes: vec![Index::new("note", &[1])],
        user: vec![],
    }
}

fn key(table: &Table, id: u32) -> Vec<u8> {
    table.encode_key(0, &[id.into()]).unwrap()
}

fn row<'a>(id: u32, note: &'a str, value: &'a [u8]) -> [Value<'a>; 4] {
    [
        id.into(),
        note.as_bytes().into(),
        Value::Bytes(value),
        Value::Null,
    ]
}

/// A row in the form that a test keeps: id, note, length of its value and its first byte.
type Remembered = (u64, Vec<u8>, usize, Option<u8>);

/// Returns every row, read with all memory available, by both indexes.
fn content(txn: &mut Transaction, table: &Arc<Table>) -> Vec<Remembered> {
    let mut both = [0, 1].map(|index| {
        let mut cursor = Cursor::new(table, index, CursorOptions::default());
        let mut rows = Vec::new();
        let mut bytes = Vec::new();
        let mut more = cursor.seek(txn, b"", Seek::First).unwrap();
        while more {
            let row = cursor.row().unwrap();
            let Value::UInt(id) = row.get(0).unwrap() else {
                panic!("an id")
            };
            let Value::Bytes(note) = row.get(1).unwrap() else {
                panic!("a note")
            };
            row.get_large(2, &mut bytes).unwrap();
            assert!(bytes.iter().all(|b| *b == bytes[0]), "a mixed value");
            rows.push((id, note.to_vec(), bytes.len(), bytes.first().copied()));
            more = cursor.next(txn).unwrap();
        }
        rows.sort();
        rows
    });
    assert_eq!(both[0], both[1]);
    std::mem::take(&mut both[0])
}

fn remembered(id: u64, note: &str, value: u8) -> Remembered {
    (id, note.into(), VALUE, Some(value))
}

fn scan(txn: &mut Transaction, table: &Arc<Table>, index: usize) -> Result<usize> {
    let mut cursor = Cursor::new(table, index, CursorOptions::default());
    let (mut bytes, mut all) = (Vec::new(), 0);
    let mut more = cursor.seek(txn, b"", Seek::First)?;
    while more {
        cursor.row()?.get_large(2, &mut bytes)?;
        all += bytes.len();
        more = cursor.next(txn)?;
    }
    Ok(all)
}

/// An operation, and the expected table after it, which begins with rows 1 and 2.
struct Case {
    name: &'static str,
    /// Whether the operation needs memory for a large value.
    needs: bool,
    does: fn(&mut Transaction, &Arc<Table>, &[u8]) -> Result<()>,
    then: fn() -> Vec<Remembered>,
}

fn before() -> Vec<Remembered> {
    vec![remembered(1, "one", 1), remembered(2, "two", 2)]
}

const CASES: &[Case] = &[
    Case {
        name: "insert",
        needs: true,
        does: |txn, table, value| txn.insert(table, &row(3, "three", value)),
        then: || [before(), vec![remembered(3, "three", 9)]].concat(),
    },
    Case {
        name: "update of the value",
        needs: true,
        does: |txn, table, value| txn.update(table, &key(table, 1), &row(1, "one", value)),
        then: || vec![remembered(1, "one", 9), remembered(2, "two", 2)],
    },
    Case {
        name: "update of another column, the value given as it is",
        needs: false,
        does: |txn, table, _| {
            let kept = Value::OutOfRow(VALUE as u64);
            let row = [1u32.into(), b"uno"[..].into(), kept, Value::Null];
            txn.update(table, &key(table, 1), &row)
        },
        then: || vec![remembered(1, "uno", 1), remembered(2, "two", 2)],
    },
    Case {
        name: "update of the key",
        needs: true,
        does: |txn, table, _| {
            let kept = Value::OutOfRow(VALUE as u64);
            let row = [7u32.into(), b"one"[..].into(), kept, Value::Null];
            txn.update(table, &key(table, 1), &row)
        },
        then: || vec![remembered(2, "two", 2), remembered(7, "one", 1)],
    },
    Case {
        name: "delete",
        needs: false,
        does: |txn, table, _| txn.delete(table, &key(table, 1)),
        then: || vec![remembered(2, "two", 2)],
    },
    Case {
        name: "read of a row",
        needs: true,
        does: |txn, table, _| {
            let read = |row: peregrine::RowView<'_>| row.to_values().map(drop);
            txn.get(table, &key(table, 1), read)?.unwrap()
        },
        then: before,
    },
    Case {
        name: "locking read of a row",
        needs: true,
        does: |txn, table, _| {
            let read = |row: peregrine::RowView<'_>| row.get_large(2, &mut Vec::new()).map(drop);
            let key = key(table, 2);
            txn.get_locked(table, &key, RowLock::Exclusive, read)?
                .unwrap()
        },
        then: before,
    },
    Case {
        name: "scan",
        needs: true,
        does: |txn, table, _| {
            let read = scan(txn, table, 0)? + scan(txn, table, 1)?;
            assert_eq!(read, 4 * VALUE);
            Ok(())
        },
        then: before,
    },
    Case {
        name: "key as long as a value",
        needs: false,
        does: |_, table, value| {
            let key = table.encode_key(1, &[Value::Bytes(value)])?;
            assert!(key.len() < VALUE / 100, "{} bytes", key.len());
            Ok(())
        },
        then: before,
    },
];

fn filled(dir: &Path) -> (Database, Arc<Table>) {
    let db = Database::open(dir, options()).unwrap();
    let table = db.create_table("t", &schema()).unwrap();
    let mut txn = db.begin(Isolation::RepeatableRead);
    for (id, note, byte) in [(1, "one", 1), (2, "two", 2)] {
        txn.insert(&table, &row(id, note, &vec![byte; VALUE]))
            .unwrap();
    }
    txn.commit().unwrap();
    (db, table)
}

#[test]
fn a_refused_allocation_is_an_error_of_its_statement() {
    let value = vec![9; VALUE];
    for case in CASES {
        let dir = tempfile::tempdir().unwrap();
        let (db, table) = filled(dir.path());
        let mut refusals = 0;
        for granted in 0.. {
            assert!(granted < 40, "{}: it never has enough", case.name);
            let mut txn = db.begin(Isolation::RepeatableRead);
            let (result, refused) = granting(granted, || (case.does)(&mut txn, &table, &value));
            if refused == 0 {
                assert!(result.is_ok(), "{}: {result:?}", case.name);
                assert_eq!(content(&mut txn, &table), (case.then)(), "{}", case.name);
                txn.commit().unwrap();
                break;
            }
            refusals += 1;
            assert!(
                matches!(result, Err(Error::OutOfMemory { .. })),
                "{}, {granted} granted: {result:?}",
                case.name
            );
            assert_eq!(content(&mut txn, &table), before(), "{}", case.name);
            // The transaction continues: its later changes exist if it commits.
            let small = row(100, "small", b"x");
            txn.insert(&table, &small).unwrap();
            if granted % 2 == 0 {
                txn.commit().unwrap();
                let mut txn = db.begin(Isolation::RepeatableRead);
                let all = content(&mut txn, &table);
                assert_eq!(all.last().map(|row| row.0), Some(100), "{}", case.name);
                txn.delete(&table, &key(&table, 100)).unwrap();
                txn.commit().unwrap();
            } else {
                txn.rollback().unwrap();
            }
        }
        assert_eq!(refusals > 0, case.needs, "{}", case.name);
        drop(table);
        db.close().unwrap();
        let db = Database::open(dir.path(), options()).unwrap();
        let table = db.table("t").unwrap();
        let mut txn = db.begin(Isolation::RepeatableRead);
        assert_eq!(content(&mut txn, &table), (case.then)(), "{}", case.name);
    }
}

#[test]
fn what_can_not_be_undone_for_want_of_memory_is_undone_later_and_never_committed() {
    let dir = tempfile::tempdir().unwrap();
    let (db, table) = filled(dir.path());
    let mut txn = db.begin(Isolation::RepeatableRead);
    txn.insert(&table, &row(3, "three", b"x")).unwrap();
    let savepoint = txn.savepoint();
    // So long that it is in the log already, which must also get its undoing.
    let value = vec![9; VALUE];
    txn.update(&table, &key(&table, 1), &row(1, "one", &value))
        .unwrap();
    let (result, refused) = granting(0, || txn.rollback_to(&savepoint));
    assert!(refused > 0);
    assert!(
        matches!(result, Err(Error::OutOfMemory { .. })),
        "{result:?}"
    );
    txn.rollback_to(&savepoint).unwrap();
    txn.commit().unwrap();
    drop(txn);
    drop(table);
    drop(db);
    let db = Database::open(dir.path(), options()).unwrap();
    let table = db.table("t").unwrap();
    let mut txn = db.begin(Isolation::RepeatableRead);
    let small = (3, b"three".to_vec(), 1, Some(b'x'));
    let all = content(&mut txn, &table);
    assert_eq!(all, [before(), vec![small]].concat());
}

#[test]
fn a_check_needs_no_memory_for_large_values() {
    let dir = tempfile::tempdir().unwrap();
    let (db, _table) = filled(dir.path());
    let mut report = Report::default();
    let (checked, refused) = granting(0, || db.check_table("t", &|| false, &mut report));
    checked.unwrap();
    assert_eq!(refused, 0);
    assert!(report.problems.is_empty(), "{:?}", report.problems);
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
fn recovery_without_memory_is_refused_and_succeeds_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let crashed = tempfile::tempdir().unwrap();
    let (db, table) = filled(dir.path());
    // The files in the state after the process ends.
    copy(dir.path(), crashed.path());
    drop(table);
    drop(db);
    let mut refusals = 0;
    for granted in 0.. {
        assert!(granted < 40, "it never has enough");
        let (opened, refused) = granting(granted, || Database::open(crashed.path(), options()));
        if refused > 0 {
            refusals += 1;
            let error = opened.err();
            assert!(
                matches!(error, Some(Error::OutOfMemory { .. })),
                "{error:?}"
            );
            continue;
        }
        let db = opened.unwrap();
        let table = db.table("t").unwrap();
        let mut txn = db.begin(Isolation::RepeatableRead);
        assert_eq!(content(&mut txn, &table), before());
        break;
    }
    assert!(refusals > 0);
}
