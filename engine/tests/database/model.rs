//! Random changes of a whole database against a plain model.
//!
//! One writer, with savepoints, changes a few tables, which it also creates and drops. Beside it, a reader has a
//! snapshot that must not change. Every index is compared in both directions, with rows and index-only, by prefixes and
//! by whole keys. The pool has the smallest size, so pages come and go all the time. Checkpoints and reopening (with
//! and without closing first) happen at any time.

use std::collections::BTreeMap;
use std::sync::Arc;

use peregrine::dump::Dump;
use peregrine::{
    Database, Error, Isolation, OwnedValue, RowLock, Savepoint, Table, TableSchema, Transaction,
    Value,
};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::tables::schemas::{self, borrow, collide, Row};

/// Rows by encoded clustered key.
type Rows = BTreeMap<Vec<u8>, Row>;

#[derive(Clone)]
struct ModelTable {
    schema: TableSchema,
    rows: Rows,
}

type Model = BTreeMap<String, ModelTable>;

struct World {
    rng: StdRng,
    dir: std::path::PathBuf,
    db: Option<Database>,
    committed: Model,
}

macro_rules! trace { ($($t:tt)*) => { if std::env::var_os("MODEL_TRACE").is_some() { eprintln!($($t)*) } } }

mod aggregates;
mod looks;

pub(crate) use aggregates::{answer, condition, holds};

const NAMES: [&str; 3] = ["app/one", "app/two", "other/three"];

impl World {
    fn db(&self) -> &Database {
        self.db.as_ref().unwrap()
    }

    fn pick_table(&mut self, model: &Model) -> Option<(String, Arc<Table>)> {
        if model.is_empty() {
            return None;
        }
        let n = self.rng.random_range(0..model.len());
        let name = model.keys().nth(n).unwrap().clone();
        let table = self.db().table(&name).unwrap();
        Some((name, table))
    }

    fn define(&mut self) {
        let name = NAMES[self.rng.random_range(0..NAMES.len())];
        match (
            self.rng.random_range(0..6),
            self.committed.contains_key(name),
        ) {
            (_, false) => {
                let schema = schemas::schema(&mut self.rng);
                let table = self.db().create_table(name, &schema).unwrap();
                assert_eq!(*table.schema(), schema);
                trace!("create {name} {:?} {:?}", schema.primary, schema.indexes);
                self.committed.insert(
                    name.into(),
                    ModelTable {
                        schema,
                        rows: Rows::new(),
                    },
                );
            }
            (0, true) => {
                trace!("drop {name}");
                self.db().drop_table(name).unwrap();
                self.committed.remove(name);
            }
            (1, true) => {
                trace!("truncate {name}");
                self.db().truncate_table(name).unwrap();
                self.committed.get_mut(name).unwrap().rows.clear();
            }
            (2, true) => {
                let to = NAMES[self.rng.random_range(0..NAMES.len())];
                let result = self.db().rename_table(name, to);
                if self.committed.contains_key(to) {
                    assert!(matches!(result, Err(Error::Exists(_))), "{result:?}");
                } else {
                    result.unwrap();
                    trace!("rename {name} to {to}");
                    let table = self.committed.remove(name).unwrap();
                    self.committed.insert(to.into(), table);
                }
            }
            (_, true) => {
                let schema = schemas::schema(&mut self.rng);
                let result = self.db().create_table(name, &schema);
                assert!(matches!(result, Err(Error::Exists(_))));
            }
        }
        let names: Vec<String> = self.committed.keys().cloned().collect();
        assert_eq!(self.db().table_names(), names);
    }

    fn reopen(&mut self) {
        trace!("reopen");
        let db = self.db.take().unwrap();
        if self.rng.random_bool(0.4) {
            db.close().unwrap();
        } else {
            drop(db);
        }
        self.compare_dump();
        self.db = Some(Database::open(&self.dir, schemas::options()).unwrap());
        let names: Vec<String> = self.committed.keys().cloned().collect();
        assert_eq!(self.db().table_names(), names);
        for (name, table) in &self.committed {
            assert_eq!(*self.db().table(name).unwrap().schema(), table.schema);
        }
    }

    /// Checks that a dump of the files, closed or not, has exactly the rows that recovery restores.
    fn compare_dump(&self) {
        let dump = Dump::open(&self.dir).unwrap();
        assert!(dump.missing().is_empty(), "{:?}", dump.missing());
        assert!(dump.table_names().eq(self.committed.keys()));
        for (name, table) in &self.committed {
            assert_eq!(dump.schema(name).unwrap(), &table.schema);
            let mut found = Vec::new();
            let mut row = |row: &[OwnedValue]| {
                found.push(row.to_vec());
                Ok(())
            };
            let mut missing = |what| panic!("{name}: {what}");
            let rows = dump.rows(name, &mut row, &mut missing).unwrap();
            assert_eq!(rows, found.len() as u64);
            assert!(
                found.iter().eq(table.rows.values()),
                "{name}: {found:?} is not {:?}",
                table.rows
            );
        }
    }

