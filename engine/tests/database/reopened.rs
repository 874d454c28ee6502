//! A process is killed, another opens the database and goes on, and then the power goes.

use std::path::Path;
use std::sync::Arc;

use peregrine::dump::Dump;
use peregrine::os::simulated::{Event, Loss, Moment, SimulatedOs};
use peregrine::{Database, Isolation, Options, Table, Value};

use crate::schemas::{bodies, noise, options};

const ROWS: u32 = 30;

fn open(os: &SimulatedOs) -> peregrine::Result<Database> {
    let options = Options {
        background: false,
        ..options()
    };
    Database::open_on(Arc::new(os.clone()), "/db", options)
}

fn fill(db: &Database, name: &str) {
    let table = db.create_table(name, &bodies(4000)).unwrap();
    let mut txn = db.begin(Isolation::RepeatableRead);
    for id in 0..ROWS {
        let body = noise(id, 2500);
        let row = [Value::from(id), Value::from(&body[..])];
        txn.insert(&table, &row).unwrap();
    }
    txn.commit().unwrap();
}

fn rows(db: &Database, table: &Arc<Table>) -> u32 {
    let mut txn = db.begin(Isolation::RepeatableRead);
    let found = (0..ROWS).filter(|&id| {
        let key = table.encode_key(0, &[id.into()]).unwrap();
        txn.get(table, &key, |_| ()).unwrap().is_some()
    });
    found.count() as u32
}

/// A disk as a killed process left it: of one table recovery has to change every row.
fn to_be_recovered() -> SimulatedOs {
    let os = SimulatedOs::new(3);
    let db = open(&os).unwrap();
    fill(&db, "kept");
    fill(&db, "damaged");
    db.close().unwrap();
    let db = open(&os).unwrap();
    let table = db.table("damaged").unwrap();
    let mut txn = db.begin(Isolation::ReadCommitted);
    for id in 0..ROWS {
        let key = table.encode_key(0, &[id.into()]).unwrap();
        txn.update(&table, &key, &[id.into(), Value::from(&b"new"[..])])
            .unwrap();
    }
    txn.commit().unwrap();
    db.sync_log().unwrap();
    os.crash_with(Loss::Nothing, 0)
}

/// A recovery that has set the table of [`to_be_recovered`] aside; and its moments.
fn setting_aside() -> Vec<Moment> {
    let sound = to_be_recovered();
    let data = Path::new("/db/data");
    let len = sound.bytes(data, 0, 1 << 26).len();
    let set_aside = (0..len).step_by(3 * 4096).find_map(|at| {
        let disk = sound.crash_with(Loss::Nothing, 0);
        disk.damage(data, |bytes| {
            for byte in bytes.iter_mut().skip(at + 100).take(8) {
                *byte ^= 0x5a;
            }
        });
        disk.record();
        let db = open(&disk).ok()?;
        let moments = disk.recorded();
        db.table("damaged").is_err().then_some(moments)
    });
    set_aside.expect("a table that is set aside")
}

/// Rows of the damaged table that a dump of a disk has as they were committed, and what it misses.
fn dumped(os: &SimulatedOs) -> (u32, u32) {
    let (mut rows, mut missing) = (0, 0);
    let dump = Dump::open_on(Arc::new(os.clone()), "/db").unwrap();
    dump.rows(
        "damaged",
        &mut |row| {
            assert_eq!(row[1].as_value(), Value::from(&b"new"[..]), "{:?}", row[0]);
            rows += 1;
            Ok(())
        },
        &mut |_| missing += 1,
    )
    .unwrap();
    (rows, missing)
}

/// What recovery had applied before it met damage was in memory alone when the process was killed.
#[test]
fn a_table_that_a_killed_opening_has_set_aside_keeps_all_changes() {
    let moments = setting_aside();
    for (n, moment) in moments.iter().enumerate() {
        let killed = moment.crash(Loss::Nothing, 0);
        open(&killed).unwrap().close().unwrap();
        let (rows, _) = dumped(&killed);
        assert_eq!(rows, ROWS, "killed after moment {n}");
    }
}

/// Once the log has gone, the file that its table was set aside with is all that knows of its rows.
#[test]
fn a_table_that_a_killed_opening_has_set_aside_stays_so_when_the_power_goes() {
    let moments = setting_aside();
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
