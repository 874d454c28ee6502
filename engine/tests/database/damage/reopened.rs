//! A process is killed, another opens the database and continues, and then the power fails.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use peregrine::dump::Dump;
use peregrine::os::simulated::{Event, Loss, Moment, SimulatedOs};
use peregrine::os::Os;
use peregrine::{Database, Isolation, Options, Table, Value, Xid};

use crate::tables::schemas::{bodies, noise, options};

pub const ROWS: u32 = 30;

pub fn open(os: &SimulatedOs) -> peregrine::Result<Database> {
    open_on(Arc::new(os.clone()))
}

pub fn open_on(os: Arc<dyn Os>) -> peregrine::Result<Database> {
    let options = Options {
        background: false,
        ..options()
    };
    Database::open_on(os, "/db", options)
}

pub fn create(db: &Database, name: &str) {
    db.create_table(name, &bodies(4000)).unwrap();
}

/// Inserts rows with long bodies into a table.
pub fn fill(db: &Database, name: &str, rows: u32) {
    let table = db.table(name).unwrap();
    let mut txn = db.begin(Isolation::RepeatableRead);
    for id in 0..rows {
        let body = noise(id, 2500);
        let row = [Value::from(id), Value::from(&body[..])];
        txn.insert(&table, &row).unwrap();
    }
    txn.commit().unwrap();
}

/// Gives rows of a table new bodies.
pub fn renew(db: &Database, name: &str, ids: Range<u32>) {
    let table = db.table(name).unwrap();
    let mut txn = db.begin(Isolation::ReadCommitted);
    for id in ids {
        let key = table.encode_key(0, &[id.into()]).unwrap();
        txn.update(&table, &key, &[id.into(), Value::from(&b"new"[..])])
            .unwrap();
    }
    txn.commit().unwrap();
    db.sync_log().unwrap();
}

pub fn xid() -> Xid {
    Xid::new(1, b"global", b"branch").unwrap()
}

/// Changes the first row of a table, in a prepared transaction.
pub fn prepare(db: &Database, name: &str) {
    let table = db.table(name).unwrap();
    let mut txn = db.begin(Isolation::ReadCommitted);
    let key = table.encode_key(0, &[Value::from(0u32)]).unwrap();
    let row = [Value::from(0u32), Value::from(&b"prepared"[..])];
    txn.update(&table, &key, &row).unwrap();
    txn.prepare(&xid()).unwrap();
    db.sync_log().unwrap();
}

pub fn rows(db: &Database, table: &Arc<Table>) -> u32 {
    let mut txn = db.begin(Isolation::RepeatableRead);
    let found = (0..ROWS).filter(|&id| {
        let key = table.encode_key(0, &[id.into()]).unwrap();
        txn.get(table, &key, |_| ()).unwrap().is_some()
    });
    found.count() as u32
}

/// Creates a database with two tables; recovery must change these rows of one of them.
pub fn to_be_recovered(os: &SimulatedOs, ids: Range<u32>) -> Database {
    let db = open(os).unwrap();
    for name in ["kept", "damaged"] {
        create(&db, name);
        fill(&db, name, ROWS);
    }
    db.close().unwrap();
    let db = open(os).unwrap();
    renew(&db, "damaged", ids);
    db
}

/// Copies a disk, with damage at another place of the data file in each copy.
fn damaged_copies(sound: &SimulatedOs) -> impl Iterator<Item = SimulatedOs> + '_ {
    let data = Path::new("/db/data");
    let len = sound.bytes(data, 0, 1 << 26).len();
    (0..len).step_by(3 * 4096).map(move |at| {
        let disk = sound.crash_with(Loss::Nothing, 0);
        disk.damage(data, |bytes| {
            for byte in bytes.iter_mut().skip(at + 100).take(8) {
                *byte ^= 0x5a;
            }
        });
        disk
    })
}

/// Returns the moments of a recovery that has quarantined the table of [`to_be_recovered`] because of damage; else
/// `None`.
fn moments_of(disk: &SimulatedOs) -> Option<Vec<Moment>> {
    disk.record();
    let db = open(disk).ok()?;
    let moments = disk.recorded();
    db.table("damaged").is_err().then_some(moments)
}

