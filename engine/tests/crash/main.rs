//! The whole database on a simulated disk that loses power at any moment.
//!
//! Threads change groups of rows, and move amounts between accounts, while checkpoints run. Then the power fails: each
//! sector that was not synced may be written or not. The reopened database must have every acknowledged transaction
//! whole, and no other in part; also when the power fails again while it opens.

mod prepared;
mod world;

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use peregrine::check::{check_on, Report};
use peregrine::os::simulated::{FaultOn, SimulatedOs};
use peregrine::{Database, Error, Options};

use world::World;

const DIR: &str = "/db";

fn options(seed: u64) -> Options {
    Options {
        // The smallest pool: pages come and go, and a checkpoint runs nearly always.
        pool_bytes: if seed % 2 == 0 { 1 << 20 } else { 16 << 20 },
        log_bytes: 1 << 20,
        ..Options::default()
    }
}

fn open(os: &SimulatedOs, seed: u64) -> peregrine::Result<Database> {
    Database::open_on(Arc::new(os.clone()), DIR, options(seed))
}

fn assert_sound(os: &SimulatedOs, when: &str) {
    let mut report = Report::default();
    check_on(Arc::new(os.clone()), DIR, &mut report).unwrap();
    assert!(report.is_sound(), "{when}: {:#?}", report.problems);
}

/// Runs a database through several power losses, with `steps` transactions between two.
fn lives(seed: u64, generations: u64, steps: u64) {
    let mut os = SimulatedOs::new(seed);
    let mut db = open(&os, seed).unwrap();
    let mut world = World::create(&db, 3);
    for generation in 0..generations {
        let moment = seed.wrapping_mul(31) + generation;
        let after = world.work(&db, steps + moment * 7 % steps, || os.crash(moment));
        drop(db);
        assert_sound(&after, "after the crash");

        // The power may fail again at any moment of the recovery.
        let again = std::thread::scope(|scope| {
            let copy = after.crash(moment);
            let opening = scope.spawn({
                let copy = copy.clone();
                move || open(&copy, seed).map(drop)
            });
            let mut disks = Vec::new();
            while !opening.is_finished() && disks.len() < 4 {
                disks.push(copy.crash(moment + disks.len() as u64));
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
            opening.join().unwrap().unwrap();
            disks.push(copy.crash(moment));
            disks
        });
        for (number, disk) in again.into_iter().enumerate() {
            assert_sound(&disk, "after a crash in recovery");
            let recovered = open(&disk, seed).unwrap();
            let what = format!("seed {seed}, generation {generation}, second crash {number}");
            world.clone().verify(&recovered, &what);
        }

        os = after;
        db = open(&os, seed).unwrap();
        world.verify(&db, &format!("seed {seed}, generation {generation}"));
    }
    db.close().unwrap();
    assert_sound(&os, "after closing");
    let db = open(&os, seed).unwrap();
    world.verify(&db, "after closing");
}

#[test]
fn acknowledged_transactions_survive_whole_in_a_small_pool() {
    for seed in [2, 4] {
        lives(seed, 3, 150);
    }
}

#[test]
fn acknowledged_transactions_survive_whole_in_memory() {
    for seed in [1, 3] {
        lives(seed, 3, 150);
    }
}

/// The n-th write, sync or read fails, and all after it, as on a device that dies.
#[test]
fn a_device_that_fails_at_any_moment_gives_errors_and_loses_nothing() {
    let mut errors = 0;
    for n in 0..60 {
        let on = [FaultOn::Write, FaultOn::Sync, FaultOn::Read, FaultOn::Any][n as usize % 4];
        let os = SimulatedOs::new(n);
        let db = open(&os, n).unwrap();
        let mut world = World::create(&db, 1);
        os.fail(on, n * 2, ErrorKind::Other);
        let error = world.work_alone(&db, 150);
        errors += u64::from(error.is_some());
        let stopped = matches!(error, Some(Error::Stopped(_)));
        if stopped {
            os.heal();
            // The engine acknowledges nothing more, though the device works again.
            assert!(world.work_alone(&db, 5).is_some());
        }
        let after = os.crash(n);
        after.heal();
        drop(db);
        let what = format!("fault {n} on {on:?}");
        assert_sound(&after, &what);
        world.verify(&open(&after, n).unwrap(), &what);
    }
    // Each commit writes and syncs; the number of reads varies.
    assert!(errors >= 45, "only {errors} of the faults were met");
}

#[test]
fn a_full_disk_is_an_error_and_work_goes_on_when_there_is_space() {
    for seed in 0..6 {
        let os = SimulatedOs::new(seed);
        let db = open(&os, seed).unwrap();
        let mut world = World::create(&db, 1);
        for round in 0..3 {
            os.set_capacity(Some(os.used() + seed * 200_000));
            let error = world.work_alone(&db, 2000);
            assert!(matches!(error, Some(Error::NoSpace { .. })), "{error:?}");
            os.set_capacity(None);
            let what = format!("seed {seed}, round {round}");
            world.verify(&db, &what);
            let error = world.work_alone(&db, 50);
            assert!(error.is_none(), "{what}: {error:?}");
        }
        let after = os.crash(seed);
        drop(db);
        assert_sound(&after, "after a full disk");
        world.verify(&open(&after, seed).unwrap(), "after a full disk");
    }
}

/// Without its newest header a database opens from the checkpoint before and the log.
///
/// A new database does, too, and does not count as one whose creation did not finish.
#[test]
fn a_new_database_outlives_the_loss_of_a_header() {
    for header in [0, 4096] {
        let os = SimulatedOs::new(1);
        let db = open(&os, 1).unwrap();
        let mut world = World::create(&db, 1);
        assert!(world.work_alone(&db, 20).is_none());
        let after = os.crash(1);
        drop(db);
        after.overwrite(&Path::new(DIR).join("data"), header, &[0; 4096]);
        let what = format!("the header at byte {header} is gone");
        world.verify(&open(&after, 1).unwrap(), &what);
    }
}

#[test]
fn a_creation_that_lost_power_can_be_repeated() {
    for seed in 0..24 {
        let os = SimulatedOs::new(seed);
        let disks = std::thread::scope(|scope| {
            let creating = scope.spawn(|| open(&os, seed).map(drop));
            let mut disks = Vec::new();
            while !creating.is_finished() && disks.len() < 8 {
                disks.push(os.crash(seed + disks.len() as u64));
            }
            creating.join().unwrap().unwrap();
            disks
        });
        for disk in disks {
            let db = open(&disk, seed).unwrap();
            assert!(db.table_names().is_empty());
            World::create(&db, 1).verify(&db, "a new database");
        }
    }
    assert!(
        !Path::new(DIR).exists(),
        "nothing is written to the real disk"
    );
}
