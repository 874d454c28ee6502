//! The gain of a second thread: primary-key points and full scans by one thread and by two.
//!
//! `cargo run --release --example two_threads [ROWS]` prints both figures and their ratio, and ends
//! with status 1 when a ratio is below 1.8. The machine should have two idle cores.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use peregrine::{
    Column, ColumnType, Cursor, CursorOptions, Database, Isolation, Key, Options, Result, Seek,
    Table, TableSchema, Value,
};

/// The ratio that two threads must reach.
const LEAST_RATIO: f64 = 1.8;
/// The time of a measurement.
const TIME: Duration = Duration::from_secs(2);
/// Measurements per figure; the best counts.
const RUNS: usize = 3;

fn main() -> ExitCode {
    let rows = match std::env::args().nth(1).map(|given| given.parse::<u64>()) {
        None => 200_000,
        Some(Ok(rows)) if rows > 0 => rows,
        Some(_) => {
            eprintln!("usage: two_threads [ROWS], with ROWS at least 1");
            return ExitCode::from(64);
        }
    };
    match measure(rows) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

fn measure(rows: u64) -> Result<bool> {
    let dir = match tempfile::tempdir() {
        Ok(dir) => dir,
        Err(error) => {
            return Err(peregrine::Error::Invalid(format!(
                "no temporary directory: {error}"
            )))
        }
    };
    let options = Options {
        pool_bytes: 1 << 30,
        ..Options::default()
    };
    let db = Arc::new(Database::open(dir.path(), options)?);
    let table = load(&db, rows)?;
    let points = compare("points", |threads| {
        rate(&db, &table, threads, |db, table, seed, stop| {
            read_points(db, table, rows, seed, stop)
        })
    })?;
    let scans = compare("scans", |threads| {
        rate(&db, &table, threads, |db, table, _, stop| {
            scan(db, table, rows, stop)
        })
    })?;
    Ok(points && scans)
}

/// A table like the benchmark's: a number, two names and a date's days.
fn load(db: &Arc<Database>, rows: u64) -> Result<Arc<Table>> {
    let schema = TableSchema {
        columns: vec![
            Column::new(
                "id",
                ColumnType::Int {
                    bytes: 4,
                    signed: false,
                },
            ),
            Column::new("name", ColumnType::VarBytes { max: 64 }),
            Column::new("address", ColumnType::VarBytes { max: 128 }),
            Column::new(
                "born",
                ColumnType::Int {
                    bytes: 4,
                    signed: true,
                },
            ),
        ],
        primary: Some(Key::new(&[0])),
        ..TableSchema::default()
    };
    let table = db.create_table("people", &schema)?;
    let mut txn = db.begin(Isolation::RepeatableRead);
    for id in 1..=rows {
        let name = format!("name {}", id.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let address = format!("{id} Falcon Street, somewhere {name}");
        let row = [
            Value::UInt(id),
            Value::from(name.as_str()),
            Value::from(address.as_str()),
            Value::Int((id % 20_000) as i64),
        ];
        txn.insert(&table, &row)?;
        if id % 10_000 == 0 {
            txn.commit()?;
        }
    }
    txn.commit()?;
    Ok(table)
}

/// Measures with one thread and with two, prints both, and returns whether the ratio suffices.
fn compare(what: &str, mut rate_of: impl FnMut(usize) -> Result<f64>) -> Result<bool> {
    let (mut one, mut two) = (0.0_f64, 0.0_f64);
    for _ in 0..RUNS {
        one = one.max(rate_of(1)?);
        two = two.max(rate_of(2)?);
    }
    let ratio = two / one;
    println!("{what}: {one:.1}/s by one thread, {two:.1}/s by two: {ratio:.2} times");
    Ok(ratio >= LEAST_RATIO)
}

/// Returns the operations per second of `threads` threads that work until `stop` is set.
fn rate(
    db: &Arc<Database>,
    table: &Arc<Table>,
    threads: usize,
    work: impl Fn(&Database, &Arc<Table>, u64, &AtomicBool) -> Result<u64> + Sync,
) -> Result<f64> {
    let stop = AtomicBool::new(false);
    let start = Barrier::new(threads + 1);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|number| {
                let (stop, start, work) = (&stop, &start, &work);
                scope.spawn(move || {
                    start.wait();
                    let began = Instant::now();
                    let done = work(db, table, number as u64 + 1, stop)?;
                    Ok::<f64, peregrine::Error>(done as f64 / began.elapsed().as_secs_f64())
                })
            })
            .collect();
        start.wait();
        std::thread::sleep(TIME);
        stop.store(true, Ordering::Relaxed);
        let mut sum = 0.0;
        for worker in workers {
            sum += match worker.join() {
                Ok(rate) => rate?,
                Err(_) => return Err(peregrine::Error::Internal("a thread panicked".into())),
            };
        }
        Ok(sum)
    })
}

/// Reads rows by random primary keys, each in a transaction of its own.
fn read_points(
    db: &Database,
    table: &Arc<Table>,
    rows: u64,
    seed: u64,
    stop: &AtomicBool,
) -> Result<u64> {
    let mut random = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mut key = Vec::new();
    let mut done = 0;
    let mut txn = db.begin(Isolation::ReadCommitted);
    while !stop.load(Ordering::Relaxed) {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let id = (random >> 33) % rows + 1;
        table.encode_key_into(0, &[Value::UInt(id)], &mut key)?;
        let length = txn.get(table, &key, |row| {
            row.get(1).map(|name| match name {
                Value::Bytes(bytes) => bytes.len(),
                _ => 0,
            })
        })?;
        if length.transpose()?.unwrap_or(0) == 0 {
            return Err(peregrine::Error::Internal(format!("row {id} is missing")));
        }
        done += 1;
        txn.commit()?;
    }
    Ok(done)
}

/// Scans the whole table repeatedly.
fn scan(db: &Database, table: &Arc<Table>, rows: u64, stop: &AtomicBool) -> Result<u64> {
    let mut cursor = Cursor::new(table, 0, CursorOptions::default());
    let mut done = 0;
    let mut txn = db.begin(Isolation::ReadCommitted);
    while !stop.load(Ordering::Relaxed) {
        let (mut count, mut least) = (0, i64::MAX);
        let mut found = cursor.seek(&mut txn, &[], Seek::First)?;
        while found {
            if let Value::Int(days) = cursor.row()?.get(3)? {
                least = least.min(days);
            }
            count += 1;
            found = cursor.next(&mut txn)?;
        }
        if count != rows || least != i64::from(rows < 20_000) {
            return Err(peregrine::Error::Internal(format!(
                "a scan found {count} rows of {rows}, the least value {least}"
            )));
        }
        done += 1;
        txn.commit()?;
    }
    Ok(done)
}
