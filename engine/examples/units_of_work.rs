//! Large transactions and old snapshots: their cost in memory, disk and other sessions' time.
//!
//! `cargo run --release --example units_of_work large [ROWS [POOL_MIB]]` inserts this many rows in one transaction and
//! commits, then does the same and rolls back, while another session works. `cargo run --release --example
//! units_of_work reader [SECONDS [ROWS [WRITERS]]]` keeps one snapshot for this time, while writers update random rows;
//! then it drops the snapshot. Both print a line per second: rates, and the memory, data file, log and undo in use.

use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use peregrine::{
    Column, ColumnType, Database, Durability, Error, Index, Isolation, Key, Options, Result, Table,
    TableSchema, Value,
};

const USAGE: &str =
    "usage: units_of_work large [ROWS [POOL_MIB]] | reader [SECONDS [ROWS [WRITERS]]]";

fn main() -> ExitCode {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let number = |n: usize, default: u64| match given.get(n).map(|text| text.parse::<u64>()) {
        None => Some(default),
        Some(Ok(number)) if number > 0 => Some(number),
        Some(_) => None,
    };
    let dir = match tempfile::tempdir() {
        Ok(dir) => dir,
        Err(error) => {
            eprintln!("no temporary directory: {error}");
            return ExitCode::from(2);
        }
    };
    let outcome = match given.first().map(String::as_str) {
        Some("large") => match (number(1, 1_000_000), number(2, 8)) {
            (Some(rows), Some(pool)) => large(dir.path(), rows, pool),
            _ => return usage(),
        },
        Some("reader") => match (number(1, 30), number(2, 100_000), number(3, 8)) {
            (Some(seconds), Some(rows), Some(writers)) => {
                reader(dir.path(), seconds, rows, writers)
            }
            _ => return usage(),
        },
        _ => return usage(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

fn usage() -> ExitCode {
    eprintln!("{USAGE}");
    ExitCode::from(64)
}

fn schema() -> TableSchema {
    let number = ColumnType::Int {
        bytes: 4,
        signed: false,
    };
    TableSchema {
        columns: vec![
            Column::new("id", number),
            Column::new("k", number),
            Column::new("text", ColumnType::VarBytes { max: 200 }),
        ],
        primary: Some(Key::new(&[0])),
        indexes: vec![Index::new("by_k", &[1])],
        user: vec![],
    }
}

fn row(id: u64, k: u64, text: &str) -> [Value<'_>; 3] {
    [
        Value::UInt(id),
        Value::UInt(k),
        Value::Bytes(text.as_bytes()),
    ]
}

/// About 100 bytes that do not compress well.
fn text(random: u64) -> String {
    let mut state = random | 1;
    let mut text = String::with_capacity(100);
    for _ in 0..6 {
        state = state.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
        text.push_str(&format!("{state:016x}"));
    }
    text
}

fn load(db: &Database, table: &Table, rows: u64) -> Result<()> {
    let mut txn = db.begin(Isolation::ReadCommitted);
    for id in 0..rows {
        txn.insert(table, &row(id, id % 1000, &text(id)))?;
        if id % 1000 == 999 {
            txn.commit()?;
        }
    }
    txn.commit()
}

/// One update in a transaction of its own.
fn update(db: &Database, table: &Table, id: u64, random: u64) -> Result<()> {
    let key = table.encode_key(0, &[Value::UInt(id)])?;
    let mut txn = db.begin(Isolation::ReadCommitted);
    loop {
        match txn.update(table, &key, &row(id, id % 1000, &text(random))) {
            Ok(_) => return txn.commit(),
            Err(Error::Deadlock | Error::WriteConflict) => txn.rollback()?,
            Err(error) => return Err(error),
        }
    }
}

/// Updates random rows until `stop` is set.
fn keep_updating(
    db: &Database,
    table: &Table,
    rows: u64,
    seed: u64,
    done: &AtomicU64,
    stop: &AtomicBool,
) -> Result<()> {
    let mut state = 0x9E37_79B9_7F4A_7C15 ^ (seed + 1);
    while !stop.load(Ordering::Relaxed) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        update(db, table, state % rows, state)?;
        done.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

/// Prints a line per second until `stop` is set.
fn keep_printing(db: &Database, dir: &Path, counters: &[(&str, &AtomicU64)], stop: &AtomicBool) {
    let started = Instant::now();
    let mut before: Vec<u64> = counters
        .iter()
        .map(|(_, counter)| counter.load(Ordering::Relaxed))
        .collect();
    let mut last = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(100));
        if last.elapsed() < Duration::from_secs(1) {
            continue;
        }
        let seconds = last.elapsed().as_secs_f64();
        last = Instant::now();
        let mut line = format!("{:4} s", started.elapsed().as_secs());
        for ((name, counter), before) in counters.iter().zip(&mut before) {
            let now = counter.load(Ordering::Relaxed);
            let rate = (now - *before) as f64 / seconds;
            line.push_str(&format!("  {name} {rate:7.0}/s"));
            *before = now;
        }
        println!("{line}  {}", usage_of(db, dir));
    }
}

fn usage_of(db: &Database, dir: &Path) -> String {
    let mib = |bytes: u64| bytes >> 20;
    let status = db.status();
    format!(
        "memory {} MiB  data {} MiB (free {})  log {} MiB  undo {} pages  unpurged {}  status {} KiB",
        mib(resident_bytes()),
        mib(status.file_bytes),
        mib(status.file_free_bytes),
        mib(folder_bytes(&dir.join("log"))),
        status.undo_pages,
        status.purge_backlog,
        status.transaction_status_bytes >> 10,
    )
}

/// Returns the memory of this process in use, from Linux; 0 on other systems.
fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    text.lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .and_then(|rest| rest.trim().split(' ').next()?.parse::<u64>().ok())
        .map_or(0, |kib| kib << 10)
}

fn folder_bytes(dir: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return 0;
    };
    entries
        .filter_map(|entry| Some(entry.ok()?.metadata().ok()?.len()))
        .sum()
}