/// Returns the moments of a recovery that has quarantined the table of [`to_be_recovered`].
pub fn quarantining(sound: &SimulatedOs) -> Vec<Moment> {
    let quarantined = damaged_copies(sound).find_map(|disk| moments_of(&disk));
    quarantined.expect("a quarantined table")
}

/// Returns a disk in the state after a kill; recovery must change all rows of one table.
pub fn killed(seed: u64) -> SimulatedOs {
    let os = SimulatedOs::new(seed);
    let _running = to_be_recovered(&os, 0..ROWS);
    os.crash_with(Loss::Nothing, 0)
}

/// Returns the bodies of a table's rows, by their keys, from a dump of a disk.
pub fn dumped(os: &SimulatedOs, name: &str) -> BTreeMap<u64, Vec<u8>> {
    let mut rows = BTreeMap::new();
    let dump = Dump::open_on(Arc::new(os.clone()), "/db").unwrap();
    dump.rows(
        name,
        &mut |row| {
            let (Value::UInt(id), Value::Bytes(body)) = (row[0].as_value(), row[1].as_value())
            else {
                panic!("{row:?}");
            };
            rows.insert(id, body.to_vec());
            Ok(())
        },
        &mut |_| (),
    )
    .unwrap();
    rows
}

/// Returns the number of rows in a dump with new bodies.
pub fn renewed(dumped: &BTreeMap<u64, Vec<u8>>) -> u32 {
    dumped.values().filter(|body| *body == b"new").count() as u32
}

/// The changes that recovery had applied before it met the damage were only in memory at the kill.
#[test]
fn a_table_that_a_killed_opening_has_quarantined_keeps_all_changes() {
    let moments = quarantining(&killed(3));
    for (n, moment) in moments.iter().enumerate() {
        let killed = moment.crash(Loss::Nothing, 0);
        open(&killed).unwrap().close().unwrap();
        let rows = dumped(&killed, "damaged");
        assert_eq!(renewed(&rows), ROWS, "killed after moment {n}");
    }
}

/// The same when only a prepared transaction meets damage, which recovery restores after the committed changes.
#[test]
fn a_table_that_is_quarantined_for_a_prepared_transaction_keeps_all_changes() {
    if peregrine::knobs::SHAKEN {
        // The test needs a page that only the prepared transaction has changed.
        return;
    }
    let os = SimulatedOs::new(3);
    let db = to_be_recovered(&os, ROWS / 2..ROWS);
    let committed = os.crash_with(Loss::Nothing, 0);
    prepare(&db, "damaged");
    let prepared = os.crash_with(Loss::Nothing, 0);
    let mut copies = damaged_copies(&committed).zip(damaged_copies(&prepared));
    let moments = copies.find_map(|(committed, prepared)| {
        let db = open(&committed).ok()?;
        db.table("damaged").ok()?;
        moments_of(&prepared)
    });
    let moments = moments.expect("a quarantined table for the prepared transaction alone");
    for (n, moment) in moments.iter().enumerate() {
        let killed = moment.crash(Loss::Nothing, 0);
        open(&killed).unwrap().close().unwrap();
        let rows = dumped(&killed, "damaged");
        assert_eq!(renewed(&rows), ROWS - ROWS / 2, "killed after moment {n}");
    }
}

/// After the log is gone, only the file of the quarantined table has its rows.
#[test]
fn a_table_that_a_killed_opening_has_quarantined_stays_so_when_the_power_goes() {
    let moments = quarantining(&killed(3));
    let named = |moment: &Moment| matches!(moment.event, Event::Name(_) | Event::Sync(_));
    for (n, moment) in moments
        .iter()
        .enumerate()
        .filter(|(_, moment)| named(moment))
    {
        let killed = moment.crash(Loss::Nothing, 0);
        let db = open(&killed).unwrap();
        assert!(db.table("damaged").is_err());
        let lost = killed.crash_with(Loss::Everything, 0);
        let again = open(&lost).unwrap_or_else(|error| panic!("killed after moment {n}: {error}"));
        assert!(again.table("damaged").is_err(), "killed after moment {n}");
        assert_eq!(rows(&again, &again.table("kept").unwrap()), ROWS);
    }
}
