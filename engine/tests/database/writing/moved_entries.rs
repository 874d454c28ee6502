//! Rows whose index entries other transactions move while a locking read waits for them: the read finds each once.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{mpsc, Arc};
use std::time::Duration;

use peregrine::{
    Cursor, CursorOptions, Database, EntryFilter, Index, Isolation, RowLock, RowView, Seek, Table,
    Transaction, Value, Verdict,
};

use crate::isolation::six_rows::{locked, six_rows};

fn numbered(dir: &Path) -> (Database, Arc<Table>) {
    let indexes = [("number", &[1][..]), ("id_number", &[0, 1])];
    six_rows(
        dir,
        indexes
            .map(|(name, columns)| Index::new(name, columns))
            .into(),
    )
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

/// A read of an index from a start on.
struct Look {
    index: usize,
    from: u32,
    to: Seek,
    /// The end of a forward read: after the entries with this number.
    until: Option<u32>,
    filter: Option<Box<dyn EntryFilter>>,
    /// Number of rows that it has found when row 3 gets another number.
    finds_before: usize,
    /// Whether the change is committed or rolled back in the end.
    commits: bool,
}

impl Look {
    fn at(from: u32, to: Seek) -> Look {
        Look {
            index: 1,
            from,
            to,
            until: None,
            filter: None,
            finds_before: 1,
            commits: true,
        }
    }

    fn until(self, number: u32) -> Look {
        Look {
            until: Some(number),
            ..self
        }
    }

    /// Row 3 gets its number before the read begins.
    fn late(self) -> Look {
        Look {
            finds_before: 0,
            ..self
        }
    }

    /// Returns the rows that the read finds, with their values, while row 3 gets a number.
    ///
    /// The writer ends when the read waits.
    fn meets(mut self, number: u32) -> Vec<(u64, u64)> {
        let dir = tempfile::tempdir().unwrap();
        let (db, table) = numbered(dir.path());
        let mut writer = db.begin(Isolation::ReadCommitted);
        let commits = self.commits;
        let change = |writer: &mut Transaction| give(writer, &table, 3, number);
        let is_late = self.finds_before == 0;
        if is_late {
            change(&mut writer);
        }
        let (reached, is_reached) = mpsc::channel();
        let (changed, is_changed) = mpsc::channel();
        let (db, table) = (&db, &table);
        std::thread::scope(|scope| {
            let looks = scope.spawn(move || {
                self.look(db, table, || {
                    reached.send(()).unwrap();
                    is_changed.recv().unwrap();
                })
            });
            if !is_late {
                is_reached.recv().unwrap();
                change(&mut writer);
                changed.send(()).unwrap();
            }
            while db.status().lock_waits_now == 0 && !looks.is_finished() {
                std::thread::yield_now();
            }
            match commits {
                true => writer.commit().unwrap(),
                false => writer.rollback().unwrap(),
            }
            looks.join().unwrap()
        })
    }

    fn look(&mut self, db: &Database, table: &Arc<Table>, reached: impl Fn()) -> Vec<(u64, u64)> {
        let mut txn = db.begin(Isolation::ReadCommitted);
        txn.set_lock_wait_timeout(Duration::from_secs(20));
        let options = CursorOptions {
            lock: RowLock::Exclusive,
            ..CursorOptions::default()
        };
        let mut cursor = Cursor::new(table, self.index, options);
        if let Some(until) = self.until {
            let end = table.encode_key(self.index, &[until.into()]).unwrap();
            cursor.set_end(&end, true);
        }
        cursor.set_filter(self.filter.take());
        let from = table.encode_key(self.index, &[self.from.into()]).unwrap();
        let mut found = Vec::new();
        let mut on = cursor.seek(&mut txn, &from, self.to).unwrap();
        while on {
            found.push(row(&mut cursor));
            if found.len() == self.finds_before {
                reached();
            }
            on = match self.to {
                Seek::Exact => cursor.next_same_prefix(&mut txn).unwrap(),
                Seek::AtOrAfter | Seek::After | Seek::First => cursor.next(&mut txn).unwrap(),
                _ => cursor.prev(&mut txn).unwrap(),
            };
        }
        let ids: BTreeSet<u64> = found.iter().map(|(id, _)| *id).collect();
        let locked: BTreeSet<u64> = locked(db, table).into_iter().map(u64::from).collect();
        assert_eq!(locked, ids);
        found
    }
}

#[test]
fn a_row_that_moves_to_where_the_cursor_has_looked_is_found() {
    let look = |from, to| Look::at(from, to).until(40);
    let found = look(20, Seek::AtOrAfter).meets(25);
    assert_eq!(found, [(2, 20), (3, 25), (4, 40)]);
    let found = look(20, Seek::AtOrAfter).meets(20);
    assert_eq!(found, [(2, 20), (3, 20), (4, 40)]);
    let found = look(10, Seek::After).meets(21);
    assert_eq!(found, [(2, 20), (3, 21), (4, 40)]);
}

#[test]
fn backwards_too() {
    let found = Look::at(40, Seek::AtOrBefore).meets(40);
    assert_eq!(found, [(4, 40), (3, 40), (2, 20), (1, 10)]);
    let found = Look::at(50, Seek::Before).meets(39);
    assert_eq!(found, [(4, 40), (3, 39), (2, 20), (1, 10)]);
}

/// The row may move again, by another transaction that has also waited for it.
#[test]
fn a_row_that_moves_twice_while_it_is_waited_for_is_found() {
    for (index, to, first, then) in [
        (1, Seek::First, 35, 25),
        (2, Seek::Exact, 35, 25),
        (1, Seek::AtOrBefore, 25, 35),
        (2, Seek::ExactLast, 25, 35),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let (db, table) = numbered(dir.path());
        let (db, table) = (&db, &table);
        let mut writer = db.begin(Isolation::ReadCommitted);
        give(&mut writer, table, 3, first);
        let waiting = |n: u64| {
            while db.status().lock_waits_now < n {
                std::thread::yield_now();
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut other = db.begin(Isolation::ReadCommitted);
                give(&mut other, table, 3, then);
                other.commit().unwrap();
            });
            waiting(1);
            let looks = scope.spawn(move || {
                let mut look = Look {
                    index,
                    ..Look::at(if index == 1 { 40 } else { 3 }, to).late()
                };
                look.look(db, table, || {})
            });
            waiting(2);
            writer.commit().unwrap();
            let found = looks.join().unwrap();
            assert!(
                found.contains(&(3, u64::from(then))),
                "{index} {to:?}: {found:?}"
            );
        });
    }
}