fn options(pool_mib: u64) -> Options {
    Options {
        pool_bytes: (pool_mib as usize) << 20,
        durability: Durability::Later,
        log_bytes: 128 << 20,
        ..Options::default()
    }
}

fn large(dir: &Path, rows: u64, pool_mib: u64) -> Result<()> {
    let db = Database::open(dir, options(pool_mib))?;
    let others = db.create_table("others", &schema())?;
    load(&db, &others, 10_000)?;
    let (inserted, updated, stop) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let other = scope.spawn(|| keep_updating(&db, &others, 10_000, 7, &updated, &stop));
        scope.spawn(|| {
            let counters = [("inserted", &inserted), ("others", &updated)];
            keep_printing(&db, dir, &counters, &stop);
        });
        let outcome = fill(&db, "committed", rows, &inserted)
            .and_then(|table| {
                commit_or_not(table, true)?;
                settle(&db, dir)?;
                fill(&db, "rolled_back", rows, &inserted)
            })
            .and_then(|table| commit_or_not(table, false))
            .and_then(|()| settle(&db, dir));
        stop.store(true, Ordering::Relaxed);
        outcome.and(joined(other.join()))
    })?;
    db.close()
}

/// Fills a table with rows that are not committed yet.
fn fill(
    db: &Database,
    name: &str,
    rows: u64,
    inserted: &AtomicU64,
) -> Result<peregrine::Transaction> {
    println!("{rows} rows into table {name}");
    let table = db.create_table(name, &schema())?;
    let mut txn = db.begin(Isolation::RepeatableRead);
    for id in 0..rows {
        txn.insert(&table, &row(id, id % 1000, &text(id)))?;
        inserted.fetch_add(1, Ordering::Relaxed);
    }
    Ok(txn)
}

fn commit_or_not(mut txn: peregrine::Transaction, commit: bool) -> Result<()> {
    let began = Instant::now();
    let what = if commit {
        txn.commit()?;
        "committed"
    } else {
        txn.rollback()?;
        "rolled back"
    };
    println!("{what} in {:.2} s", began.elapsed().as_secs_f64());
    Ok(())
}

/// Waits until purge and checkpoints have freed the space that they can.
fn settle(db: &Database, dir: &Path) -> Result<()> {
    for _ in 0..3 {
        std::thread::sleep(Duration::from_secs(2));
        db.checkpoint()?;
    }
    println!("afterwards: {}", usage_of(db, dir));
    Ok(())
}

fn reader(dir: &Path, seconds: u64, rows: u64, writers: u64) -> Result<()> {
    let db = Arc::new(Database::open(dir, options(64))?);
    let table = db.create_table("rows", &schema())?;
    load(&db, &table, rows)?;
    println!("loaded: {}", usage_of(&db, dir));
    let mut reader = db.begin(Isolation::RepeatableRead);
    reader.take_snapshot();
    let (updated, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let (db, table, updated, stop) = (&db, &table, &updated, &stop);
    let rates = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..writers)
            .map(|seed| scope.spawn(move || keep_updating(db, table, rows, seed, updated, stop)))
            .collect();
        scope.spawn(|| keep_printing(db, dir, &[("updates", updated)], stop));
        let mut rates = Vec::new();
        for _ in 0..5 {
            let before = updated.load(Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(seconds * 1000 / 5));
            rates.push(updated.load(Ordering::Relaxed) - before);
        }
        stop.store(true, Ordering::Relaxed);
        for thread in threads {
            joined(thread.join())?;
        }
        Ok::<_, Error>(rates)
    })?;
    println!(
        "updates in the last fifth against the first: {:.2}",
        rates[4] as f64 / rates[0] as f64
    );
    for id in 0..rows {
        let key = table.encode_key(0, &[Value::UInt(id)])?;
        let seen = reader.get(table, &key, |row| {
            row.get(2)
                .map(|value| value.to_owned().as_value() == Value::from(text(id).as_str()))
        })?;
        if !matches!(seen, Some(Ok(true))) {
            return Err(Error::Internal(format!("the reader sees row {id} changed")));
        }
    }
    reader.commit()?;
    settle(db, dir)
}

fn joined(outcome: std::thread::Result<Result<()>>) -> Result<()> {
    outcome.unwrap_or_else(|_| Err(Error::Internal("a thread panicked".into())))
}
