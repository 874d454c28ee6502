//! Snapshots older than a table: its earlier rows are gone, and a read must not report an empty table.

use std::collections::BTreeSet;
use std::sync::Arc;

use peregrine::{
    Column, Cursor, CursorOptions, Database, Error, Index, Isolation, Key, Seek, Table,
    TableOptions, TableSchema, Transaction, Value,
};
use proptest::prelude::*;

use crate::tables::schemas::{options, INT};

const SESSIONS: usize = 3;

fn schema() -> TableSchema {
    TableSchema {
        columns: vec![Column::new("id", INT)],
        primary: Some(Key::new(&[0])),
        indexes: vec![Index::new("again", &[0])],
        user: vec![],
    }
}

/// Returns all rows, by an index.
fn read(txn: &mut Transaction, table: &Arc<Table>, index: usize) -> Result<BTreeSet<u32>, Error> {
    let mut cursor = Cursor::new(table, index, CursorOptions::default());
    let mut rows = BTreeSet::new();
    let mut more = cursor.seek(txn, &[], Seek::First)?;
    while more {
        match cursor.row()?.get(0)? {
            Value::UInt(id) => rows.insert(id as u32),
            other => panic!("{other:?}"),
        };
        more = cursor.next(txn)?;
    }
    Ok(rows)
}

fn key(table: &Table, id: u32) -> Vec<u8> {
    table.encode_key(0, &[id.into()]).unwrap()
}

/// A step in a database of one table.
#[derive(Clone, Debug)]
enum Step {
    Snapshot(usize),
    Read(usize, usize),
    Insert(usize),
    End(usize),
    /// Inserts a row in a transaction of its own.
    Commit,
    Create,
    Drop,
    Truncate,
    /// Another table with the same rows replaces the table.
    ///
    /// Its rows are committed before, or after the given session has taken a snapshot.
    Copy(Option<usize>),
    Rename,
}

fn step() -> impl Strategy<Value = Step> {
    let session = 0..SESSIONS;
    prop_oneof![
        3 => session.clone().prop_map(Step::Snapshot),
        4 => (session.clone(), 0..2usize).prop_map(|(s, index)| Step::Read(s, index)),
        2 => session.clone().prop_map(Step::Insert),
        3 => session.clone().prop_map(Step::End),
        3 => Just(Step::Commit),
        2 => Just(Step::Create),
        1 => Just(Step::Drop),
        1 => Just(Step::Truncate),
        2 => proptest::option::of(session).prop_map(Step::Copy),
        1 => Just(Step::Rename),
    ]
}

/// The committed state of a table: its number, and its rows.
type Committed = Option<(u32, BTreeSet<u32>)>;

struct Session {
    txn: Transaction,
    /// The table's state in the session's snapshot.
    snapshot: Option<Committed>,
    own: BTreeSet<u32>,
    uses_table: bool,
}