#[test]
fn a_row_that_moves_to_where_the_cursor_has_not_begun_is_not() {
    let look = |from, to| Look::at(from, to).until(40).late();
    let found = look(25, Seek::AtOrAfter).meets(24);
    assert_eq!(found, [(4, 40)]);
    let found = look(20, Seek::After).meets(20);
    assert_eq!(found, [(4, 40)]);
    let found = Look::at(35, Seek::AtOrBefore).late().meets(36);
    assert_eq!(found, [(2, 20), (1, 10)]);
    let found = Look::at(40, Seek::Before).late().meets(40);
    assert_eq!(found, [(2, 20), (1, 10)]);
}

#[test]
fn a_row_that_moves_on_is_found_once_and_in_its_place() {
    let look = || Look::at(20, Seek::AtOrAfter);
    let found = look().until(50).meets(45);
    assert_eq!(found, [(2, 20), (4, 40), (3, 45), (5, 50)]);
    assert_eq!(look().until(40).meets(45), [(2, 20), (4, 40)]);
    let found = Look::at(40, Seek::AtOrBefore).meets(15);
    assert_eq!(found, [(4, 40), (2, 20), (3, 15), (1, 10)]);
}

#[test]
fn a_row_that_is_moving_is_waited_for_where_it_goes() {
    let look = || Look::at(0, Seek::First).until(40).late();
    let found = look().meets(15);
    assert_eq!(found, [(1, 10), (3, 15), (2, 20), (4, 40)]);
    let back = Look {
        commits: false,
        ..look()
    };
    let found = back.meets(15);
    assert_eq!(found, [(1, 10), (2, 20), (3, 30), (4, 40)]);
    let found = Look::at(40, Seek::AtOrBefore).late().meets(35);
    assert_eq!(found, [(4, 40), (3, 35), (2, 20), (1, 10)]);
}

#[test]
fn among_the_entries_of_a_prefix() {
    let look = |to| Look {
        index: 2,
        ..Look::at(3, to).late()
    };
    assert_eq!(look(Seek::Exact).meets(29), [(3, 29)]);
    assert_eq!(look(Seek::Exact).meets(31), [(3, 31)]);
    assert_eq!(look(Seek::ExactLast).meets(29)[0], (3, 29));
    assert_eq!(look(Seek::ExactLast).meets(31)[0], (3, 31));
}

/// A new row does not exist for others until it is committed.
#[test]
fn a_row_that_is_being_inserted_is_not_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let (db, table) = numbered(dir.path());
    let mut writer = db.begin(Isolation::ReadCommitted);
    writer.insert(&table, &[7u32.into(), 25u32.into()]).unwrap();
    let mut look = Look {
        finds_before: 9,
        ..Look::at(20, Seek::AtOrAfter).until(40)
    };
    let found = look.look(&db, &table, || {});
    assert_eq!(found, [(2, 20), (3, 30), (4, 40)]);
}

/// A filter that keeps entries with even numbers.
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
        filter: Some(Box::new(Even)),
        ..Look::at(20, Seek::AtOrAfter).until(40)
    };
    assert_eq!(look().meets(26), [(2, 20), (3, 26), (4, 40)]);
    assert_eq!(look().meets(25), [(2, 20), (4, 40)]);
}
