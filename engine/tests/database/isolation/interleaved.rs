//! Transactions that alternate in one thread, compared with a model: savepoints, bulk inserts, values outside of rows,
//! two-phase commits, reads that fail at any step, checkpoints and crashes.
//!
//! Many rows are so long that the log gets a transaction's changes in parts, and that few rows stay in memory.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use peregrine::check::Report;
use peregrine::os::simulated::{FaultOn, SimulatedOs};
use peregrine::{
    Column, ColumnType, Cursor, CursorOptions, Database, Error, Index, Isolation, Key, Options,
    OwnedValue, Savepoint, Seek, Table, TableSchema, Transaction, Value, Xid,
};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::tables::schemas::{noise, INT};

const HISTORIES: u64 = 12;
const STEPS: u32 = 400;
const IDS: u32 = 20;
const CODES: u32 = 30;
const LENGTHS: [usize; 6] = [0, 100, 3_400, 6_000, 40_000, 120_000];

/// Code, group, and the seed and length of the body.
type Row = (u32, u32, (u32, usize));
type Rows = BTreeMap<u32, Row>;
type Changes = BTreeMap<u32, Option<Row>>;

struct Open {
    txn: Transaction,
    reads_newest: bool,
    changes: Changes,
    marks: Vec<(Savepoint, Changes)>,
    /// Whether a read failed during one of its operations.
    hurt: bool,
    /// The name of a prepared transaction.
    name: Option<Xid>,
}

struct World {
    rng: StdRng,
    os: SimulatedOs,
    db: Database,
    table: Arc<Table>,
    committed: Rows,
    open: Vec<Open>,
    /// Prepared transactions without a session.
    parked: BTreeMap<Xid, Changes>,
    names: u32,
}

fn options() -> Options {
    Options {
        pool_bytes: 1 << 20,
        background: false,
        ..Options::default()
    }
}

fn schema() -> TableSchema {
    TableSchema {
        columns: vec![
            Column::new("id", INT),
            Column::new("code", INT),
            Column::new("group", INT),
            Column::new("body", ColumnType::Large { max: 1 << 20 }),
        ],
        primary: Some(Key::new(&[0])),
        indexes: vec![Index::new("code", &[1]).unique(), Index::new("group", &[2])],
        user: vec![],
    }
}

fn apply(rows: &mut Rows, changes: Changes) {
    for (id, row) in changes {
        match row {
            Some(row) => rows.insert(id, row),
            None => rows.remove(&id),
        };
    }
}

impl World {
    fn new(seed: u64) -> World {
        let os = SimulatedOs::new(seed);
        let db = Database::open_on(Arc::new(os.clone()), "/db", options()).unwrap();
        let table = db.create_table("t", &schema()).unwrap();
        World {
            rng: StdRng::seed_from_u64(seed),
            os,
            db,
            table,
            committed: Rows::new(),
            open: Vec::new(),
            parked: BTreeMap::new(),
            names: 0,
        }
    }

    fn key(&self, id: u32) -> Vec<u8> {
        self.table.encode_key(0, &[id.into()]).unwrap()
    }

    fn some_row(&mut self) -> Row {
        let length = LENGTHS[self.rng.random_range(0..LENGTHS.len())];
        let body = (self.rng.random(), length);
        let rng = &mut self.rng;
        (rng.random_range(0..CODES), rng.random_range(0..3), body)
    }

    /// Returns the rows that a transaction sees when it reads the newest rows.
    fn seen_by(&self, n: usize) -> Rows {
        let mut rows = self.committed.clone();
        apply(&mut rows, self.open[n].changes.clone());
        rows
    }

    fn begin(&mut self) {
        let reads_newest = self.rng.random_bool(0.7);
        let isolation = match reads_newest {
            true => Isolation::ReadCommitted,
            false => Isolation::Serializable,
        };
        let mut txn = self.db.begin(isolation);
        txn.set_lock_wait_timeout(Duration::ZERO);
        if self.rng.random_bool(0.3) {
            txn.begin_bulk_insert(&self.table);
        }
        self.open.push(Open {
            txn,
            reads_newest,
            changes: Changes::new(),
            marks: Vec::new(),
            hurt: false,
            name: None,
        });
    }

