//! Prepared transactions: their changes and locks survive sessions and restarts until they are decided.

use std::sync::Arc;
use std::time::Duration;

use peregrine::{
    Column, ColumnType, Cursor, CursorOptions, Database, Error, Index, Isolation, Key, OwnedValue,
    Seek, Table, TableSchema, Transaction, TransactionState, Value, Xid,
};

use crate::tables::schemas::{options, INT};

fn xid(name: &str) -> Xid {
    Xid::new(1, name.as_bytes(), b"branch").unwrap()
}

/// `accounts` (number, unique code, note of any length) and `events` (text without a key).
fn schemas() -> [(&'static str, TableSchema); 2] {
    let note = Column::new("note", ColumnType::Large { max: 1 << 24 });
    let accounts = TableSchema {
        columns: vec![Column::new("id", INT), Column::new("code", INT), note],
        primary: Some(Key::new(&[0])),
        indexes: vec![Index::new("code", &[1]).unique()],
        user: vec![],
    };
    let events = TableSchema {
        columns: vec![Column::new("text", ColumnType::VarBytes { max: 100 })],
        primary: None,
        indexes: vec![],
        user: vec![],
    };
    [("accounts", accounts), ("events", events)]
}

struct Bank {
    dir: tempfile::TempDir,
    db: Database,
    accounts: Arc<Table>,
    events: Arc<Table>,
}

impl Bank {
    /// Creates accounts 1 to 5, with ten times their number as code, and one event.
    fn new() -> Bank {
        let dir = tempfile::tempdir().unwrap();
        let db = Database::open(dir.path().join("db"), options()).unwrap();
        for (name, schema) in schemas() {
            db.create_table(name, &schema).unwrap();
        }
        let bank = Bank {
            accounts: db.table("accounts").unwrap(),
            events: db.table("events").unwrap(),
            dir,
            db,
        };
        let mut txn = bank.begin();
        for id in 1..=5 {
            bank.insert(&mut txn, id, 10 * id, "old").unwrap();
        }
        txn.insert(&bank.events, &[Value::Bytes(b"opened")])
            .unwrap();
        txn.commit().unwrap();
        bank
    }

    /// Begins a transaction that does not wait.
    fn begin(&self) -> Transaction {
        let mut txn = self.db.begin(Isolation::ReadCommitted);
        txn.set_lock_wait_timeout(Duration::ZERO);
        txn
    }

    fn insert(
        &self,
        txn: &mut Transaction,
        id: u32,
        code: u32,
        note: &str,
    ) -> peregrine::Result<()> {
        txn.insert(
            &self.accounts,
            &[id.into(), code.into(), Value::Bytes(note.as_bytes())],
        )
    }

    fn update(
        &self,
        txn: &mut Transaction,
        id: u32,
        code: u32,
        note: Value<'_>,
    ) -> peregrine::Result<()> {
        let row = [id.into(), code.into(), note];
        txn.update(&self.accounts, &self.key(id), &row)
    }

    fn delete(&self, txn: &mut Transaction, id: u32) -> peregrine::Result<()> {
        txn.delete(&self.accounts, &self.key(id))
    }

    fn key(&self, id: u32) -> Vec<u8> {
        self.accounts
            .encode_key(0, &[Value::UInt(id.into())])
            .unwrap()
    }

    /// Returns the number, code and note of each account.
    fn rows(&self) -> Vec<(u64, u64, String)> {
        let mut txn = self.begin();
        let mut rows = Vec::new();
        let mut cursor = Cursor::new(&self.accounts, 0, CursorOptions::default());
        let mut more = cursor.seek(&mut txn, &[], Seek::First).unwrap();
        while more {
            let row = cursor.row().unwrap();
            let values = row.to_values().unwrap();
            match &values[..] {
                [OwnedValue::UInt(id), OwnedValue::UInt(code), OwnedValue::Bytes(note)] => {
                    rows.push((*id, *code, String::from_utf8(note.clone()).unwrap()))
                }
                other => panic!("{other:?}"),
            }
            more = cursor.next(&mut txn).unwrap();
        }
        rows
    }

    fn codes(&self) -> Vec<(u64, u64)> {
        self.rows()
            .into_iter()
            .map(|(id, code, _)| (id, code))
            .collect()
    }

    fn events(&self) -> usize {
        let mut txn = self.begin();
        let mut cursor = Cursor::new(&self.events, 0, CursorOptions::default());
        let mut more = cursor.seek(&mut txn, &[], Seek::First).unwrap();
        let mut events = 0;
        while more {
            events += 1;
            more = cursor.next(&mut txn).unwrap();
        }
        events
    }

    fn listed(&self) -> Vec<(Xid, bool)> {
        let listed = self.db.prepared().into_iter();
        listed.map(|p| (p.xid, p.detached)).collect()
    }

    /// Ends without a checkpoint, like a killed process, or with one; and opens again.
    fn restart(self, checkpoint: bool) -> Bank {
        let Bank {
            dir,
            db,
            accounts,
            events,
        } = self;
        drop((accounts, events));
        if checkpoint {
            db.close().unwrap();
        } else {
            drop(db);
        }
        let db = Database::open(dir.path().join("db"), options()).unwrap();
        Bank {
            accounts: db.table("accounts").unwrap(),
            events: db.table("events").unwrap(),
            dir,
            db,
        }
    }

    /// Prepares a transaction with every kind of change.
    fn prepared(&self, name: &str) -> Transaction {
        let mut txn = self.begin();
        self.update(&mut txn, 1, 11, Value::Bytes(b"new")).unwrap();
        self.delete(&mut txn, 2).unwrap();
        // The code of the deleted row.
        self.insert(&mut txn, 6, 20, "came").unwrap();
        txn.insert(&self.events, &[Value::Bytes(b"prepared")])
            .unwrap();
        txn.prepare(&xid(name)).unwrap();
        txn
    }

    /// Checks that other transactions can't change the rows of [`Bank::prepared`], but all others.
    fn assert_locked(&self) {
        let mut other = self.begin();
        for id in [1, 2] {
            let refused = self.update(&mut other, id, 100 + id, Value::Bytes(b"other"));
            assert!(
                matches!(refused, Err(Error::LockNotAvailable)),
                "{id}: {refused:?}"
            );
        }
        for (id, code) in [(6, 60), (7, 20), (7, 10), (7, 11)] {
            let refused = self.insert(&mut other, id, code, "other");
            assert!(
                matches!(refused, Err(Error::LockNotAvailable)),
                "{id}, {code}: {refused:?}"
            );
        }
        self.update(&mut other, 3, 33, Value::Bytes(b"other"))
            .unwrap();
        other.rollback().unwrap();
        assert_eq!(self.codes(), [(1, 10), (2, 20), (3, 30), (4, 40), (5, 50)]);
        assert_eq!(self.events(), 1);
    }

    fn assert_committed(&self) {
        assert_eq!(self.codes(), [(1, 11), (3, 30), (4, 40), (5, 50), (6, 20)]);
        assert_eq!(self.events(), 2);
        self.assert_free(1, 2);
    }

    fn assert_rolled_back(&self) {
        assert_eq!(self.codes(), [(1, 10), (2, 20), (3, 30), (4, 40), (5, 50)]);
        assert_eq!(self.events(), 1);
        self.assert_free(2, 6);
    }

    /// Checks that nothing is prepared, and that another transaction can change the row and use the free key.
    fn assert_free(&self, row: u32, key: u32) {
        assert!(self.db.prepared().is_empty());
        let mut other = self.begin();
        self.update(&mut other, row, 100 + row, Value::Bytes(b"other"))
            .unwrap();
        self.insert(&mut other, key, 100 + key, "other").unwrap();
        other.rollback().unwrap();
    }
}

#[test]
fn its_own_session_commits_it_or_rolls_it_back() {
    let bank = Bank::new();
    let mut txn = bank.prepared("a");
    bank.assert_locked();
    assert_eq!(bank.listed(), [(xid("a"), false)]);
    txn.rollback().unwrap();
    bank.assert_rolled_back();
    let mut txn = bank.prepared("a");
    txn.commit().unwrap();
    bank.assert_committed();
    bank.restart(false).assert_committed();
}

#[test]
fn nothing_else_can_be_done_with_it() {
    let bank = Bank::new();
    let mut txn = bank.prepared("a");
    let savepoint = txn.savepoint();
    for refused in [
        bank.update(&mut txn, 3, 33, Value::Bytes(b"more")),
        txn.get(&bank.accounts, &bank.key(3), |_| ()).map(drop),
        txn.rollback_to(&savepoint),
        txn.prepare(&xid("b")),
        bank.db.commit_prepared(&xid("a")),
        bank.db.rollback_prepared(&xid("c")),
    ] {
        assert!(
            matches!(refused, Err(Error::Invalid(_) | Error::NotFound { .. })),
            "{refused:?}"
        );
    }
    let mut other = bank.begin();
    bank.update(&mut other, 3, 33, Value::Bytes(b"other"))
        .unwrap();
    let taken = other.prepare(&xid("a"));
    assert!(matches!(taken, Err(Error::Invalid(_))), "{taken:?}");
    // The transaction continues normally.
    bank.update(&mut other, 3, 34, Value::Bytes(b"other"))
        .unwrap();
    other.rollback().unwrap();
    txn.rollback().unwrap();
    bank.assert_rolled_back();
}

#[test]
fn anybody_ends_it_by_its_name_once_its_session_is_gone() {
    let bank = Bank::new();
    drop(bank.prepared("a"));
    assert_eq!(bank.listed(), [(xid("a"), true)]);
    bank.assert_locked();
    bank.db.rollback_prepared(&xid("a")).unwrap();
    bank.assert_rolled_back();
    let mut txn = bank.prepared("b");
    txn.detach();
    // The object can begin another transaction.
    bank.update(&mut txn, 3, 33, Value::Bytes(b"next")).unwrap();
    txn.rollback().unwrap();
    bank.assert_locked();
    bank.db.commit_prepared(&xid("b")).unwrap();
    bank.assert_committed();
}

#[test]
fn the_object_that_gives_one_up_is_as_patient_as_before_and_of_the_same_session() {
    let bank = Bank::new();
    bank.db.set_lock_wait_timeout(Duration::from_millis(1));
    let mut txn = bank.prepared("a");
    txn.set_session(7);
    txn.detach();
    bank.update(&mut txn, 3, 33, Value::Bytes(b"next")).unwrap();
    let refused = bank.update(&mut txn, 1, 12, Value::Bytes(b"next"));
    assert!(
        matches!(refused, Err(Error::LockNotAvailable)),
        "{refused:?}"
    );
    let entries = bank.db.inspect().transactions;
    let own = entries
        .iter()
        .find(|t| Some(t.id) == txn.id().map(|id| id.0));
    assert_eq!(own.unwrap().session, 7);
}

#[test]
fn restarts_do_not_lose_it_nor_its_locks() {
    for commits in [true, false] {
        let mut bank = Bank::new();
        drop(bank.prepared("a"));
        for checkpoint in [false, true, true, false] {
            bank = bank.restart(checkpoint);
            assert_eq!(bank.listed(), [(xid("a"), true)]);
            bank.assert_locked();
            bank.db.checkpoint().unwrap();
        }
        if commits {
            bank.db.commit_prepared(&xid("a")).unwrap();
            bank.assert_committed();
            bank.restart(false).restart(true).assert_committed();
        } else {
            bank.db.rollback_prepared(&xid("a")).unwrap();
            bank.assert_rolled_back();
            bank.restart(false).restart(true).assert_rolled_back();
        }
    }
}

#[test]
fn one_that_lived_through_checkpoints_is_decided_after_a_crash() {
    for commits in [true, false] {
        let bank = Bank::new();
        let mut txn = bank.prepared("a");
        bank.db.checkpoint().unwrap();
        let mut other = bank.begin();
        bank.update(&mut other, 4, 44, Value::Bytes(b"other"))
            .unwrap();
        other.commit().unwrap();
        bank.db.checkpoint().unwrap();
        if commits {
            txn.commit().unwrap();
        } else {
            txn.rollback().unwrap();
        }
        // Others have changed its locked rows since, and these changes must stay.
        let mut other = bank.begin();
        bank.update(&mut other, 1, 99, Value::Bytes(b"later"))
            .unwrap();
        other.commit().unwrap();
        drop((txn, other));
        let bank = bank.restart(false);
        assert!(bank.db.prepared().is_empty());
        let codes = bank.codes();
        assert_eq!((codes[0], codes.contains(&(4, 44))), ((1, 99), true));
        assert_eq!(codes.contains(&(6, 20)), commits);
    }
}

#[test]
fn values_outside_of_the_row_are_kept() {
    let mut bank = Bank::new();
    let long = |c: &str| c.repeat(20_000);
    let mut txn = bank.begin();
    for id in [1, 2] {
        bank.update(&mut txn, id, 10 * id, Value::Bytes(long("a").as_bytes()))
            .unwrap();
    }
    txn.commit().unwrap();
    // One row keeps its value, and one gets another; with more redo than memory keeps.
    bank.update(&mut txn, 1, 11, Value::OutOfRow(20_000))
        .unwrap();
    bank.update(&mut txn, 2, 20, Value::Bytes(long("b").as_bytes()))
        .unwrap();
    for id in 100..120 {
        bank.insert(&mut txn, id, 10 * id, &long("c")).unwrap();
    }
    txn.prepare(&xid("long")).unwrap();
    drop(txn);
    for _ in 0..2 {
        bank = bank.restart(false);
        let rows = bank.rows();
        assert_eq!(rows.len(), 5);
        assert_eq!((rows[0].1, rows[0].2 == long("a")), (10, true));
    }
    bank.db.commit_prepared(&xid("long")).unwrap();
    let bank = bank.restart(true);
    let rows = bank.rows();
    assert_eq!(rows.len(), 25);
    assert_eq!((rows[0].1, rows[0].2 == long("a")), (11, true));
    assert_eq!((rows[1].1, rows[1].2 == long("b")), (20, true));
    assert!(rows[5..].iter().all(|row| row.2 == long("c")));
}

#[test]
fn what_was_taken_back_before_stays_so() {
    let bank = Bank::new();
    let mut txn = bank.begin();
    bank.update(&mut txn, 1, 11, Value::Bytes(b"kept")).unwrap();
    let savepoint = txn.savepoint();
    // Long enough that the log has a part of the transaction when it is undone.
    let long = "x".repeat(400_000);
    bank.update(&mut txn, 2, 22, Value::Bytes(long.as_bytes()))
        .unwrap();
    bank.insert(&mut txn, 8, 80, &long).unwrap();
    txn.rollback_to(&savepoint).unwrap();
    txn.prepare(&xid("a")).unwrap();
    drop(txn);
    let bank = bank.restart(false);
    bank.db.commit_prepared(&xid("a")).unwrap();
    assert_eq!(bank.codes(), [(1, 11), (2, 20), (3, 30), (4, 40), (5, 50)]);
    // The hidden keys of the transaction are not reused.
    drop(bank.prepared("b"));
    let bank = bank.restart(false);
    let mut other = bank.begin();
    other
        .insert(&bank.events, &[Value::Bytes(b"another")])
        .unwrap();
    other.commit().unwrap();
    bank.db.commit_prepared(&xid("b")).unwrap();
    assert_eq!(bank.events(), 3);
}

#[test]
fn tables_that_it_uses_are_kept() {
    let mut bank = Bank::new();
    drop(bank.prepared("a"));
    for _ in 0..2 {
        for refused in [
            bank.db.drop_table("accounts"),
            bank.db.rename_table("accounts", "others"),
            bank.db.truncate_table("events"),
        ] {
            assert!(matches!(refused, Err(Error::Busy(_))), "{refused:?}");
        }
        bank = bank.restart(false);
    }
    bank.db.commit_prepared(&xid("a")).unwrap();
    bank.db.rename_table("accounts", "others").unwrap();
    bank.db.drop_table("others").unwrap();
    bank.db.truncate_table("events").unwrap();
}

#[test]
fn tables_that_end_with_the_process_go_without_it() {
    let bank = Bank::new();
    bank.db.rename_table("events", "temporary/events").unwrap();
    drop(bank.prepared("a"));
    let Bank {
        dir,
        db,
        accounts,
        events,
    } = bank;
    drop((accounts, events));
    db.close().unwrap();
    for _ in 0..2 {
        let options = peregrine::Options {
            drop_on_open: Some("temporary/".into()),
            ..options()
        };
        let db = Database::open(dir.path().join("db"), options).unwrap();
        assert_eq!(db.table_names(), ["accounts"]);
        assert_eq!(db.prepared().len(), 1);
    }
    let db = Database::open(dir.path().join("db"), options()).unwrap();
    db.commit_prepared(&xid("a")).unwrap();
    let bank = Bank {
        accounts: db.table("accounts").unwrap(),
        events: db.create_table("events", &schemas()[1].1).unwrap(),
        dir,
        db,
    };
    assert_eq!(bank.codes(), [(1, 11), (3, 30), (4, 40), (5, 50), (6, 20)]);
}

#[test]
fn it_is_listed_as_prepared_and_holds_no_snapshot_back() {
    let bank = Bank::new();
    let mut txn = bank.db.begin(Isolation::RepeatableRead);
    txn.set_session(7);
    txn.get(&bank.accounts, &bank.key(3), |_| ()).unwrap();
    bank.update(&mut txn, 1, 11, Value::Bytes(b"new")).unwrap();
    txn.prepare(&xid("a")).unwrap();
    let look = || {
        let entries = bank.db.inspect().transactions;
        let mut prepared = entries
            .into_iter()
            .filter(|t| t.state == TransactionState::Prepared);
        let entry = prepared.next().unwrap();
        assert!(prepared.next().is_none());
        (entry.session, entry.snapshot_age, entry.rows_changed)
    };
    assert_eq!(look(), (7, None, 1));
    drop(txn);
    assert_eq!(look(), (0, None, 1));
    let bank = bank.restart(false);
    let entries = bank.db.inspect().transactions;
    assert!(entries
        .iter()
        .any(|t| t.state == TransactionState::Prepared && t.rows_changed == 1));
}

#[test]
fn one_that_changed_nothing_is_gone_after_a_restart() {
    let bank = Bank::new();
    let mut txn = bank.begin();
    txn.get_locked(
        &bank.accounts,
        &bank.key(1),
        peregrine::RowLock::Exclusive,
        |_| (),
    )
    .unwrap();
    txn.prepare(&xid("reader")).unwrap();
    drop(txn);
    let mut other = bank.begin();
    let refused = bank.update(&mut other, 1, 11, Value::Bytes(b"other"));
    assert!(
        matches!(refused, Err(Error::LockNotAvailable)),
        "{refused:?}"
    );
    drop(other);
    let bank = bank.restart(false);
    assert!(bank.db.prepared().is_empty());
    let mut other = bank.begin();
    bank.update(&mut other, 1, 11, Value::Bytes(b"other"))
        .unwrap();
}

#[test]
fn a_commit_in_two_halves_is_seen_before_it_is_durable() {
    let bank = Bank::new();
    let mut txn = bank.prepared("a");
    let syncs = bank.db.status().log_syncs;
    txn.commit_visibly().unwrap();
    bank.assert_committed();
    assert!(txn.is_committed_visibly());
    txn.finish_commit(false).unwrap();
    assert!(!txn.is_committed_visibly());
    bank.db.sync_log().unwrap();
    assert!(bank.db.status().log_syncs > syncs);
    drop(txn);
    bank.restart(false).assert_committed();
}

#[test]
fn a_dump_leaves_it_out_and_says_so() {
    let bank = Bank::new();
    drop(bank.prepared("a"));
    let mut other = bank.begin();
    bank.update(&mut other, 3, 33, Value::Bytes(b"other"))
        .unwrap();
    other.commit().unwrap();
    drop(other);
    let dumped = |bank: Bank| {
        let Bank {
            dir,
            db,
            accounts,
            events,
        } = bank;
        drop((db, accounts, events));
        let dump = peregrine::dump::Dump::open(dir.path().join("db")).unwrap();
        let mut codes = Vec::new();
        let mut row = |row: &[OwnedValue]| {
            codes.push(row[1].clone());
            Ok(())
        };
        let mut missing = |missing| panic!("{missing}");
        dump.rows("accounts", &mut row, &mut missing).unwrap();
        (codes, dump.state().contains("1 prepared"))
    };
    let expected = [10, 20, 33, 40, 50].map(OwnedValue::UInt).to_vec();
    assert_eq!(dumped(bank.restart(false)), (expected, true));
}

/// A snapshot would hold back purge until the decision.
#[test]
fn it_takes_no_snapshot_any_more() {
    let bank = Bank::new();
    let mut txn = bank.prepared("a");
    txn.take_snapshot();
    let transactions = bank.db.inspect().transactions;
    assert!(transactions
        .iter()
        .all(|entry| entry.snapshot_age.is_none()));
}
