//! Rows whose index entries others move while a locking read waits for them: each is found once.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use peregrine::{
    Column, Cursor, CursorOptions, Database, EntryFilter, Error, Index, Isolation, Key, RowLock,
    RowView, Seek, Table, TableSchema, Transaction, Value, Verdict,
};

use crate::schemas::{options, INT};

/// Rows 1 to 6: (id, number); the number, with an index, is ten times the id.
fn rows(dir: &Path) -> (Database, Arc<Table>) {
    let db = Database::open(dir.join("db"), options()).unwrap();
    let schema = TableSchema {
        columns: vec![Column::new("id", INT), Column::new("number", INT)],
        primary: Some(Key::new(&[0])),
        indexes: vec![Index::new("number", &[1]), Index::new("id_number", &[0, 1])],
        user: vec![],
    };
    let table = db.create_table("rows", &schema).unwrap();
    let mut txn = db.begin(Isolation::ReadCommitted);
    for id in 1..=6u32 {
        txn.insert(&table, &[id.into(), (10 * id).into()]).unwrap();
    }
    txn.commit().unwrap();
    (db, table)
}

fn row(cursor: &mut Cursor) -> (u64, u64) {
    let row = cursor.row().unwrap();
    match (row.get(0).unwrap(), row.get(1).unwrap()) {
        (Value::UInt(id), Value::UInt(number)) => (id, number),
        other => panic!("{other:?}"),
    }
}

fn give(txn: &mut Transaction, table: &Table, id: u32, number: u32) {
    let key = table.encode_key(0, &[id.into()]).unwrap();
    txn.update(table, &key, &[id.into(), number.into()])
        .unwrap();
}

/// A look through an index from a place on.
struct Look {
    index: usize,
    from: Vec<u32>,
    to: Seek,
    /// Forwards, where it ends: behind the entries with this number.
    until: Option<u32>,
    filter: Option<Box<dyn EntryFilter>>,
}

impl Look {
    fn at(from: u32, to: Seek) -> Look {
        Look {
            index: 1,
            from: vec![from],
            to,
            until: None,
            filter: None,
        }
    }

    /// The rows that it finds when row 3 gets a number meanwhile, and where it was looked for.
    fn meets(self, number: u32) -> Vec<(u64, u64)> {
        let dir = tempfile::tempdir().unwrap();
        let (db, table) = rows(dir.path());
        let mut writer = db.begin(Isolation::ReadCommitted);
        give(&mut writer, &table, 3, number);
        let (backward, prefix) = match self.to {
            Seek::ExactLast | Seek::AtOrBefore | Seek::Before | Seek::Last => (true, false),
            Seek::Exact => (false, true),
            _ => (false, false),
        };
        std::thread::scope(|scope| {
            let looks = scope.spawn(|| {
                let mut txn = db.begin(Isolation::ReadCommitted);
                txn.set_lock_wait_timeout(Duration::from_secs(20));
                let options = CursorOptions {
                    lock: RowLock::Exclusive,
                    ..CursorOptions::default()
                };
                let mut cursor = Cursor::new(&table, self.index, options);
                let values: Vec<Value<'_>> = self.from.iter().map(|&n| n.into()).collect();
                let from = table.encode_key(self.index, &values).unwrap();
                if let Some(until) = self.until {
                    let end = table.encode_key(self.index, &[until.into()]).unwrap();
                    cursor.set_end(&end, true);
                }
                cursor.set_filter(self.filter);
                let mut found = Vec::new();
                let mut on = cursor.seek(&mut txn, &from, self.to).unwrap();
                while on {
                    found.push(row(&mut cursor));
                    on = match (backward, prefix) {
                        (true, _) => cursor.prev(&mut txn).unwrap(),
                        (_, true) => cursor.next_same_prefix(&mut txn).unwrap(),
                        _ => cursor.next(&mut txn).unwrap(),
                    };
                }
                let ids = found.iter().map(|(id, _)| *id).collect::<Vec<_>>();
                assert_eq!(locked(&db, &table), ids.into_iter().collect());
                found
            });
            while db.status().lock_waits_now == 0 && !looks.is_finished() {
                std::thread::yield_now();
            }
            writer.commit().unwrap();
            looks.join().unwrap()
        })
    }
}