    /// Runs one row operation of a transaction; returns whether the transaction can do more.
    fn change(&mut self, n: usize) -> bool {
        let seen = self.seen_by(n);
        let id = self.rng.random_range(0..IDS);
        let mut row = self.some_row();
        let kind = self.rng.random_range(0..10);
        let to = match self.rng.random_bool(0.2) {
            true => self.rng.random_range(0..IDS),
            false => id,
        };
        let body = noise(row.2 .0, row.2 .1);
        let mut value = Value::Bytes(&body);
        let before = seen.get(&id);
        if let (5..=8, true, Some(before)) = (kind, self.rng.random_bool(0.4), before) {
            value = Value::OutOfRow(before.2 .1 as u64);
            row.2 = before.2;
        }
        let key = self.key(id);
        let (code, group) = (row.0, row.1);
        let txn = &mut self.open[n].txn;
        let result = match kind {
            0..=4 => txn.insert(&self.table, &[id.into(), code.into(), group.into(), value]),
            5..=8 => {
                let row = [to.into(), code.into(), group.into(), value];
                txn.update(&self.table, &key, &row)
            }
            _ => txn.delete(&self.table, &key),
        };
        let code_of_another = |but: Option<u32>| {
            let mut others = seen.iter().filter(|(id, _)| Some(**id) != but);
            others.any(|(_, row)| row.0 == code)
        };
        let open = &mut self.open[n];
        match (kind, result) {
            (0..=4, Ok(())) => {
                assert!(before.is_none() && !code_of_another(None));
                open.changes.insert(id, Some(row));
            }
            (5..=8, Ok(())) => {
                assert!(before.is_some() && !code_of_another(Some(id)));
                assert!(to == id || !seen.contains_key(&to));
                open.changes.insert(id, None);
                open.changes.insert(to, Some(row));
            }
            (_, Ok(())) => {
                assert!(before.is_some());
                open.changes.insert(id, None);
            }
            (0..=4, Err(Error::Duplicate { .. })) => {
                assert!(before.is_some() || code_of_another(None));
            }
            (5..=8, Err(Error::Duplicate { .. })) => {
                assert!(code_of_another(Some(id)) || (to != id && seen.contains_key(&to)));
            }
            (5.., Err(Error::NotFound { .. })) => assert!(before.is_none()),
            (_, Err(Error::LockNotAvailable)) => {}
            (_, Err(Error::Io { .. })) => assert!(open.hurt),
            // The operation was half undone.
            (_, Err(Error::Invalid(_))) => {
                assert!(open.hurt);
                return false;
            }
            (_, other) => panic!("{other:?}"),
        }
        true
    }

    /// Rolls back to a savepoint; when a read fails, rolls back to that or an earlier one.
    fn rollback_to(&mut self, n: usize) -> bool {
        loop {
            let marks = self.open[n].marks.len();
            if marks == 0 {
                return true;
            }
            let at = self.rng.random_range(0..marks);
            let open = &mut self.open[n];
            open.marks.truncate(at + 1);
            let (mark, changes) = open.marks[at].clone();
            match open.txn.rollback_to(&mark) {
                Ok(()) => {
                    open.changes = changes;
                    return true;
                }
                Err(Error::Io { .. }) => {
                    if self.rng.random_bool(0.5) {
                        return false;
                    }
                    self.os.heal();
                }
                // An earlier row operation could not be undone, and this savepoint was set after it.
                Err(Error::Invalid(_)) if open.hurt => return false,
                Err(error) => panic!("{error:?}"),
            }
        }
    }

    fn end(&mut self, n: usize, commits: bool) {
        let mut open = self.open.swap_remove(n);
        if !commits {
            let _undone_later = open.txn.rollback();
            return;
        }
        match open.txn.commit() {
            Ok(()) => apply(&mut self.committed, open.changes),
            Err(Error::Io { .. } | Error::Invalid(_)) if open.hurt => assert!(open.name.is_none()),
            Err(error) => panic!("{error:?}"),
        }
    }