    /// Runs one transaction with random changes, savepoints, and a random end.
    fn transaction(&mut self, isolation: Isolation) {
        trace!("begin {isolation:?}");
        let mut txn = self.db().begin(isolation);
        let mut reader = self.db().begin(Isolation::RepeatableRead);
        let before = self.committed.clone();
        let mut reader_began = false;
        let mut model = self.committed.clone();
        let mut savepoints: Vec<(Savepoint, Model)> = vec![];
        for _ in 0..self.rng.random_range(1..40) {
            match self.rng.random_range(0..22) {
                0..=11 => self.change(&mut txn, &mut model),
                20 => self.bulk_insert(&mut txn, &mut model),
                21 => txn.end_bulk_insert().unwrap(),
                12 => {
                    trace!("savepoint {}", savepoints.len());
                    savepoints.push((txn.savepoint(), model.clone()));
                }
                13 => {
                    if !savepoints.is_empty() {
                        let n = self.rng.random_range(0..savepoints.len());
                        savepoints.truncate(n + 1);
                        let (savepoint, then) = &savepoints[n];
                        trace!("rollback to {n}");
                        txn.rollback_to(savepoint).unwrap();
                        model = then.clone();
                    }
                }
                14 => self.db().checkpoint().unwrap(),
                15 | 16 => {
                    // The reader's snapshot is taken at its first read, before or after changes.
                    self.look(&mut reader, &before, RowLock::None);
                    reader_began = true;
                }
                _ => {
                    txn.start_statement();
                    let lock = match self.rng.random_range(0..6) {
                        0 => RowLock::Shared,
                        1 => RowLock::Exclusive,
                        _ => RowLock::None,
                    };
                    self.look(&mut txn, &model, lock);
                    txn.end_statement();
                }
            }
        }
        let ended = match self.rng.random_range(0..8) {
            0 => {
                txn.rollback().unwrap();
                false
            }
            1 => {
                drop(txn);
                false
            }
            _ => {
                txn.commit().unwrap();
                true
            }
        };
        trace!("ended: {ended}");
        if ended {
            self.committed = model;
        }
        if reader_began {
            self.look(&mut reader, &before, RowLock::None);
        }
        drop(reader);
        let mut fresh = self.db().begin(isolation);
        let committed = self.committed.clone();
        self.look(&mut fresh, &committed, RowLock::None);
        drop(fresh);
        if ended {
            for (name, table) in &self.committed {
                let estimate = self.db().table(name).unwrap().estimate_rows();
                assert_eq!(estimate, table.rows.len() as u64, "row count of {name}");
            }
        }
    }

    fn change(&mut self, txn: &mut Transaction, model: &mut Model) {
        let Some((name, table)) = self.pick_table(model) else {
            return;
        };
        let entry = model.get_mut(&name).unwrap();
        let schema = entry.schema.clone();
        let target = (!entry.rows.is_empty()).then(|| {
            let n = self.rng.random_range(0..entry.rows.len());
            entry.rows.keys().nth(n).unwrap().clone()
        });
        match (self.rng.random_range(0..10), target) {
            (0..=1, Some(key)) => {
                trace!("{name}: delete {key:02x?}");
                txn.delete(&table, &key).unwrap();
                entry.rows.remove(&key);
            }
            (2..=4, Some(key)) => self.update(txn, &table, &schema, &mut entry.rows, &key),
            (5, Some(key)) => {
                // A row that does not exist.
                let mut other = key;
                other.push(7);
                let row = schemas::row(&mut self.rng, &schema);
                let missing = |r| matches!(r, Err(Error::NotFound { what: "row", .. }));
                assert!(missing(txn.delete(&table, &other)));
                if schema.primary.is_none() {
                    assert!(missing(txn.update(&table, &other, &borrow(&row))));
                }
            }
            _ => self.insert(txn, &table, entry),
        }
    }

    fn insert(&mut self, txn: &mut Transaction, table: &Arc<Table>, model: &mut ModelTable) {
        let row = schemas::row(&mut self.rng, &model.schema);
        let result = txn.insert(table, &borrow(&row));
        let hit = conflict(table, &model.schema, &model.rows, None, &row);
        let name = table.name();
        trace!("{name}: insert {:02x?} {result:?}", txn.last_key());
        check_duplicate(txn, result, hit, || {
            model.rows.insert(txn_key(txn), row.clone());
        });
    }

