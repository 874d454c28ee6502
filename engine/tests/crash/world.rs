//! The work of the threads, and the expected state after a crash.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;

use peregrine::{
    Column, ColumnType, Cursor, CursorOptions, Database, Error, Index, Isolation, Key, Seek, Table,
    TableSchema, Transaction, Value,
};

/// Groups of rows that a thread changes, each in transactions of its own.
const GROUPS: usize = 6;
/// The most rows of a group.
const ROWS: u64 = 8;
const ACCOUNTS: u64 = 40;
const BALANCE: i64 = 1000;

/// The known versions of each group: the last acknowledged one, and the last one tried.
#[derive(Clone)]
pub struct World {
    threads: Vec<[Versions; GROUPS]>,
}

#[derive(Clone, Copy, Default)]
struct Versions {
    acknowledged: u64,
    tried: u64,
}

/// Like [`Versions`], while a thread works.
#[derive(Default)]
struct Progress {
    acknowledged: AtomicU64,
    tried: AtomicU64,
}

fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z ^ (z >> 31)
}

/// Returns row `row` of a group in a version: its padding and large value, or `None` when the version lacks the row.
fn content(group: u64, version: u64, row: u64) -> Option<(Vec<u8>, Vec<u8>)> {
    let seed = mix(group << 40 | version << 8 | row);
    if row > 0 && seed % 3 == 0 {
        return None;
    }
    let pad = vec![seed as u8; (seed >> 8) as usize % 1500];
    let large = match seed >> 32 & 7 {
        0 => (0..20_000u64).map(|i| mix(seed ^ i) as u8).collect(),
        _ => vec![(seed >> 16) as u8; 10],
    };
    Some((pad, large))
}

fn groups_schema() -> TableSchema {
    let number = |bytes| ColumnType::Int {
        bytes,
        signed: false,
    };
    TableSchema {
        columns: vec![
            Column::new("grp", number(4)),
            Column::new("row", number(4)),
            Column::new("version", number(8)),
            Column::new("pad", ColumnType::VarBytes { max: 2000 }),
            Column::new("large", ColumnType::Large { max: 1 << 20 }),
        ],
        primary: Some(Key::new(&[0, 1])),
        indexes: vec![Index::new("by_version", &[0, 2])],
        user: Vec::new(),
    }
}

fn accounts_schema() -> TableSchema {
    let number = |signed| ColumnType::Int { bytes: 8, signed };
    TableSchema {
        columns: vec![
            Column::new("id", number(false)),
            Column::new("amount", number(true)),
        ],
        primary: Some(Key::new(&[0])),
        indexes: vec![],
        user: Vec::new(),
    }
}

struct Tables {
    groups: Arc<Table>,
    accounts: Arc<Table>,
}

impl Tables {
    fn of(db: &Database) -> Tables {
        Tables {
            groups: db.table("groups").unwrap(),
            accounts: db.table("accounts").unwrap(),
        }
    }

    /// Changes a group from one version to another.
    fn change(
        &self,
        txn: &mut Transaction,
        group: u64,
        from: u64,
        to: u64,
    ) -> peregrine::Result<()> {
        for row in 0..ROWS {
            let before = content(group, from, row).filter(|_| from > 0);
            let key = [Value::UInt(group), Value::UInt(row)];
            let key = self.groups.encode_key(0, &key)?;
            let Some((pad, large)) = content(group, to, row) else {
                if before.is_some() {
                    txn.delete(&self.groups, &key)?;
                }
                continue;
            };
            let values = [
                Value::UInt(group),
                Value::UInt(row),
                Value::UInt(to),
                Value::Bytes(&pad),
                Value::Bytes(&large),
            ];
            match before {
                Some(_) => txn.update(&self.groups, &key, &values)?,
                None => txn.insert(&self.groups, &values)?,
            }
        }
        Ok(())
    }

    fn transfer(&self, txn: &mut Transaction, seed: u64) -> peregrine::Result<()> {
        let (from, to) = (seed % ACCOUNTS, (seed >> 8) % ACCOUNTS);
        if from == to {
            return Ok(());
        }
        for (account, change) in [(from, -7), (to, 7)] {
            let key = self.accounts.encode_key(0, &[Value::UInt(account)])?;
            let amount = txn.get(&self.accounts, &key, |row| row.get(1).map(|v| v.to_owned()))?;
            let Some(amount) = amount else {
                panic!("account {account} is gone")
            };
            let peregrine::OwnedValue::Int(amount) = amount? else {
                panic!("account {account} has no amount")
            };
            let values = [Value::UInt(account), Value::Int(amount + change)];
            txn.update(&self.accounts, &key, &values)?;
        }
        Ok(())
    }
}

