//! Sums that stay constant while undo is purged and pruned and the barrier is closed again and again, for any given
//! time.
//!
//! ```text
//! PEREGRINE_SECONDS=1800 PEREGRINE_SEED=7 cargo test --release -p peregrine --lib \
//!     sums_stay_constant -- --nocapture
//! ```
//!
//! With the feature `broken` and `PEREGRINE_PLANTED=PurgeJoinedEnd` it fails, most often within a minute, on two busy
//! cores.
//!
//! The machine decides the schedule; the seed chooses what is written. At the end, one line shows the result.
//!
//! Two writers move amounts between rows, and rows between two trees. They commit, roll back, and roll back to
//! savepoints. Two readers take many snapshots. In some phases, short transactions end in one page, and purge follows
//! at once. In others, one reader keeps its snapshots, so that pruning removes what it does not need. The sum must be
//! the same in each scan. At the end, every note for purge must have been handled once, and no undo may be left.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::fixture::{get_locked, scan, try_delete, try_put, Fixture};
use crate::error::{Error, Result};
use crate::settings::Isolation::{ReadCommitted, RepeatableRead};
use crate::tree::Tree;
use crate::txn::{Delete, Put, PutMode, TreeTransaction};
use crate::undo::pruning::Pace;

const ROWS: u32 = 60;
const EACH: u64 = 1000;
/// Milliseconds of a phase. In every third phase, snapshots become old.
const PHASE: u128 = 500;

fn key(i: u32) -> Vec<u8> {
    let mut key = i.to_be_bytes().to_vec();
    key.extend([7; 20]);
    key
}

fn amount(row: &[u8]) -> u64 {
    u64::from_le_bytes(row[..8].try_into().unwrap())
}

/// An environment variable that has a number.
fn variable(name: &str, otherwise: u64) -> u64 {
    match std::env::var(name) {
        Ok(value) => value
            .parse()
            .unwrap_or_else(|_| panic!("{name}={value}: not a number")),
        Err(_) => otherwise,
    }
}

/// Puts without redo: half an hour would make much of it, and this test does not restart.
fn put(txn: &mut TreeTransaction, tree: &Tree, key: &[u8], row: &[u8]) -> Result<()> {
    loop {
        match try_put(txn, tree, key, row, PutMode::Upsert)? {
            Put::Conflict(conflict) => txn.wait(&conflict)?,
            Put::Done { .. } => return Ok(()),
            other => panic!("{other:?}"),
        }
    }
}

fn delete(txn: &mut TreeTransaction, tree: &Tree, key: &[u8]) -> Result<()> {
    loop {
        match try_delete(txn, tree, key)? {
            Delete::Conflict(conflict) => txn.wait(&conflict)?,
            Delete::Done => return Ok(()),
            other => panic!("{other:?}"),
        }
    }
}

struct World {
    fixture: Fixture,
    began: Instant,
    stop: AtomicBool,
    scans: AtomicU64,
    wrong: AtomicU64,
    /// A description of the first wrong result.
    example: Mutex<Option<String>>,
    /// Notes of transactions that have committed.
    notes: Mutex<Vec<Vec<u8>>>,
}

impl World {
    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn keeps_snapshots(&self) -> bool {
        self.began.elapsed().as_millis() / PHASE % 3 == 2
    }

    fn count(&self, rows: usize, sum: u64, what: &str) {
        self.scans.fetch_add(1, Ordering::Relaxed);
        if (rows, sum) != (ROWS as usize, EACH * u64::from(ROWS)) {
            self.note_wrong(format!("{what}: {rows} rows with a sum of {sum}"));
        }
    }

    fn note_wrong(&self, what: String) {
        self.wrong.fetch_add(1, Ordering::Relaxed);
        self.example.lock().get_or_insert(what);
    }