    /// Inserts several rows, most often into one table; may not end the bulk insert.
    fn bulk_insert(&mut self, txn: &mut Transaction, model: &mut Model) {
        let tables = self.rng.random_range(1..3);
        for _ in 0..tables {
            let Some((name, table)) = self.pick_table(model) else {
                return;
            };
            trace!("{name}: begin a bulk insert");
            txn.begin_bulk_insert(&table);
            for _ in 0..self.rng.random_range(1..20) {
                self.insert(txn, &table, model.get_mut(&name).unwrap());
            }
        }
    }

    fn update(
        &mut self,
        txn: &mut Transaction,
        table: &Table,
        schema: &TableSchema,
        rows: &mut Rows,
        key: &[u8],
    ) {
        let mut row = rows[key].clone();
        for (column, value) in row.iter_mut().enumerate() {
            if self.rng.random_bool(0.3) {
                *value = schemas::value(&mut self.rng, schema, column);
            }
        }
        // A program may give any column as unchanged.
        let mut given = borrow(&row);
        let old = rows[key].clone();
        let keeps = self.rng.random_bool(0.5);
        for (column, value) in given.iter_mut().enumerate() {
            if keeps && row[column] == old[column] && self.rng.random_bool(0.7) {
                *value = Value::OutOfRow(1);
            }
        }
        let result = txn.update(table, key, &given);
        trace!(
            "{}: update {key:02x?} -> {:02x?} {result:?}",
            table.name(),
            txn.last_key()
        );
        let hit = conflict(table, schema, rows, Some(key), &row);
        check_duplicate(txn, result, hit, || {
            rows.remove(key);
            rows.insert(txn_key(txn), row.clone());
        });
    }
}

fn txn_key(txn: &Transaction) -> Vec<u8> {
    txn.last_key().to_vec()
}

/// Returns the unique index, and the clustered key in it, that forbids `row` (when it replaces the row `replaces`).
fn conflict(
    table: &Table,
    schema: &TableSchema,
    rows: &Rows,
    replaces: Option<&[u8]>,
    row: &Row,
) -> Option<(usize, Vec<u8>)> {
    let others = || {
        rows.iter()
            .filter(|(key, _)| Some(key.as_slice()) != replaces)
    };
    if let Some(primary) = &schema.primary {
        let values: Vec<Value<'_>> = primary
            .parts
            .iter()
            .map(|p| row[p.column].as_value())
            .collect();
        let key = table.encode_key(0, &values).unwrap();
        if others().any(|(k, _)| k == &key) {
            return Some((0, key));
        }
    }
    schema.indexes.iter().enumerate().find_map(|(n, index)| {
        others()
            .find(|(_, other)| collide(schema, index, other, row))
            .map(|(key, _)| (n + 1, key.clone()))
    })
}

fn check_duplicate(
    txn: &Transaction,
    result: peregrine::Result<()>,
    hit: Option<(usize, Vec<u8>)>,
    done: impl FnOnce(),
) {
    match (result, hit) {
        (Ok(()), None) => done(),
        (Err(Error::Duplicate { index }), Some((want, key))) => {
            assert_eq!(index, want);
            assert_eq!(txn.duplicate_key(), key);
        }
        (result, hit) => panic!("{result:?}, but the model has {hit:?}"),
    }
}

fn run(seed: u64, steps: usize) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let mut world = World {
        rng: StdRng::seed_from_u64(seed),
        db: Some(Database::open(&path, schemas::options()).unwrap()),
        dir: path,
        committed: Model::new(),
    };
    for _ in 0..steps {
        match world.rng.random_range(0..10) {
            0 | 1 => world.define(),
            2 => world.reopen(),
            3 => world.db().checkpoint().unwrap(),
            4 => world.transaction(Isolation::ReadCommitted),
            5 => world.transaction(Isolation::Serializable),
            _ => world.transaction(Isolation::RepeatableRead),
        }
    }
    let committed = world.committed.clone();
    world.db.take().unwrap().close().unwrap();
    let mut report = peregrine::check::Report::default();
    peregrine::check::check(&world.dir, &mut report).unwrap();
    assert_eq!(report.problems, Vec::<String>::new());
    assert_eq!(report.unused_pages, 0, "of {} pages", report.pages);
    let found: Vec<(String, u64)> = report
        .tables
        .iter()
        .map(|t| (t.name.clone(), t.rows))
        .collect();
    let want: Vec<(String, u64)> = committed
        .iter()
        .map(|(n, t)| (n.clone(), t.rows.len() as u64))
        .collect();
    assert_eq!(found, want, "{report:?}");
}

#[test]
fn behaves_as_the_model() {
    let first: u64 = std::env::var("MODEL_SEED")
        .ok()
        .and_then(|s| s.parse().ok())
        .unwrap_or_else(rand::random);
    let runs = std::env::var("MODEL_RUNS")
        .ok()
        .and_then(|s| s.parse().ok())
        .unwrap_or(12);
    for n in 0..runs {
        let seed = first.wrapping_add(n);
        eprintln!("MODEL_SEED={seed}");
        run(seed, 40);
    }
}
