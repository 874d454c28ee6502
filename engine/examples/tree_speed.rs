//! The speed of trees:
//! `cargo run --release -p peregrine --example tree_speed [RECORDS] [SECONDS] [POOL_MIB]`.
//!
//! Records have 8-byte keys and 200-byte values, and fit the pool unless POOL_MIB says otherwise. The data file is in a
//! folder below the system's temporary one, and is removed at the end. Prints operations per second of wall-clock time
//! and of processor time: on a busy machine only the latter is meaningful.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use peregrine::buffer::PoolWithThreads;
use peregrine::ids::TreeId;
use peregrine::os::RealOs;
use peregrine::store::Store;
use peregrine::tree::{LeafImage, Position, RecordEdit, Tree};
use peregrine::Result;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

const VALUE: [u8; 200] = [42; 200];

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |otherwise: u64| -> u64 {
        match arguments.next().map(|text| text.parse()) {
            None => otherwise,
            Some(Ok(number)) => number,
            Some(Err(error)) => {
                eprintln!("expected numbers: RECORDS SECONDS POOL_MIB: {error}");
                std::process::exit(2);
            }
        }
    };
    let records = number(1_000_000);
    let seconds = Duration::from_secs(number(3));
    let bytes = (records * 2 * (VALUE.len() as u64 + 100)).max(16 << 20);
    let bytes = number(bytes >> 20) << 20;
    let dir = std::env::temp_dir().join(format!("peregrine-tree-speed-{}", std::process::id()));
    let outcome = run(&dir, records, seconds, bytes as usize);
    if let Err(error) = std::fs::remove_dir_all(&dir) {
        eprintln!("{}: {error}", dir.display());
    }
    outcome
}

fn run(dir: &Path, records: u64, seconds: Duration, pool_bytes: usize) -> Result<()> {
    let store = Arc::new(Store::create(RealOs::new(), dir)?);
    let pool = PoolWithThreads::new(pool_bytes, store)?;

    let sequential = Tree::create(&pool, TreeId(1))?;
    timed("sequential inserts", records, || {
        (0..records).try_for_each(|i| put(&sequential, &i.to_be_bytes()))
    })?;
    let random = Tree::create(&pool, TreeId(2))?;
    timed("random inserts", records, || {
        (0..records).try_for_each(|i| put(&random, &scramble(i).to_be_bytes()))
    })?;
    println!("sequential: {:?}", sequential.stats()?);
    println!("random:     {:?}", random.stats()?);

    for (name, tree, key) in [
        ("sequential keys", &sequential, identity as fn(u64) -> u64),
        ("random keys", &random, scramble),
    ] {
        let one = reads(tree, records, key, 1, seconds)?;
        println!(
            "point reads, {name}, 1 thread:  {:>12.0}/s, {:>12.0} a second of processor time",
            one.0, one.1
        );
        let two = reads(tree, records, key, 2, seconds)?;
        println!(
            "point reads, {name}, 2 threads: {:>12.0}/s, {:>12.0} a second of processor time \
             ({:.2} times; {:.2} by processor time)",
            two.0,
            two.1,
            two.0 / one.0,
            2.0 * two.1 / one.1
        );
    }
    timed("updates in place", records, || {
        (0..records).try_for_each(|i| put(&sequential, &(scramble(i) % records).to_be_bytes()))
    })?;
    timed("leaf-image scan", records, || {
        let mut image = LeafImage::new();
        let mut sum = 0;
        let mut count = 0;
        let mut more = sequential.copy_leaf(Position::First, &mut image)?;
        while more {
            for i in 0..image.count() {
                sum += u64::from(image.value(i)[17]);
            }
            count += image.count() as u64;
            more = sequential.copy_next_leaf(&mut image)?;
        }
        assert_eq!((count, sum), (records, records * 42));
        Ok(())
    })?;
    println!("{:?}", pool.stats());
    Ok(())
}

fn identity(i: u64) -> u64 {
    i
}

fn scramble(i: u64) -> u64 {
    i.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

fn put(tree: &Tree, key: &[u8]) -> Result<()> {
    tree.modify(key, VALUE.len(), 1, |_, new| {
        new.extend_from_slice(&VALUE);
        (RecordEdit::Put, ())
    })
}

fn timed(what: &str, operations: u64, work: impl FnOnce() -> Result<()>) -> Result<()> {
    let (start, busy) = (Instant::now(), thread_busy());
    work()?;
    let speed = |time: Duration| operations as f64 / time.as_secs_f64();
    println!(
        "{what}: {:>12.0}/s, {:>12.0} a second of processor time",
        speed(start.elapsed()),
        speed(thread_busy() - busy)
    );
    Ok(())
}

/// Returns the processor time of this thread so far; zero when the system does not tell.
fn thread_busy() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = text.split(' ').next().and_then(|n| n.parse().ok());
    Duration::from_nanos(nanos.unwrap_or(0))
}

/// Returns reads per second of wall-clock time, and per second of a thread's processor time.
fn reads(
    tree: &Tree,
    records: u64,
    key: fn(u64) -> u64,
    threads: u64,
    time: Duration,
) -> Result<(f64, f64)> {
    let stop = AtomicBool::new(false);
    let total = AtomicU64::new(0);
    let busy = AtomicU64::new(0);
    let start = Instant::now();
    let outcome: Result<Vec<()>> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|seed| {
                let (stop, total, busy) = (&stop, &total, &busy);
                scope.spawn(move || -> Result<()> {
                    let mut random = SmallRng::seed_from_u64(seed);
                    let mut done = 0;
                    while !stop.load(Ordering::Relaxed) {
                        for _ in 0..256 {
                            let key = key(random.random_range(0..records)).to_be_bytes();
                            let found = tree.read(&key, |value, _| value.map(|v| v[9]))?;
                            assert_eq!(found, Some(42));
                        }
                        done += 256;
                    }
                    total.fetch_add(done, Ordering::Relaxed);
                    busy.fetch_add(thread_busy().as_nanos() as u64, Ordering::Relaxed);
                    Ok(())
                })
            })
            .collect();
        std::thread::sleep(time);
        stop.store(true, Ordering::Relaxed);
        workers
            .into_iter()
            .map(|worker| worker.join().expect("a reader panicked"))
            .collect()
    });
    outcome?;
    let total = total.load(Ordering::Relaxed) as f64;
    let busy = busy.load(Ordering::Relaxed).max(1) as f64 / 1e9;
    Ok((total / start.elapsed().as_secs_f64(), total / busy))
}