fn holds(isolation: Isolation, steps: &[Step]) {
    let dir = tempfile::tempdir().unwrap();
    let db = Database::open(dir.path().join("db"), options()).unwrap();
    let mut names = ["t", "u"];
    let (mut now, mut tables, mut ids): (Committed, u32, u32) = (None, 0, 0);
    let mut sessions: Vec<Session> = (0..SESSIONS)
        .map(|_| Session {
            txn: db.begin(isolation),
            snapshot: None,
            own: BTreeSet::new(),
            uses_table: false,
        })
        .collect();
    for step in steps {
        let table = db.table(names[0]);
        assert_eq!(table.is_ok(), now.is_some());
        let busy = sessions.iter().any(|s| s.uses_table);
        match (step, table) {
            (Step::Snapshot(s), _) => {
                let session = &mut sessions[*s];
                session.txn.take_snapshot();
                session.snapshot.get_or_insert_with(|| now.clone());
            }
            (Step::Read(s, index), Ok(table)) => {
                let session = &mut sessions[*s];
                let seen = session.snapshot.get_or_insert_with(|| now.clone()).clone();
                let found = read(&mut session.txn, &table, *index);
                session.uses_table = true;
                match (seen, &now) {
                    (Some((then, rows)), Some((number, _))) if then == *number => {
                        assert_eq!(found.unwrap(), &rows | &session.own);
                    }
                    _ => {
                        let newer = |e: &Error| matches!(e, Error::TableNewerThanSnapshot(_));
                        assert!(found.as_ref().is_err_and(newer), "{found:?}");
                        let txn = &mut session.txn;
                        let key = key(&table, 1);
                        assert!(newer(&txn.get(&table, &key, |_| ()).unwrap_err()));
                        assert!(newer(&txn.delete(&table, &key).unwrap_err()));
                        let row = [Value::UInt(1)];
                        assert!(newer(&txn.update(&table, &key, &row).unwrap_err()));
                    }
                }
            }
            (Step::Insert(s), Ok(table)) => {
                ids += 1;
                let session = &mut sessions[*s];
                session.txn.insert(&table, &[ids.into()]).unwrap();
                session.own.insert(ids);
                session.uses_table = true;
            }
            (Step::End(s), _) => {
                let session = &mut sessions[*s];
                session.txn.commit().unwrap();
                let own = std::mem::take(&mut session.own);
                if let Some((_, rows)) = &mut now {
                    rows.extend(own);
                }
                session.snapshot = None;
                session.uses_table = false;
            }
            (Step::Commit, Ok(table)) => {
                ids += 1;
                let mut txn = db.begin(isolation);
                txn.insert(&table, &[ids.into()]).unwrap();
                txn.commit().unwrap();
                now.as_mut().unwrap().1.insert(ids);
            }
            (Step::Create, Err(_)) => {
                db.create_table(names[0], &schema()).unwrap();
                tables += 1;
                now = Some((tables, BTreeSet::new()));
            }
            (Step::Drop, Ok(_)) => match db.drop_table(names[0]) {
                Ok(()) => {
                    assert!(!busy);
                    now = None;
                }
                Err(error) => assert!(busy, "{error}"),
            },
            (Step::Truncate, Ok(_)) => match db.truncate_table(names[0]) {
                Ok(()) => {
                    assert!(!busy);
                    tables += 1;
                    now = Some((tables, BTreeSet::new()));
                }
                Err(error) => assert!(busy, "{error}"),
            },
            (Step::Copy(late), Ok(_)) if !busy => {
                let copy = db.create_table("copy", &schema()).unwrap();
                let mut txn = db.begin(isolation);
                let rows = now.clone().unwrap().1;
                for id in &rows {
                    txn.insert(&copy, &[(*id).into()]).unwrap();
                }
                if let Some(s) = late {
                    let session = &mut sessions[*s];
                    session.txn.take_snapshot();
                    session.snapshot.get_or_insert_with(|| now.clone());
                }
                txn.commit().unwrap();
                db.drop_table(names[0]).unwrap();
                db.rename_table_as_new("copy", names[0]).unwrap();
                tables += 1;
                now = Some((tables, rows));
            }
            (Step::Rename, Ok(_)) => {
                db.rename_table(names[0], names[1]).unwrap();
                names.swap(0, 1);
            }
            _ => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn a_snapshot_gives_what_it_saw_or_an_error(
        steps in proptest::collection::vec(step(), 10..80)
    ) {
        holds(Isolation::RepeatableRead, &steps);
    }
}

/// The snapshot of a single statement is newer, and SERIALIZABLE has none.
#[test]
fn only_snapshots_that_last_are_too_old() {
    let dir = tempfile::tempdir().unwrap();
    let db = Database::open(dir.path().join("db"), options()).unwrap();
    let other = db.create_table("other", &schema()).unwrap();
    for isolation in [Isolation::ReadCommitted, Isolation::Serializable] {
        let mut txn = db.begin(isolation);
        txn.start_statement();
        read(&mut txn, &other, 0).unwrap();
        let table = db.create_table("t", &schema()).unwrap();
        let mut writer = db.begin(isolation);
        writer.insert(&table, &[7u32.into()]).unwrap();
        writer.commit().unwrap();
        if isolation == Isolation::ReadCommitted {
            let found = read(&mut txn, &table, 0);
            assert!(matches!(found, Err(Error::TableNewerThanSnapshot(_))));
        }
        txn.end_statement();
        txn.start_statement();
        assert_eq!(read(&mut txn, &table, 1).unwrap(), BTreeSet::from([7]));
        txn.commit().unwrap();
        db.drop_table("t").unwrap();
    }
}

/// A transaction with an older snapshot can read a table of one session.
#[test]
fn tables_of_one_session_are_never_too_new() {
    let dir = tempfile::tempdir().unwrap();
    let db = Database::open(dir.path().join("db"), options()).unwrap();
    let mut txn = db.begin(Isolation::RepeatableRead);
    txn.take_snapshot();
    let own = TableOptions {
        of_one_session: true,
        ..TableOptions::default()
    };
    let table = db.create_table_with("own", &schema(), &own).unwrap();
    txn.insert(&table, &[1u32.into()]).unwrap();
    assert_eq!(read(&mut txn, &table, 0).unwrap(), BTreeSet::from([1]));
    txn.commit().unwrap();
    txn.take_snapshot();
    db.truncate_table("own").unwrap();
    assert_eq!(read(&mut txn, &table, 0).unwrap(), BTreeSet::new());
    txn.insert(&table, &[2u32.into()]).unwrap();
    assert_eq!(read(&mut txn, &table, 1).unwrap(), BTreeSet::from([2]));
}