    fn prepare(&mut self, n: usize) {
        self.names += 1;
        let name = Xid::new(1, &self.names.to_be_bytes(), b"").unwrap();
        let open = &mut self.open[n];
        match open.txn.prepare(&name) {
            Ok(()) => open.name = Some(name),
            Err(_) => return self.end(n, false),
        }
        if self.rng.random_bool(0.5) {
            let mut open = self.open.swap_remove(n);
            open.txn.detach();
            self.park(open);
        }
    }

    fn park(&mut self, open: Open) {
        if let Some(name) = open.name {
            self.parked.insert(name, open.changes);
        }
    }

    fn decide(&mut self) {
        if let Some((name, changes)) = self.parked.pop_first() {
            if self.rng.random_bool(0.6) {
                self.db.commit_prepared(&name).unwrap();
                apply(&mut self.committed, changes);
            } else {
                self.db.rollback_prepared(&name).unwrap();
            }
        }
    }

    /// Runs an operation during which every system call fails from some call on, and then loses power.
    fn wreck(&mut self) {
        let mut unknown = None;
        let calls = self.rng.random_range(0..40);
        self.os.fail(FaultOn::Any, calls, ErrorKind::Other);
        for open in &mut self.open {
            open.hurt = true;
        }
        let n = self.rng.random_range(0..self.open.len().max(1));
        let is_running = self.open.get(n).is_some_and(|open| open.name.is_none());
        match self.rng.random_range(0..6) {
            0 => drop(self.db.checkpoint()),
            1 => drop(self.db.purge()),
            2 if is_running => drop(self.rollback_to(n)),
            3 if is_running => {
                let _failed = self.open.swap_remove(n).txn.rollback();
            }
            _ if is_running => {
                let mut open = self.open.swap_remove(n);
                match open.txn.commit() {
                    Ok(()) => apply(&mut self.committed, open.changes),
                    Err(_) => unknown = Some(open.changes),
                }
            }
            _ => {}
        }
        self.crash(unknown);
    }

    /// Opens the database, perhaps after a first attempt in which a call fails and power is lost again.
    fn reopen(&mut self) {
        let fails = match self.rng.random_range(0..4) {
            0 => Some(FaultOn::Read),
            1 => Some(FaultOn::Any),
            _ => None,
        };
        if let Some(on) = fails {
            let calls = self.rng.random_range(0..150);
            self.os.fail(on, calls, ErrorKind::Other);
            let opened = Database::open_on(Arc::new(self.os.clone()), "/db", options());
            self.os.heal();
            self.os = self.os.crash(self.rng.random());
            drop(opened);
        }
        self.db = Database::open_on(Arc::new(self.os.clone()), "/db", options()).unwrap();
        self.table = self.db.table("t").unwrap();
    }

    /// Loses power and reopens.
    ///
    /// Then finds out whether `unknown` was committed.
    fn crash(&mut self, unknown: Option<Changes>) {
        self.os.heal();
        let os = self.os.crash(self.rng.random());
        for open in std::mem::take(&mut self.open) {
            // A transaction that has changed nothing leaves no trace.
            if open.txn.id().is_some() && !open.changes.is_empty() {
                self.park(open);
            }
        }
        self.os = os;
        self.reopen();
        if let Some(changes) = unknown {
            let mut rows = self.committed.clone();
            apply(&mut rows, changes);
            let mut txn = self.db.begin(Isolation::ReadCommitted);
            if Self::read(&self.table, &mut txn, 0).unwrap() == shown(&rows) {
                self.committed = rows;
            }
        }
        let prepared: Vec<Xid> = self.db.prepared().into_iter().map(|p| p.xid).collect();
        self.parked.retain(|name, changes| {
            assert!(prepared.contains(name) || changes.is_empty());
            prepared.contains(name)
        });
        for name in prepared {
            if !self.parked.contains_key(&name) {
                self.db.rollback_prepared(&name).unwrap();
            }
        }
        self.compare();
        let mut report = Report::default();
        self.db.check_table("t", &|| false, &mut report).unwrap();
        assert_eq!(report.problems, Vec::<String>::new());
    }

