//! Disks that the log fills: the database must continue without help, and lose nothing acknowledged.
//!
//! The test loads a table, fills the disk up to a random level, and lets threads change rows until the database refuses
//! them space. The test gives no other help: it retries each refused statement, and measures the time until it
//! succeeds. Only a full disk causes checkpoints.
//!
//! At the end the test compares every row with the acknowledged ones. It does so in the running database, and after the
//! database was closed and opened again on the same full disk. If the disk is simulated, it does so after a loss of
//! power, too.

mod disk;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use peregrine::os::Os;
use peregrine::{
    Column, ColumnType, Database, Error, Isolation, Key, Options, OwnedValue, RowView, Table,
    TableSchema, Value,
};

use self::disk::Disk;
pub use self::disk::Kind;
use peregrine_harness::dice::Dice;
use peregrine_harness::error::{HarnessError, Result};
use peregrine_harness::interrupt;

/// The number of rows in the table, which takes about 4 MiB.
const ROWS: u32 = 8_000;
/// The size of a row, in bytes.
const BODY: usize = 400;
/// The number of rows that a transaction changes.
const CHANGES: u32 = 8;
const THREADS: u32 = 2;
/// The least and the most free bytes at the start.
const LEAST_FREE: u64 = 6 << 20;
const MOST_FREE: u64 = 32 << 20;
/// A round ends when this many refused statements have succeeded.
const REFUSALS: u64 = 6;
/// The longest permitted time until a refused statement succeeds.
const PROMISED: Duration = Duration::from_secs(10);
/// The time after which a thread gives up a refused statement.
const STUCK: Duration = Duration::from_secs(30);
const RETRY: Duration = Duration::from_millis(5);

/// A request for full disks.
#[derive(Clone, Debug)]
pub struct Request {
    /// The number of disks to fill.
    pub times: u32,
    /// The seed of the free space and of the changes.
    pub seed: u64,
    /// The kind of disk.
    pub kind: Kind,
    /// The directory in which file systems are mounted.
    pub scratch: PathBuf,
}

/// The results of all rounds.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Disks that were filled.
    pub times: u32,
    /// Statements that were refused.
    pub refused: u64,
    /// The longest time until a refused statement succeeded.
    pub longest: Duration,
    /// Rows that differ from the acknowledged ones.
    pub lost: u64,
    /// Other failures, one line each.
    pub faults: Vec<String>,
}

impl Outcome {
    /// Returns whether the database kept its promises.
    #[must_use]
    pub fn held(&self) -> bool {
        self.times > 0
            && self.refused > 0
            && self.longest <= PROMISED
            && self.lost == 0
            && self.faults.is_empty()
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "full-disk: {} disks filled by the log, {} statements refused, the longest until one came \
             through {:.2} s (promised {} s), {} rows lost, {} other faults: {}",
            self.times,
            self.refused,
            self.longest.as_secs_f64(),
            PROMISED.as_secs(),
            self.lost,
            self.faults.len(),
            if self.held() { "held" } else { "NOT HELD" }
        )
    }
}

fn options() -> Options {
    Options {
        pool_bytes: 16 << 20,
        log_bytes: 1 << 40,
        log_segment_bytes: Some(1 << 20),
        recovery_target: Duration::ZERO,
        checkpoint_interval: Duration::from_secs(1 << 20),
        ..Options::default()
    }
}

fn failed(error: Error) -> HarnessError {
    HarnessError::Server(format!("full-disk: {error}"))
}

/// Returns a row's bytes in a version; they do not compress.
fn body(id: u32, version: u32) -> Vec<u8> {
    let mut dice = Dice::new(u64::from(version), u64::from(id));
    (0..BODY)
        .map(|_| u8::try_from(dice.below(256)).unwrap_or(0))
        .collect()
}

/// Runs the rounds.
///
/// # Errors
/// [`HarnessError::Interrupted`]; [`HarnessError::Usage`] if the system can't provide such a disk; those of loading the
/// database.
pub fn run(request: &Request, told: impl Fn(&str)) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    for time in 0..request.times {
        let seed = request.seed + u64::from(time);
        let round = Round::begin(request, seed)?;
        let before = (outcome.lost, outcome.faults.len());
        round.play(&mut outcome)?;
        outcome.times += 1;
        let found = before != (outcome.lost, outcome.faults.len());
        if found {
            told(&format!(
                "seed {seed}, {} KiB free: {} rows lost, {:?}",
                round.free >> 10,
                outcome.lost - before.0,
                &outcome.faults[before.1..]
            ));
        }
        // An interrupted round without a finding shows nothing: its threads may have refused no statement yet.
        if interrupt::requested() {
            return match found {
                true => Ok(outcome),
                false => Err(HarnessError::Interrupted),
            };
        }
    }
    Ok(outcome)
}

/// A round with one disk.
struct Round {
    seed: u64,
    free: u64,
    disk: Disk,
}

/// A thread's acknowledged changes, and its refusals.
#[derive(Default)]
struct Changed {
    versions: BTreeMap<u32, u32>,
    refused: u64,
    longest: Duration,
    fault: Option<String>,
}

impl Round {
    fn begin(request: &Request, seed: u64) -> Result<Round> {
        let disk = Disk::new(request.kind, seed, &request.scratch)?;
        let free = LEAST_FREE + Dice::new(seed, 0).below_wide(MOST_FREE - LEAST_FREE);
        Ok(Round { seed, free, disk })
    }

    fn open(&self, os: Arc<dyn Os>) -> std::result::Result<(Database, Arc<Table>), Error> {
        let db = Database::open_on(os, self.disk.dir(), options())?;
        let table = db.table("t")?;
        Ok((db, table))
    }