/// The rows that another transaction can't lock.
fn locked(db: &Database, table: &Arc<Table>) -> std::collections::BTreeSet<u64> {
    let mut other = db.begin(Isolation::ReadCommitted);
    other.set_lock_wait_timeout(Duration::ZERO);
    (1..=6u32)
        .filter(|id| {
            let key = table.encode_key(0, &[(*id).into()]).unwrap();
            match other.get_locked(table, &key, RowLock::Exclusive, |_| ()) {
                Ok(found) => {
                    assert!(found.is_some());
                    false
                }
                Err(Error::LockNotAvailable) => true,
                Err(error) => panic!("{error}"),
            }
        })
        .map(u64::from)
        .collect()
}

#[test]
fn a_row_that_moves_to_where_the_cursor_has_looked_is_found() {
    let look = || Look {
        until: Some(40),
        ..Look::at(20, Seek::AtOrAfter)
    };
    assert_eq!(look().meets(25), [(2, 20), (3, 25), (4, 40)]);
    assert_eq!(look().meets(20), [(2, 20), (3, 20), (4, 40)]);
    let from_first = Look {
        until: Some(40),
        ..Look::at(0, Seek::First)
    };
    assert_eq!(from_first.meets(5), [(1, 10), (2, 20), (3, 5), (4, 40)]);
    let after = Look {
        until: Some(40),
        ..Look::at(20, Seek::After)
    };
    assert_eq!(after.meets(21), [(3, 21), (4, 40)]);
}

#[test]
fn backwards_too() {
    let found = Look::at(40, Seek::AtOrBefore).meets(40);
    assert_eq!(found, [(4, 40), (3, 40), (2, 20), (1, 10)]);
    let found = Look::at(40, Seek::Before).meets(39);
    assert_eq!(found, [(3, 39), (2, 20), (1, 10)]);
    let found = Look::at(0, Seek::Last).meets(99);
    let all = [(6, 60), (5, 50), (4, 40), (3, 99), (2, 20), (1, 10)];
    assert_eq!(found, all);
}

#[test]
fn a_row_that_moves_to_where_the_cursor_has_not_begun_is_not() {
    let until = Some(40);
    let found = Look {
        until,
        ..Look::at(20, Seek::AtOrAfter)
    };
    assert_eq!(found.meets(19), [(2, 20), (4, 40)]);
    let found = Look {
        until,
        ..Look::at(20, Seek::After)
    };
    assert_eq!(found.meets(20), [(4, 40)]);
    let found = Look::at(40, Seek::AtOrBefore).meets(41);
    assert_eq!(found, [(4, 40), (2, 20), (1, 10)]);
    let found = Look::at(40, Seek::Before).meets(40);
    assert_eq!(found, [(2, 20), (1, 10)]);
}

#[test]
fn a_row_that_moves_on_is_found_once_and_in_its_place() {
    let look = |until| Look {
        until: Some(until),
        ..Look::at(20, Seek::AtOrAfter)
    };
    assert_eq!(look(50).meets(45), [(2, 20), (4, 40), (3, 45), (5, 50)]);
    assert_eq!(look(40).meets(45), [(2, 20), (4, 40)]);
    let found = Look::at(40, Seek::AtOrBefore).meets(15);
    assert_eq!(found, [(4, 40), (2, 20), (3, 15), (1, 10)]);
}

#[test]
fn among_the_entries_of_a_prefix() {
    let look = || Look {
        index: 2,
        ..Look::at(3, Seek::Exact)
    };
    assert_eq!(look().meets(29), [(3, 29)]);
    assert_eq!(look().meets(31), [(3, 31)]);
    let last = Look {
        index: 2,
        ..Look::at(3, Seek::ExactLast)
    };
    assert_eq!(last.meets(31)[0], (3, 31));
}

/// Keeps entries with even numbers.
struct Even;

impl EntryFilter for Even {
    fn look(&mut self, entry: &RowView<'_>) -> peregrine::Result<Verdict> {
        Ok(match entry.get(1)? {
            Value::UInt(n) if n % 2 == 0 => Verdict::Keep,
            _ => Verdict::Skip,
        })
    }
}

#[test]
fn the_filter_looks_at_the_entry_that_the_row_has_now() {
    let look = || Look {
        until: Some(40),
        filter: Some(Box::new(Even)),
        ..Look::at(20, Seek::AtOrAfter)
    };
    assert_eq!(look().meets(26), [(2, 20), (3, 26), (4, 40)]);
    assert_eq!(look().meets(25), [(2, 20), (4, 40)]);
}
