//! The cost of transactions without tables: a read-only one, and a one-row update.
//!
//! `cargo run --release --example transaction_cost [MILLISECONDS [PART]]` prints the cost of begin + read + end, and of
//! single-row update transactions without sync (the log is written in the background), for one and two threads; and for
//! many threads that all update the same row. PART (`read`, `update`, `one`) selects one.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use peregrine::buffer::PoolWithThreads;
use peregrine::ids::{TableId, TreeId};
use peregrine::log::{Log, LogOptions};
use peregrine::os::{Os, RealOs};
use peregrine::store::Store;
use peregrine::tree::Tree;
use peregrine::txn::{Put, PutMode, TransactionManager, TreeTransaction, UndoOwner};
use peregrine::{Durability, Error, Isolation, Result};

const ROWS: u64 = 100_000;

struct OneTree(Arc<Tree>);

impl UndoOwner for OneTree {
    fn tree(&self, tree: TreeId) -> peregrine::Result<Option<Arc<Tree>>> {
        Ok((tree == self.0.id()).then(|| self.0.clone()))
    }
}

fn main() {
    let part = std::env::args().nth(2);
    let wants = |name: &str| part.as_deref().is_none_or(|part| part == name);
    let time = match std::env::args().nth(1).map(|given| given.parse()) {
        None => Duration::from_millis(1000),
        Some(Ok(milliseconds)) => Duration::from_millis(milliseconds),
        Some(Err(_)) => {
            eprintln!(
                "usage: transaction_cost [MILLISECONDS [PART]], with PART read, update or one"
            );
            std::process::exit(64);
        }
    };
    let outcome = tempfile::tempdir()
        .map_err(|error| Error::Invalid(format!("no temporary directory: {error}")))
        .and_then(|dir| measure(dir.path(), time, &wants));
    if let Err(error) = outcome {
        eprintln!("{error}");
        std::process::exit(2);
    }
}

fn measure(dir: &Path, time: Duration, wants: &dyn Fn(&str) -> bool) -> Result<()> {
    let os: Arc<dyn Os> = RealOs::new();
    let store = Arc::new(Store::create(os.clone(), &dir.join("db"))?);
    let options = LogOptions {
        database_id: store.database_id(),
        segment_bytes: 64 << 20,
        stop: store.stop_flag().clone(),
        background: true,
    };
    let log = Arc::new(Log::create(os, &dir.join("db/log"), options)?);
    let pool = PoolWithThreads::new(256 << 20, store)?;
    let tree = Arc::new(Tree::create(&pool, TreeId(1))?);
    let system = TransactionManager::new(pool.clone(), log, Durability::Later);
    system.set_trees(Arc::new(OneTree(tree.clone())));
    pool.set_freeze(system.leaf_freeze());
    system.start_purge()?;

    let mut load = system.begin(Isolation::ReadCommitted);
    for row in 0..ROWS {
        update(&mut load, &tree, row, PutMode::Insert)?;
    }
    load.commit()?;

    let bare = rate(time, 1, |random| {
        // Touches the value, as a real transaction does.
        tree.read(&key(random() % ROWS), |value, _| {
            value.map_or(0, |value| value.len() ^ usize::from(value[0]))
        })
        .map(drop)
    })?;
    println!("read of the tree alone: {bare}");
    for threads in [1, 2].into_iter().filter(|_| wants("read")) {
        let empty = rate(time, threads, |_| {
            let mut txn = system.begin(Isolation::RepeatableRead);
            txn.view();
            txn.commit()
        })?;
        println!("begin + snapshot + end, {threads} threads: {empty}");
        let reads = rate(time, threads, |random| {
            let mut txn = system.begin(Isolation::RepeatableRead);
            let view = txn.view();
            txn.read(&tree, &key(random() % ROWS), &view, <[u8]>::len)?;
            txn.commit()
        })?;
        println!("begin + read + end, {threads} threads: {reads}");
    }
    for threads in [1, 2].into_iter().filter(|_| wants("update")) {
        let updates = rate(time, threads, |random| {
            let mut txn = system.begin(Isolation::ReadCommitted);
            update(&mut txn, &tree, random() % ROWS, PutMode::Update)?;
            txn.commit()
        })?;
        println!("one-row updates, {threads} threads: {updates}");
    }
    for threads in [2, 16, 64, 256, 512].into_iter().filter(|_| wants("one")) {
        let updates = rate(time, threads, |_| {
            let mut txn = system.begin(Isolation::ReadCommitted);
            update(&mut txn, &tree, 7, PutMode::Update)?;
            txn.commit()
        })?;
        println!("updates of one row, {threads} threads: {updates}");
    }
    println!("{:?}", system.stats());
    Ok(())
}

fn key(row: u64) -> [u8; 8] {
    row.to_be_bytes()
}

fn update(txn: &mut TreeTransaction, tree: &Tree, row: u64, mode: PutMode) -> Result<()> {
    let system = txn.transactions().clone();
    let payload = [row as u8; 100];
    loop {
        let inside = system.barrier().enter();
        match txn.try_put(&inside, tree, &key(row), &payload, mode, None)? {
            Put::Done { .. } => return txn.log_put(&inside, TableId(1), &key(row), &[&payload]),
            Put::Conflict(conflict) => {
                drop(inside);
                txn.wait(&conflict)?;
            }
            other => return Err(Error::Internal(format!("an update came out as {other:?}"))),
        }
    }
}

/// Calls `work` from some threads for a time.
///
/// Returns calls per second, and the processor time of a call in nanoseconds (which other load on the machine changes
/// little).
fn rate(
    time: Duration,
    threads: u32,
    work: impl Fn(&mut dyn FnMut() -> u64) -> Result<()> + Sync,
) -> Result<Rate> {
    let (stop, done, busy) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let started = Instant::now();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|seed| {
                let (stop, done, busy, work) = (&stop, &done, &busy, &work);
                scope.spawn(move || {
                    let mut state = 0x9e37_79b9_7f4a_7c15 ^ u64::from(seed + 1);
                    let mut random = || {
                        state ^= state << 13;
                        state ^= state >> 7;
                        state ^= state << 17;
                        state
                    };
                    let mut count = 0;
                    let before = cpu_nanoseconds();
                    while !stop.load(Ordering::Relaxed) {
                        work(&mut random)?;
                        count += 1;
                    }
                    done.fetch_add(count, Ordering::Relaxed);
                    busy.fetch_add(cpu_nanoseconds() - before, Ordering::Relaxed);
                    Ok(())
                })
            })
            .collect();
        std::thread::sleep(time);
        stop.store(true, Ordering::Relaxed);
        for worker in workers {
            worker
                .join()
                .map_err(|_| Error::Internal("a thread panicked".into()))??;
        }
        Ok::<(), Error>(())
    })?;
    let done = done.load(Ordering::Relaxed) as f64;
    Ok(Rate {
        per_second: done / started.elapsed().as_secs_f64(),
        nanoseconds: busy.load(Ordering::Relaxed) as f64 / done,
    })
}

struct Rate {
    per_second: f64,
    nanoseconds: f64,
}

impl std::fmt::Display for Rate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.0} ns, {:.0}/s", self.nanoseconds, self.per_second)
    }
}

/// Returns the processor time of this thread, from Linux; 0 on other systems.
fn cpu_nanoseconds() -> u64 {
    std::fs::read_to_string("/proc/thread-self/schedstat")
        .ok()
        .and_then(|text| text.split(' ').next()?.parse().ok())
        .unwrap_or(0)
}