    fn load(&self) -> std::result::Result<Database, Error> {
        let db = Database::open_on(self.disk.os(), self.disk.dir(), options())?;
        let int = ColumnType::Int {
            bytes: 4,
            signed: false,
        };
        let schema = TableSchema {
            columns: vec![
                Column::new("id", int),
                Column::new("body", ColumnType::VarBytes { max: 1_000 }),
            ],
            primary: Some(Key::new(&[0])),
            indexes: vec![],
            user: vec![],
        };
        let table = db.create_table("t", &schema)?;
        let mut txn = db.begin(Isolation::ReadCommitted);
        for id in 0..ROWS {
            let body = body(id, 0);
            txn.insert(&table, &[Value::UInt(id.into()), Value::Bytes(&body)])?;
        }
        txn.commit()?;
        db.checkpoint()?;
        Ok(db)
    }

    fn play(&self, outcome: &mut Outcome) -> Result<()> {
        let db = self.load().map_err(failed)?;
        let table = db.table("t").map_err(failed)?;
        self.disk.leave(self.free)?;
        let came_through = AtomicU64::new(0);
        let changed: Vec<Changed> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS)
                .map(|thread| {
                    let (db, table, came_through) = (&db, &table, &came_through);
                    scope.spawn(move || self.change(db, table, thread, came_through))
                })
                .collect();
            let join = |thread: std::thread::ScopedJoinHandle<'_, Changed>| {
                thread.join().unwrap_or_else(|_| Changed {
                    fault: Some("a thread panicked".to_owned()),
                    ..Changed::default()
                })
            };
            threads.into_iter().map(join).collect()
        });
        let mut versions: BTreeMap<u32, u32> = (0..ROWS).map(|id| (id, 0)).collect();
        for changed in changed {
            versions.extend(changed.versions);
            outcome.refused += changed.refused;
            outcome.longest = outcome.longest.max(changed.longest);
            outcome.faults.extend(changed.fault);
        }
        let crashed = self.disk.crashed(self.seed);
        self.compare(Ok((db, table)), &versions, outcome);
        for os in crashed.into_iter().chain([self.disk.os()]) {
            self.compare(self.open(os), &versions, outcome);
        }
        Ok(())
    }

    /// Changes the thread's own rows until enough refused statements of all threads have succeeded.
    fn change(&self, db: &Database, table: &Table, thread: u32, through: &AtomicU64) -> Changed {
        let mut dice = Dice::new(self.seed, 1 + u64::from(thread));
        let mut changed = Changed::default();
        for version in 1.. {
            if through.load(Ordering::Relaxed) >= REFUSALS || interrupt::requested() {
                break;
            }
            let ids: Vec<u32> = (0..CHANGES)
                .map(|_| dice.below(ROWS / THREADS) * THREADS + thread)
                .collect();
            let mut refused_at = None;
            loop {
                match write(db, table, &ids, version) {
                    Ok(()) => break,
                    Err(error @ Error::NoSpace { .. }) => {
                        changed.refused += 1;
                        let at = *refused_at.get_or_insert_with(Instant::now);
                        if at.elapsed() >= STUCK {
                            changed.longest = at.elapsed();
                            let status = db.status();
                            changed.fault = Some(format!(
                                "nothing goes on: {error}; the data file has {} KiB, {} of them free, {} pages are \
                                 newer in memory, {} checkpoints were completed",
                                status.file_bytes >> 10,
                                status.file_free_bytes >> 10,
                                status.pool_pages_dirty,
                                status.checkpoints,
                            ));
                            through.store(REFUSALS, Ordering::Relaxed);
                            return changed;
                        }
                        std::thread::sleep(RETRY);
                    }
                    Err(error) => {
                        changed.fault = Some(error.to_string());
                        return changed;
                    }
                }
            }
            if let Some(at) = refused_at {
                changed.longest = changed.longest.max(at.elapsed());
                through.fetch_add(1, Ordering::Relaxed);
            }
            changed.versions.extend(ids.iter().map(|&id| (id, version)));
        }
        changed
    }

    /// Compares rows with the acknowledged ones and counts the differences.
    fn compare(
        &self,
        opened: std::result::Result<(Database, Arc<Table>), Error>,
        versions: &BTreeMap<u32, u32>,
        outcome: &mut Outcome,
    ) {
        let differing = opened.and_then(|(db, table)| {
            let mut txn = db.begin(Isolation::RepeatableRead);
            let mut differing = 0;
            for (&id, &version) in versions {
                let key = table.encode_key(0, &[Value::UInt(id.into())])?;
                let found = txn.get(&table, &key, |row: RowView<'_>| row.to_values())?;
                let want = [
                    OwnedValue::UInt(id.into()),
                    OwnedValue::Bytes(body(id, version)),
                ];
                differing += u64::from(found.transpose()?.as_deref() != Some(&want[..]));
            }
            Ok(differing)
        });
        match differing {
            Ok(rows) => outcome.lost += rows,
            Err(error) => outcome.faults.push(error.to_string()),
        }
    }
}

/// Writes a version of some rows, all or none of them.
fn write(
    db: &Database,
    table: &Table,
    ids: &[u32],
    version: u32,
) -> std::result::Result<(), Error> {
    let mut txn = db.begin(Isolation::ReadCommitted);
    for &id in ids {
        let key = table.encode_key(0, &[Value::UInt(id.into())])?;
        let body = body(id, version);
        txn.delete(table, &key)?;
        txn.insert(table, &[Value::UInt(id.into()), Value::Bytes(&body)])?;
    }
    txn.commit()
}