fn may_happen(error: &Error) -> bool {
    matches!(
        error,
        Error::WriteConflict | Error::Deadlock | Error::LockWaitTimeout
    )
}

impl World {
    /// Creates the tables in an empty database, for so many threads.
    pub fn create(db: &Database, threads: usize) -> World {
        db.create_table("groups", &groups_schema()).unwrap();
        let accounts = db.create_table("accounts", &accounts_schema()).unwrap();
        let mut txn = db.begin(Isolation::ReadCommitted);
        for id in 0..ACCOUNTS {
            let row = [Value::UInt(id), Value::Int(BALANCE)];
            txn.insert(&accounts, &row).unwrap();
        }
        txn.commit().unwrap();
        World {
            threads: vec![Default::default(); threads],
        }
    }

    /// Lets the threads work until `steps` more transactions are acknowledged, then lets `crash` copy the disk at that
    /// moment, and stops them.
    pub fn work<D>(&mut self, db: &Database, steps: u64, crash: impl FnOnce() -> D) -> D {
        let stop = AtomicBool::new(false);
        let done = AtomicU64::new(0);
        let mut progress: Vec<[Progress; GROUPS]> = Vec::new();
        for groups in &self.threads {
            progress.push(std::array::from_fn(|at| Progress {
                acknowledged: groups[at].acknowledged.into(),
                tried: groups[at].tried.into(),
            }));
        }
        let disk = std::thread::scope(|scope| {
            for (thread, groups) in progress.iter().enumerate() {
                let (stop, done) = (&stop, &done);
                scope.spawn(move || work_on(db, thread, groups, stop, done));
            }
            while done.load(Ordering::Acquire) < steps {
                std::thread::yield_now();
            }
            let read = |what: fn(&Progress) -> &AtomicU64| -> Vec<[u64; GROUPS]> {
                let value = |p: &Progress| what(p).load(Ordering::SeqCst);
                progress
                    .iter()
                    .map(|p| std::array::from_fn(|at| value(&p[at])))
                    .collect()
            };
            // Transactions acknowledged before the crash must be found; those tried after it must not.
            let acknowledged = read(|p| &p.acknowledged);
            let disk = crash();
            let tried = read(|p| &p.tried);
            stop.store(true, Ordering::Release);
            for (thread, groups) in self.threads.iter_mut().enumerate() {
                for (at, versions) in groups.iter_mut().enumerate() {
                    *versions = Versions {
                        acknowledged: acknowledged[thread][at],
                        tried: tried[thread][at],
                    };
                }
            }
            disk
        });
        disk
    }

    /// Works on the first thread's groups until `steps` transactions are acknowledged, or an operation fails for an
    /// outside cause; returns that error.
    pub fn work_alone(&mut self, db: &Database, steps: u64) -> Option<Error> {
        let tables = Tables::of(db);
        let groups = &mut self.threads[0];
        for step in 0..steps {
            let at = mix(step) as usize % GROUPS;
            let versions = &mut groups[at];
            let from = versions.acknowledged;
            let mut txn = db.begin(Isolation::RepeatableRead);
            let changed = tables
                .change(&mut txn, at as u64, from, from + 1)
                .and_then(|()| tables.transfer(&mut txn, mix(step + 1000)));
            if let Err(error) = changed {
                // The rollback may fail too, when the device is gone.
                let _ = txn.rollback();
                return Some(error);
            }
            versions.tried = from + 1;
            if let Err(error) = txn.commit() {
                return Some(error);
            }
            versions.acknowledged = from + 1;
        }
        None
    }

