//! Prepared transactions on a disk that fails and loses power at any operation.
//!
//! Recovery finds each of them, with the locks of its changes, exactly if it was prepared and not decided; and each
//! decision holds.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use peregrine::os::simulated::{FaultOn, SimulatedOs};
use peregrine::{
    Column, ColumnType, Cursor, CursorOptions, Database, Error, Index, Isolation, Key, OwnedValue,
    Seek, Table, TableSchema, Transaction, Value, Xid,
};
use rand::rngs::StdRng;
use rand::seq::IteratorRandom;
use rand::{Rng, SeedableRng};

use crate::{assert_sound, open};

const KEYS: u64 = 40;

/// A row's version, which determines its columns.
type Rows = BTreeMap<u64, u64>;
/// A transaction's changes of rows; `None`: it deletes the row.
type Changes = BTreeMap<u64, Option<u64>>;

fn schema() -> TableSchema {
    let number = |name| {
        let (bytes, signed) = (8, false);
        Column::new(name, ColumnType::Int { bytes, signed })
    };
    TableSchema {
        columns: vec![
            number("id"),
            number("version"),
            Column::new("text", ColumnType::Large { max: 1 << 20 }),
        ],
        primary: Some(Key::new(&[0])),
        indexes: vec![Index::new("by_version", &[1]).unique()],
        user: vec![],
    }
}

/// Returns a text that is sometimes outside the row, and sometimes so long that the transaction's redo goes to the log
/// in parts.
fn text(version: u64) -> Vec<u8> {
    let len = match version % 11 {
        0 => 150_000,
        1 | 2 => 5000,
        other => other * 10,
    };
    vec![version as u8; len as usize]
}

fn name(number: u64) -> Xid {
    Xid::new(number as i64, &number.to_be_bytes(), b"").unwrap()
}

/// The operation at which the device failed.
#[derive(Debug)]
enum Doubt {
    None,
    Plain(Changes),
    Prepare(u64, Changes),
    Commit(u64),
    Rollback(u64),
}

/// The expected state.
struct Model {
    rng: StdRng,
    rows: Rows,
    prepared: BTreeMap<u64, Changes>,
    next_version: u64,
    next_name: u64,
    doubt: Doubt,
    decided: u64,
}

/// An open database, and the prepared transactions whose objects still exist.
struct Run {
    db: Database,
    table: Arc<Table>,
    attached: BTreeMap<u64, Transaction>,
}

impl Run {
    fn new(db: Database) -> Run {
        let table = db.table("t").unwrap();
        Run {
            db,
            table,
            attached: BTreeMap::new(),
        }
    }

    fn begin(&self) -> Transaction {
        let mut txn = self.db.begin(Isolation::ReadCommitted);
        txn.set_lock_wait_timeout(Duration::ZERO);
        txn
    }

    fn put(
        &self,
        txn: &mut Transaction,
        rows: &Rows,
        key: u64,
        to: Option<u64>,
    ) -> peregrine::Result<()> {
        let id = self.table.encode_key(0, &[Value::UInt(key)])?;
        let Some(version) = to else {
            return txn.delete(&self.table, &id);
        };
        let text = text(version);
        let row = [Value::UInt(key), Value::UInt(version), Value::Bytes(&text)];
        match rows.contains_key(&key) {
            true => txn.update(&self.table, &id, &row),
            false => txn.insert(&self.table, &row),
        }
    }

    fn rows(&self) -> Rows {
        let mut txn = self.begin();
        let mut rows = Rows::new();
        let mut found = Vec::new();
        let mut cursor = Cursor::new(&self.table, 0, CursorOptions::default());
        let mut more = cursor.seek(&mut txn, &[], Seek::First).unwrap();
        while more {
            let row = cursor.row().unwrap();
            let values = row.to_values().unwrap();
            let [OwnedValue::UInt(id), OwnedValue::UInt(version), ..] = &values[..] else {
                panic!("{values:?}");
            };
            assert!(row.get_large(2, &mut found).unwrap());
            assert!(found == text(*version), "row {id}, version {version}");
            rows.insert(*id, *version);
            more = cursor.next(&mut txn).unwrap();
        }
        rows
    }

