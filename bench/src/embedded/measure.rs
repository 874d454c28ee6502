//! Measures stores in turns: each round runs every store at each number of threads, then every store's scan.

use std::sync::Barrier;
use std::time::{Duration, Instant};

use super::expected::Expected;
use super::loading::{load, verify, ByteSum, Verified};
use super::outcome::{Cell, Outcome, StoreOutcome};
use crate::normal::fingerprint;
use crate::stores::{Store, StoreReader};
use peregrine_harness::dice::Dice;
use peregrine_harness::error::{HarnessError, Result};
use peregrine_harness::interrupt;

/// The number of reads in a call, which uses one snapshot.
const CALL: usize = 1_000;

/// The number of a thread's different calls; the thread then repeats them.
const CALLS: usize = 1_000;

/// A request for measurements.
#[derive(Debug, Clone)]
pub struct Request {
    /// The numbers of threads.
    pub threads: Vec<u32>,
    /// How long each run lasts.
    pub run: Duration,
    /// The number of runs of each cell; the best one counts, and all are shown.
    pub runs: u32,
    /// The seed of the ids.
    pub seed: u64,
}

/// Fills the stores, checks their contents, and measures.
///
/// # Errors
/// Those of a store, or an interrupt. Wrong answers are no error, but part of the result.
pub fn run(
    stores: &mut [Box<dyn Store>],
    expected: &Expected,
    request: &Request,
    mut told: impl FnMut(&str),
) -> Result<Outcome> {
    let mut outcome = Outcome::new(expected, &request.threads);
    let mut sums = Vec::new();
    for store in stores.iter_mut() {
        let took = load(&mut **store, expected)?;
        let verified = verify(&**store, expected)?;
        told(&format!(
            "{}: {} rows in {:.1} s",
            store.title(),
            expected.count(),
            took.as_secs_f64()
        ));
        outcome.stores.push(StoreOutcome::new(
            store.title(),
            store.settings(),
            took,
            &request.threads,
        ));
        note(&mut outcome, sums.len(), &verified);
        sums.push(verified.sum);
    }
    let threads = request.threads.iter().copied().max().unwrap_or(1);
    let calls: Vec<Calls> = (0..threads)
        .map(|thread| Calls::new(expected, request.seed, thread))
        .collect();
    let mut copying = Copying::new(expected.bytes());
    for round in 0..request.runs {
        for (cell, threads) in request.threads.iter().enumerate() {
            for (store, of) in stores.iter().zip(&mut outcome.stores) {
                let found = read(&**store, &calls[..*threads as usize], request.run)?;
                add(&mut of.points[cell], &found);
            }
        }
        for ((store, of), sum) in stores.iter().zip(&mut outcome.stores).zip(&sums) {
            let found = scan(&**store, expected.bytes(), *sum, request.run)?;
            add(&mut of.scan, &found);
        }
        outcome.copying.rates.push(copying.measure(request.run));
        told(&format!("round {} of {}", round + 1, request.runs));
    }
    Ok(outcome)
}

fn note(outcome: &mut Outcome, store: usize, verified: &Verified) {
    if let (Some(of), true) = (outcome.stores.get_mut(store), verified.wrong > 0) {
        of.wrong += verified.wrong;
        of.problem.clone_from(&verified.problem);
    }
}

fn add(cell: &mut Cell, found: &Found) {
    cell.rates.push(found.rate);
    cell.wrong += found.wrong;
}

/// The result of one run.
#[derive(Debug, Clone, Copy, Default)]
struct Found {
    /// Reads or bytes a second.
    rate: f64,
    /// The number of calls, or scans, with a wrong answer.
    wrong: u64,
}

/// The reads of a thread, the same for every store.
struct Calls {
    ids: Vec<u32>,
    /// The sum of the right answers of each call.
    sums: Vec<u64>,
}

impl Calls {
    fn new(expected: &Expected, seed: u64, thread: u32) -> Self {
        let mut dice = Dice::new(seed, u64::from(thread));
        let ids: Vec<u32> = (0..CALL * CALLS)
            .map(|_| 1 + dice.below(expected.count()))
            .collect();
        let sum = |ids: &[u32]| {
            ids.iter()
                .fold(0_u64, |sum, id| sum.wrapping_add(expected.name(*id)))
        };
        let sums = ids.chunks(CALL).map(sum).collect();
        Self { ids, sums }
    }