    /// Locks and reads one row, in whichever tree it is.
    fn take(&self, txn: &mut TreeTransaction, row: u32) -> Result<(bool, u64)> {
        for (other, tree) in [(false, &self.fixture.tree), (true, &self.fixture.other)] {
            if let Some(found) = get_locked(txn, tree, &key(row))? {
                return Ok((other, amount(&found)));
            }
        }
        panic!("row {row} is in neither tree");
    }

    /// Writes a row, and sometimes moves it to the other tree.
    fn give(
        &self,
        txn: &mut TreeTransaction,
        random: &mut StdRng,
        row: u32,
        of: (bool, u64),
    ) -> Result<()> {
        let trees = [&self.fixture.tree, &self.fixture.other];
        let (from, amount) = of;
        let to = from ^ (self.keeps_snapshots() && random.random_ratio(1, 8));
        if to != from {
            delete(txn, trees[usize::from(from)], &key(row))?;
        }
        let mut value = amount.to_le_bytes().to_vec();
        value.resize(8 + random.random_range(20..120), 3);
        put(txn, trees[usize::from(to)], &key(row), &value)
    }

    fn transfer(&self, txn: &mut TreeTransaction, random: &mut StdRng) -> Result<()> {
        let from = random.random_range(0..ROWS - 1);
        let to = random.random_range(from + 1..ROWS);
        let (less, more) = (self.take(txn, from)?, self.take(txn, to)?);
        let moved = random.random_range(0..10);
        self.give(txn, random, from, (less.0, less.1.wrapping_sub(moved)))?;
        self.give(txn, random, to, (more.0, more.1.wrapping_add(moved)))
    }

    fn write(&self, number: u64, seed: u64) {
        let mut random = StdRng::seed_from_u64(seed.wrapping_mul(31).wrapping_add(number));
        let mut told = 0u64;
        while !self.stopped() {
            let mut txn = self.fixture.begin(ReadCommitted);
            let mut note = None;
            let outcome = (|| {
                self.transfer(&mut txn, &mut random)?;
                if random.random_ratio(1, 8) {
                    let before = txn.savepoint();
                    self.transfer(&mut txn, &mut random)?;
                    txn.rollback_to(&before)?;
                }
                if random.random_ratio(1, 64) {
                    let inside = self.fixture.transactions.barrier().enter();
                    told += 1;
                    let text = [number.to_be_bytes(), told.to_be_bytes()].concat();
                    txn.note_on_purge(&inside, &text)?;
                    note = Some(text);
                }
                Ok(())
            })();
            match outcome {
                Ok(()) if random.random_ratio(1, 8) => txn.rollback().unwrap(),
                Ok(()) => {
                    txn.commit().unwrap();
                    self.notes.lock().extend(note);
                }
                Err(Error::Deadlock) => txn.rollback().unwrap(),
                Err(error) => return self.note_wrong(format!("a writer: {error}")),
            }
        }
    }

    /// Reads by one snapshot after another; in phases with old snapshots, keeps each for up to `longest`.
    fn read(&self, seed: u64, longest: Duration) {
        let mut random = StdRng::seed_from_u64(seed);
        while !self.stopped() {
            let mut txn = self.fixture.begin(RepeatableRead);
            let view = txn.view();
            let mut until = Instant::now();
            let keeps = self.keeps_snapshots();
            if keeps {
                until += longest.mul_f64(random.random());
            }
            loop {
                std::thread::sleep(Duration::from_millis(1));
                let (mut rows, mut sum) = (0, 0u64);
                for tree in [&self.fixture.tree, &self.fixture.other] {
                    for row in 0..ROWS {
                        match txn.read(tree, &key(row), &view, amount) {
                            Ok(None) => {}
                            Ok(Some(amount)) => {
                                rows += 1;
                                sum = sum.wrapping_add(amount);
                            }
                            Err(error) => return self.note_wrong(format!("a reader: {error}")),
                        }
                    }
                }
                self.count(rows, sum, "row by row");
                if !keeps {
                    break;
                }
                let mut seen = scan(&txn, &self.fixture.tree, &view);
                seen.extend(scan(&txn, &self.fixture.other, &view));
                let sum = seen
                    .values()
                    .map(|row| amount(row))
                    .fold(0, u64::wrapping_add);
                self.count(seen.len(), sum, "leaf by leaf");
                if Instant::now() >= until || self.stopped() {
                    break;
                }
            }
        }
    }