    fn end(&mut self, number: u64, commits: bool) -> peregrine::Result<()> {
        match (self.attached.remove(&number), commits) {
            (Some(mut txn), true) => txn.commit(),
            (Some(mut txn), false) => txn.rollback(),
            (None, true) => self.db.commit_prepared(&name(number)),
            (None, false) => self.db.rollback_prepared(&name(number)),
        }
    }
}

fn apply(rows: &mut Rows, changes: &Changes) {
    for (&key, change) in changes {
        match change {
            Some(version) => rows.insert(key, *version),
            None => rows.remove(&key),
        };
    }
}

impl Model {
    fn new(seed: u64) -> Model {
        Model {
            rng: StdRng::seed_from_u64(seed),
            rows: Rows::new(),
            prepared: BTreeMap::new(),
            next_version: 1,
            next_name: 1,
            doubt: Doubt::None,
            decided: 0,
        }
    }

    fn locked(&self) -> BTreeSet<u64> {
        self.prepared
            .values()
            .flat_map(|changes| changes.keys().copied())
            .collect()
    }

    /// Returns changes of rows that no transaction has locked.
    fn changes(&mut self, most: usize) -> Changes {
        let locked = self.locked();
        let count = self.rng.random_range(1..=most);
        let keys = (0..KEYS)
            .filter(|key| !locked.contains(key))
            .choose_multiple(&mut self.rng, count);
        let mut changes = Changes::new();
        for key in keys {
            let gone = self.rows.contains_key(&key) && self.rng.random_bool(0.3);
            self.next_version += 1;
            changes.insert(key, (!gone).then_some(self.next_version));
        }
        changes
    }

    /// Makes changes in a transaction; some rows are changed twice, or back and forth.
    fn make(&mut self, run: &Run, changes: &Changes) -> peregrine::Result<Transaction> {
        let mut txn = run.begin();
        let made = (|| {
            for (&key, &to) in changes {
                if self.rng.random_bool(0.3) {
                    let savepoint = txn.savepoint();
                    self.next_version += 1;
                    run.put(&mut txn, &self.rows, key, Some(self.next_version))?;
                    txn.rollback_to(&savepoint)?;
                }
                run.put(&mut txn, &self.rows, key, to)?;
            }
            Ok(())
        })();
        match made {
            Ok(()) => Ok(txn),
            Err(error) => {
                // The rollback may fail too, when the device is gone.
                let _ = txn.rollback();
                Err(error)
            }
        }
    }

    /// Runs one step; after an error [`Model::doubt`] tells in which operation.
    fn step(&mut self, run: &mut Run) -> peregrine::Result<()> {
        self.doubt = Doubt::None;
        let number = self.prepared.keys().copied().choose(&mut self.rng);
        let changes = self.changes(4);
        match (self.rng.random_range(0..10), number) {
            // A transaction that changes nothing leaves no trace.
            (0..5, _) if changes.is_empty() => {}
            (0..3, _) => {
                let mut txn = self.make(run, &changes)?;
                self.doubt = Doubt::Plain(changes.clone());
                txn.commit()?;
                apply(&mut self.rows, &changes);
            }
            (3..5, _) => {
                let mut txn = self.make(run, &changes)?;
                let number = self.next_name;
                self.next_name += 1;
                self.doubt = Doubt::Prepare(number, changes.clone());
                txn.prepare(&name(number))?;
                self.prepared.insert(number, changes);
                if self.rng.random_bool(0.5) {
                    run.attached.insert(number, txn);
                }
            }
            (5..7, Some(number)) => {
                self.doubt = Doubt::Commit(number);
                run.end(number, true)?;
                self.ended(number, true);
            }
            (7..9, Some(number)) => {
                self.doubt = Doubt::Rollback(number);
                run.end(number, false)?;
                self.ended(number, false);
            }
            (9, _) => run.db.checkpoint()?,
            _ => {}
        }
        self.doubt = Doubt::None;
        Ok(())
    }