    fn read(table: &Arc<Table>, txn: &mut Transaction, index: usize) -> peregrine::Result<Rows> {
        let mut rows = Rows::new();
        let mut cursor = Cursor::new(table, index, CursorOptions::default());
        let mut found = cursor.seek(txn, &[], Seek::First)?;
        while found {
            match &cursor.row()?.to_values()?[..] {
                [OwnedValue::UInt(id), OwnedValue::UInt(code), OwnedValue::UInt(group), OwnedValue::Bytes(body)] =>
                {
                    let seed = crc(body);
                    let row = (*code as u32, *group as u32, (seed, body.len()));
                    assert!(rows.insert(*id as u32, row).is_none());
                }
                other => panic!("{other:?}"),
            }
            found = cursor.next(txn)?;
        }
        Ok(rows)
    }

    /// Checks that others see the committed rows, and a transaction also its own changes, by every index.
    fn compare(&mut self) {
        self.os.heal();
        for index in [0, 1, 2] {
            let mut txn = self.db.begin(Isolation::ReadCommitted);
            let read = Self::read(&self.table, &mut txn, index).unwrap();
            assert_eq!(read, shown(&self.committed), "index {index}");
        }
        for n in 0..self.open.len() {
            let seen = shown(&self.seen_by(n));
            let open = &mut self.open[n];
            if open.name.is_some() || !open.reads_newest {
                continue;
            }
            open.txn.start_statement();
            for index in [0, 1, 2] {
                match Self::read(&self.table, &mut open.txn, index) {
                    Ok(read) => assert_eq!(read, seen, "index {index}, by the transaction itself"),
                    Err(Error::Invalid(_)) => {}
                    Err(error) => panic!("{error:?}"),
                }
            }
        }
    }

    fn step(&mut self) {
        if self.open.len() < 3 && self.rng.random_bool(0.3) {
            self.begin();
        }
        let what = self.rng.random_range(0..100);
        match what {
            0 => return self.crash(None),
            1 => return self.wreck(),
            2..=3 => return self.db.checkpoint().unwrap(),
            4..=5 => return self.db.purge().unwrap(),
            6..=9 => return self.compare(),
            10..=11 => return self.decide(),
            _ if self.open.is_empty() => return,
            _ => {}
        }
        let n = self.rng.random_range(0..self.open.len());
        if self.open[n].name.is_some() {
            let commits = self.rng.random_bool(0.5);
            return self.end(n, commits);
        }
        if self.rng.random_bool(0.15) {
            let after = self.rng.random_range(0..20);
            self.os.fail(FaultOn::Read, after, ErrorKind::Other);
            self.open[n].hurt = true;
        }
        let goes_on = match what {
            12..=75 => self.change(n),
            76..=83 => {
                let open = &mut self.open[n];
                open.marks
                    .push((open.txn.savepoint(), open.changes.clone()));
                true
            }
            84..=91 => self.rollback_to(n),
            92..=93 => {
                self.prepare(n);
                true
            }
            _ => {
                let commits = self.rng.random_bool(0.8);
                self.end(n, commits);
                true
            }
        };
        if !goes_on {
            self.end(n, false);
        }
        self.os.heal();
    }
}

/// Returns rows in the form in which they are read: with a checksum of the body.
fn shown(rows: &Rows) -> Rows {
    let shown = |(&id, &(code, group, (seed, length))): (&u32, &Row)| {
        (id, (code, group, (crc(&noise(seed, length)), length)))
    };
    rows.iter().map(shown).collect()
}

fn crc(bytes: &[u8]) -> u32 {
    // FNV is good enough here.
    let step = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(16_777_619);
    bytes.iter().fold(2_166_136_261, step)
}

fn given(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

#[test]
fn transactions_in_turns_leave_what_a_model_says() {
    let first = given("MODEL_SEED").unwrap_or_else(|| rand::random::<u32>().into());
    for seed in first..first + given("MODEL_RUNS").unwrap_or(HISTORIES) {
        eprintln!("MODEL_SEED={seed}");
        let mut world = World::new(seed);
        for _ in 0..STEPS {
            world.step();
        }
        world.crash(None);
    }
}