    fn purge(&self) {
        while !self.stopped() {
            if let Err(error) = self.fixture.transactions.purge_step() {
                return self.note_wrong(format!("purge: {error}"));
            }
        }
    }

    fn close_the_barrier(&self) {
        while !self.stopped() {
            let closed = self.fixture.transactions.barrier().close();
            std::thread::sleep(Duration::from_micros(100));
            drop(closed);
            std::thread::sleep(Duration::from_micros(300));
        }
    }

    /// Checks that no undo is left, and that every note was handled once.
    fn finish(&self) {
        self.fixture.transactions.purge_all().unwrap();
        let stats = self.fixture.transactions.stats();
        if (stats.unpurged, stats.undo_pages) != (0, 0) {
            self.note_wrong(format!("undo is left: {stats:?}"));
        }
        let trees = [&self.fixture.tree, &self.fixture.other];
        let records = trees.map(|tree| self.fixture.records(tree));
        let amounts: Vec<u64> = records
            .iter()
            .flatten()
            .map(|record| amount(&record.2))
            .collect();
        let sum = amounts.iter().copied().fold(0, u64::wrapping_add);
        self.count(amounts.len(), sum, "in the end");
        let mut told = self.fixture.trees.purged.lock().clone();
        let mut notes = self.notes.lock().clone();
        told.sort_unstable();
        notes.sort_unstable();
        if told != notes {
            let (told, notes) = (told.len(), notes.len());
            self.note_wrong(format!("purge told {told} notes, and {notes} were left"));
        }
    }
}

#[test]
fn sums_stay_constant_while_undo_is_taken_away() {
    let seconds = variable("PEREGRINE_SECONDS", 3);
    let seed = variable("PEREGRINE_SEED", 1);
    let world = World {
        fixture: Fixture::with_pool(2 << 20),
        began: Instant::now(),
        stop: AtomicBool::new(false),
        scans: AtomicU64::new(0),
        wrong: AtomicU64::new(0),
        example: Mutex::new(None),
        notes: Mutex::new(Vec::new()),
    };
    *world.fixture.transactions.pruning.pace.lock() = Pace {
        old: Duration::from_millis(30),
        again: Duration::from_millis(20),
        few: 1,
    };
    let row = [&EACH.to_le_bytes()[..], &[3; 60]].concat();
    world.fixture.load((0..ROWS).map(|i| (key(i), row.clone())));
    std::thread::scope(|scope| {
        let world = &world;
        for number in 0..2 {
            scope.spawn(move || world.write(number, seed));
        }
        scope.spawn(move || world.read(seed, Duration::ZERO));
        scope.spawn(move || world.read(!seed, Duration::from_millis(300)));
        scope.spawn(move || world.purge());
        scope.spawn(move || world.close_the_barrier());
        while world.began.elapsed() < Duration::from_secs(seconds)
            && world.wrong.load(Ordering::Relaxed) == 0
        {
            std::thread::sleep(Duration::from_millis(20));
        }
        world.stop.store(true, Ordering::Relaxed);
    });
    let pruned = world.fixture.transactions.stats().pruned_pages;
    world.finish();
    let scans = world.scans.load(Ordering::Relaxed);
    let wrong = world.wrong.load(Ordering::Relaxed);
    let seconds = world.began.elapsed().as_secs();
    let held = wrong == 0;
    let word = if held { "held" } else { "NOT HELD" };
    let example = world.example.lock().take();
    let example = example.map_or(String::new(), |example| format!(" ({example})"));
    println!(
        "{word}: undo: {scans} scans, {wrong} wrong sums{example}, {pruned} pages pruned, {seconds} s, seed {seed}"
    );
    assert!(held, "{wrong} of {scans} scans were wrong{example}");
}