    fn ended(&mut self, number: u64, committed: bool) {
        self.decided += 1;
        if let (Some(changes), true) = (self.prepared.remove(&number), committed) {
            apply(&mut self.rows, &changes);
        }
    }

    /// Finds out whether the operation in doubt took effect.
    fn resolve(&mut self, run: &Run, what: &str) {
        let listed: BTreeSet<Xid> = run.db.prepared().into_iter().map(|p| p.xid).collect();
        match std::mem::replace(&mut self.doubt, Doubt::None) {
            Doubt::None => {}
            Doubt::Plain(changes) => {
                let mut with = self.rows.clone();
                apply(&mut with, &changes);
                if run.rows() == with {
                    self.rows = with;
                }
            }
            Doubt::Prepare(number, changes) => {
                if listed.contains(&name(number)) {
                    self.prepared.insert(number, changes);
                }
            }
            Doubt::Commit(number) if !listed.contains(&name(number)) => self.ended(number, true),
            Doubt::Rollback(number) if !listed.contains(&name(number)) => self.ended(number, false),
            Doubt::Commit(_) | Doubt::Rollback(_) => {}
        }
        self.verify(run, what);
    }

    fn verify(&self, run: &Run, what: &str) {
        assert_eq!(run.rows(), self.rows, "{what}");
        let listed: Vec<Xid> = run.db.prepared().into_iter().map(|p| p.xid).collect();
        let expected: Vec<Xid> = self.prepared.keys().copied().map(name).collect();
        assert_eq!(listed, expected, "{what}");
        let locked = self.locked();
        for key in 0..KEYS {
            let mut txn = run.begin();
            let changed = run.put(&mut txn, &self.rows, key, Some(u64::MAX));
            match (locked.contains(&key), changed) {
                (true, Err(Error::LockNotAvailable)) | (false, Ok(())) => {}
                (locked, changed) => panic!("{what}: row {key}, locked: {locked}: {changed:?}"),
            }
            txn.rollback().unwrap();
        }
        for version in self
            .prepared
            .values()
            .flat_map(|changes| changes.values().flatten())
        {
            let mut txn = run.begin();
            let taken = run.put(&mut txn, &self.rows, KEYS, Some(*version));
            assert!(
                matches!(taken, Err(Error::LockNotAvailable)),
                "{what}: {taken:?}"
            );
        }
    }
}

/// Works on a disk that fails at operation `n`, then loses power.
///
/// Continues on the resulting disk, through another power loss during recovery. Returns the number of acknowledged
/// decisions, and whether the fault occurred.
fn life(seed: u64, on: FaultOn, n: u64) -> (u64, bool) {
    let mut os = SimulatedOs::new(seed);
    let mut model = Model::new(seed);
    let db = open(&os, seed).unwrap();
    db.create_table("t", &schema()).unwrap();
    drop(db);
    let mut met = false;
    for generation in 0..3 {
        let what = format!("seed {seed}, fault {n} on {on:?}, generation {generation}");
        let mut run = Run::new(open(&os, seed).unwrap());
        model.resolve(&run, &what);
        if generation == 0 {
            os.fail(on, n, ErrorKind::Other);
        }
        for _ in 0..25 {
            if let Err(error) = model.step(&mut run) {
                assert!(generation == 0, "{what}: {error}");
                met = true;
                break;
            }
        }
        let after = os.crash(n + generation);
        after.heal();
        os.heal();
        let Run {
            db,
            table,
            attached,
        } = run;
        drop((attached, table));
        if generation == 1 {
            // Closes in order, with prepared transactions left.
            db.close().unwrap();
            model.verify(&Run::new(open(&os, seed).unwrap()), &what);
        } else {
            drop(db);
        }
        assert_sound(&after, &what);
        // The power fails again while the database opens, at another operation.
        let again = after.crash(seed);
        again.fail(FaultOn::Any, n % 60, ErrorKind::Other);
        if let Ok(db) = open(&again, seed) {
            drop(db);
        }
        again.heal();
        os = again.crash(n);
        assert_sound(&os, &what);
    }
    let run = Run::new(open(&os, seed).unwrap());
    model.resolve(&run, "at the end");
    (model.decided, met)
}