    fn all(&self) -> impl Iterator<Item = (&[u32], u64)> {
        self.ids.chunks(CALL).zip(self.sums.iter().copied())
    }
}

/// Runs one call, and returns whether the answers are right.
fn ask(reader: &mut dyn StoreReader, ids: &[u32], right: u64) -> Result<bool> {
    let mut sum = 0_u64;
    let mut count = 0;
    reader.names(ids, &mut |name| {
        sum = sum.wrapping_add(fingerprint::of_text(name));
        count += 1;
    })?;
    Ok(sum == right && count == ids.len())
}

/// Runs point reads with one thread for each of `calls`, all at the same time.
fn read(store: &dyn Store, calls: &[Calls], run: Duration) -> Result<Found> {
    let start = Barrier::new(calls.len());
    let found = std::thread::scope(|scope| {
        let threads: Vec<_> = calls
            .iter()
            .map(|calls| {
                let start = &start;
                scope.spawn(move || read_by_one(store, calls, run, start))
            })
            .collect();
        let joined = threads.into_iter().map(|thread| {
            thread
                .join()
                .unwrap_or_else(|_| Err(HarnessError::Server("a reader panicked".to_owned())))
        });
        joined.collect::<Result<Vec<Found>>>()
    })?;
    interrupt::sleep(Duration::ZERO)?;
    Ok(Found {
        rate: found.iter().map(|one| one.rate).sum(),
        wrong: found.iter().map(|one| one.wrong).sum(),
    })
}

fn read_by_one(store: &dyn Store, calls: &Calls, run: Duration, start: &Barrier) -> Result<Found> {
    let reader = store.reader();
    // A thread without a reader must reach the barrier, too, or the other threads would wait for it forever.
    start.wait();
    let mut reader = reader?;
    let mut wrong = 0;
    // This loop warms the processor's caches.
    let warm_up = Instant::now();
    for (ids, right) in calls.all() {
        wrong += u64::from(!ask(&mut *reader, ids, right)?);
        if warm_up.elapsed() >= run / 10 {
            break;
        }
    }
    let begun = Instant::now();
    let mut reads = 0_u64;
    loop {
        for (ids, right) in calls.all() {
            wrong += u64::from(!ask(&mut *reader, ids, right)?);
            reads += ids.len() as u64;
            let took = begun.elapsed();
            if took >= run {
                let rate = reads as f64 / took.as_secs_f64();
                return Ok(Found { rate, wrong });
            }
        }
    }
}

/// Runs whole scans, one after the other, for the time of `run`; the best one counts.
fn scan(store: &dyn Store, bytes: u64, right: u64, run: Duration) -> Result<Found> {
    let mut reader = store.reader()?;
    let mut found = Found::default();
    let begun = Instant::now();
    loop {
        let mut sum = ByteSum::default();
        let one = Instant::now();
        reader.scan(&mut |bytes| sum.add(bytes))?;
        let took = one.elapsed().as_secs_f64();
        found.rate = found.rate.max(bytes as f64 / took.max(1e-9));
        found.wrong += u64::from(sum.0 != right);
        if begun.elapsed() >= run {
            return Ok(found);
        }
        interrupt::sleep(Duration::ZERO)?;
    }
}

/// A plain memory copy of as many bytes as all rows have.
struct Copying {
    from: Vec<u8>,
    to: Vec<u8>,
}

impl Copying {
    fn new(bytes: u64) -> Self {
        let len = usize::try_from(bytes).unwrap_or(usize::MAX);
        // The bytes are not zero, because memory that was never written may all map to one page.
        Self {
            from: vec![0x5a; len],
            to: vec![0xa5; len],
        }
    }

    /// Returns the bytes a second of the best copy.
    fn measure(&mut self, run: Duration) -> f64 {
        let begun = Instant::now();
        let mut best = 0.0_f64;
        loop {
            let one = Instant::now();
            self.to.copy_from_slice(std::hint::black_box(&self.from));
            std::hint::black_box(&mut self.to);
            best = best.max(self.from.len() as f64 / one.elapsed().as_secs_f64().max(1e-9));
            if begun.elapsed() >= run {
                return best;
            }
        }
    }
}