    /// Compares a database with the known versions, and takes its versions as known.
    pub fn verify(&mut self, db: &Database, what: &str) {
        let tables = Tables::of(db);
        let mut txn = db.begin(Isolation::RepeatableRead);
        let mut rows = 0;
        for (thread, groups) in self.threads.iter_mut().enumerate() {
            for (at, versions) in groups.iter_mut().enumerate() {
                let group = (thread * GROUPS + at) as u64;
                let (version, found) = read_group(&tables.groups, &mut txn, group, what);
                assert!(
                    versions.acknowledged <= version && version <= versions.tried,
                    "{what}: group {group} has version {version}, acknowledged {}, tried {}",
                    versions.acknowledged,
                    versions.tried
                );
                *versions = Versions {
                    acknowledged: version,
                    tried: version,
                };
                rows += found;
            }
        }
        let mut all = Cursor::new(&tables.groups, 1, CursorOptions::default());
        let mut more = all.seek(&mut txn, &[], Seek::First).unwrap();
        let mut entries = 0;
        while more {
            entries += 1;
            more = all.next(&mut txn).unwrap();
        }
        assert_eq!(entries, rows, "{what}: entries of the index");

        let mut all = Cursor::new(&tables.accounts, 0, CursorOptions::default());
        let mut more = all.seek(&mut txn, &[], Seek::First).unwrap();
        let (mut sum, mut accounts) = (0, 0);
        while more {
            match all.row().unwrap().get(1).unwrap() {
                Value::Int(amount) => sum += amount,
                other => panic!("{what}: an amount of {other:?}"),
            }
            accounts += 1;
            more = all.next(&mut txn).unwrap();
        }
        assert_eq!(accounts, ACCOUNTS, "{what}");
        assert_eq!(sum, BALANCE * ACCOUNTS as i64, "{what}: money made or lost");
    }
}

/// Returns a group's version (0: it has no rows) and number of rows; all rows must have that version.
fn read_group(table: &Arc<Table>, txn: &mut Transaction, group: u64, what: &str) -> (u64, u64) {
    let mut cursor = Cursor::new(table, 0, CursorOptions::default());
    let prefix = table.encode_key(0, &[Value::UInt(group)]).unwrap();
    let mut more = cursor.seek(txn, &prefix, Seek::Exact).unwrap();
    let mut found = Vec::new();
    let (mut pad, mut large) = (Vec::new(), Vec::new());
    while more {
        let row = cursor.row().unwrap();
        let [Value::UInt(number), Value::UInt(version)] =
            [1, 2].map(|column| row.get(column).unwrap())
        else {
            panic!("{what}: a row of group {group} has other types")
        };
        assert!(row.get_large(3, &mut pad).unwrap());
        assert!(row.get_large(4, &mut large).unwrap());
        let values = (std::mem::take(&mut pad), std::mem::take(&mut large));
        found.push((number, version, values.0, values.1));
        more = cursor.next_same_prefix(txn).unwrap();
    }
    let version = found.first().map_or(0, |row| row.1);
    let expected: Vec<_> = (0..ROWS)
        .filter(|_| version > 0)
        .filter_map(|row| {
            let (pad, large) = content(group, version, row)?;
            Some((row, version, pad, large))
        })
        .collect();
    let short = |rows: &[(u64, u64, Vec<u8>, Vec<u8>)]| -> Vec<(u64, u64, usize, usize)> {
        let lengths = rows.iter().map(|r| (r.0, r.1, r.2.len(), r.3.len()));
        lengths.collect()
    };
    assert_eq!(short(&found), short(&expected), "{what}: group {group}");
    assert!(found == expected, "{what}: group {group} has other bytes");
    (version, found.len() as u64)
}

fn work_on(
    db: &Database,
    thread: usize,
    groups: &[Progress; GROUPS],
    stop: &AtomicBool,
    done: &AtomicU64,
) {
    let tables = Tables::of(db);
    let mut step = mix(thread as u64 + 1);
    while !stop.load(Ordering::Acquire) {
        step = mix(step + 1);
        let mut txn = db.begin(Isolation::RepeatableRead);
        if step % 4 == 0 {
            let outcome = tables
                .transfer(&mut txn, step >> 8)
                .and_then(|()| txn.commit());
            match outcome {
                Ok(()) => {
                    done.fetch_add(1, Ordering::AcqRel);
                }
                Err(error) if may_happen(&error) => txn.rollback().unwrap(),
                Err(error) => panic!("{error}"),
            }
            continue;
        }
        let at = (step >> 8) as usize % GROUPS;
        let group = (thread * GROUPS + at) as u64;
        let version = groups[at].acknowledged.load(Ordering::SeqCst);
        if step % 4 == 1 {
            // Tries some changes, and undoes part or all of them.
            let savepoint = txn.savepoint();
            tables
                .change(&mut txn, group, version, version + 100)
                .unwrap();
            if step >> 20 & 1 == 0 {
                txn.rollback().unwrap();
                continue;
            }
            txn.rollback_to(&savepoint).unwrap();
        }
        tables
            .change(&mut txn, group, version, version + 1)
            .unwrap();
        groups[at].tried.store(version + 1, Ordering::SeqCst);
        txn.commit().unwrap();
        groups[at].acknowledged.store(version + 1, Ordering::SeqCst);
        done.fetch_add(1, Ordering::AcqRel);
    }
}