#[test]
fn prepared_transactions_outlive_every_fault() {
    let (mut decided, mut faults) = (0, 0);
    for seed in 0..6 {
        let on = [FaultOn::Write, FaultOn::Sync, FaultOn::Any][seed as usize % 3];
        let mut n = 0;
        loop {
            let (ended, met) = life(seed, on, n);
            decided += ended;
            if !met {
                break;
            }
            faults += 1;
            n += 1 + n / 12;
        }
    }
    assert!(faults > 100, "only {faults} faults were met");
    assert!(decided > 500, "only {decided} decisions");
}

/// There is no space for the record of a commit or a rollback: the transaction stays prepared.
#[test]
fn a_full_disk_leaves_it_prepared() {
    for commits in [true, false] {
        let os = SimulatedOs::new(1);
        let db = open(&os, 1).unwrap();
        db.create_table("t", &schema()).unwrap();
        let mut model = Model::new(1);
        let mut run = Run::new(db);
        let changes: Changes = [(1, Some(1)), (2, Some(2))].into();
        let mut txn = model.make(&run, &changes).unwrap();
        txn.prepare(&name(1)).unwrap();
        drop(txn);
        model.prepared.insert(1, changes);
        os.set_capacity(Some(os.used()));
        let refused = loop {
            // Until the log is full to the last byte.
            let changes: Changes = [(3, Some(model.next_version + 100))].into();
            model.next_version += 1;
            let written = model.make(&run, &changes).and_then(|mut txn| txn.commit());
            match written {
                Ok(()) => apply(&mut model.rows, &changes),
                Err(Error::NoSpace { .. }) => match run.end(1, commits) {
                    Err(error) => break error,
                    // The record is smaller than the one that did not fit.
                    Ok(()) => {
                        model.ended(1, commits);
                        break Error::NoSpace {
                            path: "fits".into(),
                        };
                    }
                },
                Err(error) => panic!("{error}"),
            }
        };
        assert!(matches!(refused, Error::NoSpace { .. }), "{refused:?}");
        os.set_capacity(None);
        model.verify(&run, "with space again");
        if model.prepared.contains_key(&1) {
            run.end(1, commits).unwrap();
            model.ended(1, commits);
        }
        model.verify(&run, "decided");
        let after = os.crash(1);
        drop(run);
        model.verify(&Run::new(open(&after, 1).unwrap()), "after a crash");
    }
}

/// An opening may fail when prepared transactions are restored already.
///
/// They don't keep the directory locked, and the next opening restores them.
#[test]
fn an_opening_that_fails_lets_go_of_the_database() {
    let os = SimulatedOs::new(1);
    let db = open(&os, 1).unwrap();
    db.create_table("t", &schema()).unwrap();
    let mut run = Run::new(db);
    let mut txn = run.begin();
    run.put(&mut txn, &Rows::new(), 1, Some(1)).unwrap();
    txn.prepare(&name(1)).unwrap();
    txn.detach();
    drop(txn);
    let Run { db, table, .. } = run;
    drop((db, table));
    let mut failed = 0;
    // Tries each of the first calls, and fewer of the later ones, because reading a log in small pieces makes many
    // calls.
    let calls = std::iter::successors(Some(0), |n| Some(n + 1 + n / 200));
    for n in calls {
        os.fail(FaultOn::Any, n, ErrorKind::Other);
        let opened = open(&os, 1).map(drop);
        let met = os.struck() > 0;
        os.heal();
        match opened {
            Err(Error::InUse(dir)) => panic!("fault {n}: {} is locked", dir.display()),
            Err(_) => failed += 1,
            Ok(()) if met => {}
            Ok(()) => break,
        }
    }
    assert!(failed > 10, "only {failed} openings failed");
    run = Run::new(open(&os, 1).unwrap());
    assert_eq!(run.rows(), Rows::new());
    run.end(1, true).unwrap();
    assert_eq!(run.rows(), Rows::from([(1, 1)]));
}
