//! The speed of the library without a server: the benchmark's table `normal`, loaded, read by primary key, by a
//! secondary key, and as a whole, by one and by two threads.
//!
//! `cargo run --release -p peregrine --example normal_speed [ROWS] [POOL_MB] [DIR] [ONLY]`
//! measures, with ONLY, only the operations with it in their names.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use peregrine::{
    Column, ColumnType, Cursor, CursorOptions, Database, Durability, Index, Isolation, Key,
    Options, Result, Seek, Table, TableSchema, Transaction, Value,
};

/// Rows of a transaction while loading.
const BATCH: u64 = 1000;
/// The time of each measurement.
const MEASURE: Duration = Duration::from_secs(2);

/// Splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    fn text(&mut self, least: u64, most: u64, out: &mut Vec<u8>) {
        out.clear();
        let len = least + self.below(most - least + 1);
        out.extend((0..len).map(|_| b'a' + self.below(26) as u8));
    }
}

fn schema() -> TableSchema {
    let int = |bytes| ColumnType::Int {
        bytes,
        signed: false,
    };
    let text = |max| ColumnType::VarBytes { max };
    TableSchema {
        columns: vec![
            Column::new("id", int(4)),
            Column::new("name", text(64)),
            Column::new("email", text(64)),
            Column::new("password", text(64)),
            Column::new("dob", int(3)).nullable(),
            Column::new("address", text(128)),
            Column::new("city", text(64)),
            Column::new("state_id", int(1)),
            Column::new("zip", text(8)),
            Column::new("country_id", int(2)),
        ],
        primary: Some(Key::new(&[0])),
        indexes: vec![
            Index::new("email", &[2]).unique(),
            Index::new("country_id", &[9, 7, 6]),
        ],
        user: vec![],
    }
}

fn load(db: &Database, table: &Table, rows: u64) -> Result<()> {
    let mut random = Random(1);
    let mut texts: [Vec<u8>; 6] = Default::default();
    let mut txn = db.begin(Isolation::RepeatableRead);
    for id in 1..=rows {
        let [name, email, password, address, city, zip] = &mut texts;
        random.text(8, 30, name);
        random.text(10, 30, email);
        email.extend_from_slice(id.to_string().as_bytes());
        random.text(20, 40, password);
        random.text(20, 60, address);
        random.text(5, 20, city);
        random.text(5, 8, zip);
        let row = [
            Value::UInt(id),
            Value::Bytes(name),
            Value::Bytes(email),
            Value::Bytes(password),
            Value::UInt(700_000 + random.below(30_000)),
            Value::Bytes(address),
            Value::Bytes(city),
            Value::UInt(random.below(50)),
            Value::Bytes(zip),
            Value::UInt(random.below(200)),
        ];
        txn.insert(table, &row)?;
        if id % BATCH == 0 {
            txn.commit()?;
        }
    }
    txn.commit()
}

/// Returns the seconds that this thread has had a processor, without other work on the machine.
///
/// `None` when the system does not tell.
fn thread_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds: f64 = text.split_whitespace().next()?.parse().ok()?;
    Some(nanoseconds / 1e9)
}

/// Operations per second of wall-clock time, and per second of processor time.
#[derive(Clone, Copy)]
struct Rate {
    time: f64,
    processor: f64,
}

/// Runs `work` in `threads` threads for a while; returns its operations per second.
fn measure(
    db: &Database,
    threads: u64,
    work: impl Fn(&mut Transaction, &mut Random) -> Result<u64> + Sync,
) -> Result<Rate> {
    let done = AtomicU64::new(0);
    let processor_us = AtomicU64::new(0);
    let stop = AtomicBool::new(false);
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|n| {
                let (done, stop, work) = (&done, &stop, &work);
                let processor_us = &processor_us;
                scope.spawn(move || -> Result<()> {
                    let mut random = Random(begun.elapsed().as_nanos() as u64 + n * 7919);
                    let mut txn = db.begin(Isolation::ReadCommitted);
                    while !stop.load(Ordering::Relaxed) {
                        txn.start_statement();
                        let n = work(&mut txn, &mut random)?;
                        txn.end_statement();
                        done.fetch_add(n, Ordering::Relaxed);
                    }
                    let used = thread_seconds().unwrap_or(f64::NAN) * 1e6;
                    processor_us.fetch_add(used as u64, Ordering::Relaxed);
                    Ok(())
                })
            })
            .collect();
        std::thread::sleep(MEASURE);
        stop.store(true, Ordering::Relaxed);
        workers
            .into_iter()
            .try_for_each(|w| w.join().unwrap_or(Ok(())))
    })?;
    let done = done.load(Ordering::Relaxed) as f64;
    Ok(Rate {
        time: done / begun.elapsed().as_secs_f64(),
        processor: done / (processor_us.load(Ordering::Relaxed) as f64 / 1e6),
    })
}

fn both(what: &str, run: impl Fn(u64) -> Result<Rate>) -> Result<()> {
    if std::env::args()
        .nth(4)
        .is_some_and(|only| !what.contains(&only))
    {
        return Ok(());
    }
    let (one, two) = (run(1)?, run(2)?);
    println!(
        "{what:<34} {:>11.0}/s  two threads {:>11.0}/s  × {:.2}; \
         in a second of processor {:>11.0}, {:>11.0}",
        one.time,
        two.time,
        two.time / one.time,
        one.processor,
        two.processor
    );
    Ok(())
}

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let rows: u64 = args
        .next()
        .and_then(|a| a.parse().ok())
        .unwrap_or(1_000_000);
    let pool_mb: usize = args.next().and_then(|a| a.parse().ok()).unwrap_or(1024);
    let dir = args.next().map_or_else(
        || std::env::temp_dir().join(format!("peregrine-normal-{}", std::process::id())),
        Into::into,
    );
    let options = Options {
        pool_bytes: pool_mb << 20,
        durability: Durability::WriteAtCommit,
        ..Options::default()
    };
    let db = Database::open(&dir, options)?;
    let table: Arc<Table> = db.create_table("normal", &schema())?;

    let begun = Instant::now();
    load(&db, &table, rows)?;
    let took = begun.elapsed().as_secs_f64();
    println!(
        "load {rows} rows: {took:.2} s, {:.0} rows/s; {:.2} s of processor in this thread",
        rows as f64 / took,
        thread_seconds().unwrap_or(f64::NAN)
    );
    let begun = Instant::now();
    db.checkpoint()?;
    println!("checkpoint: {:.2} s", begun.elapsed().as_secs_f64());
    let (in_rows, in_indexes) = table.size_bytes()?;
    println!(
        "pages: {} MiB rows, {} MiB indexes; file {} MiB",
        in_rows >> 20,
        in_indexes >> 20,
        db.status().file_bytes >> 20
    );
    println!("cardinality of country_id: {:?}", table.cardinality(2)?);

    both("get by primary key", |threads| {
        measure(&db, threads, |txn, random| {
            let mut key = Vec::with_capacity(4);
            for _ in 0..100 {
                table.encode_key_into(0, &[Value::UInt(1 + random.below(rows))], &mut key)?;
                let name = txn.get(&table, &key, |row| row.get(1).map(|v| !v.is_null()))?;
                assert!(name.expect("the row is there")?);
            }
            Ok(100)
        })
    })?;
    both("Rows::get by primary key", |threads| {
        measure(&db, threads, |txn, random| {
            let mut key = Vec::with_capacity(4);
            let mut found = txn.rows(&table)?;
            for _ in 0..1000 {
                table.encode_key_into(0, &[Value::UInt(1 + random.below(rows))], &mut key)?;
                let row = found.get(&key)?.expect("the row is there");
                assert!(!row.get(1)?.is_null());
            }
            Ok(1000)
        })
    })?;
    both("Rows::columns by primary key", |threads| {
        measure(&db, threads, |txn, random| {
            let mut key = Vec::with_capacity(4);
            let mut found = txn.rows(&table)?;
            for _ in 0..1000 {
                table.encode_key_into(0, &[Value::UInt(1 + random.below(rows))], &mut key)?;
                let [name] = found.columns(&key, [1])?.expect("the row is there");
                assert!(!name.is_null());
            }
            Ok(1000)
        })
    })?;
    both("cursor seek by primary key", |threads| {
        measure(&db, threads, |txn, random| {
            let mut key = Vec::with_capacity(4);
            let mut cursor = Cursor::new(&table, 0, CursorOptions::default());
            for _ in 0..100 {
                table.encode_key_into(0, &[Value::UInt(1 + random.below(rows))], &mut key)?;
                assert!(cursor.seek(txn, &key, Seek::Exact)?);
                assert!(!cursor.row()?.get(1)?.is_null());
            }
            Ok(100)
        })
    })?;
    both("range of 100 by primary key, rows", |threads| {
        measure(&db, threads, |txn, random| {
            let mut cursor = Cursor::new(&table, 0, CursorOptions::default());
            let first = 1 + random.below(rows.saturating_sub(100).max(1));
            let key = table.encode_key(0, &[Value::UInt(first)])?;
            let mut least = u64::MAX;
            let mut n = 0;
            let mut more = cursor.seek(txn, &key, Seek::AtOrAfter)?;
            while more && n < 100 {
                if let Value::UInt(dob) = cursor.row()?.get(4)? {
                    least = least.min(dob);
                }
                n += 1;
                more = cursor.next(txn)?;
            }
            assert!(least < u64::MAX);
            Ok(n)
        })
    })?;
    for (what, index_only, column, limit) in [
        ("country_id = ?, rows by key", false, 1, u64::MAX),
        ("country_id = ? limit 5, rows", false, 1, 5),
        ("country_id = ?, index only, rows", true, 7, u64::MAX),
        ("… limit 5, index only, rows", true, 7, 5),
    ] {
        both(what, |threads| {
            measure(&db, threads, |txn, random| {
                let options = CursorOptions {
                    index_only,
                    ..CursorOptions::default()
                };
                let mut cursor = Cursor::new(&table, 2, options);
                cursor.set_columns(Some(&[column]));
                let key = table.encode_key(2, &[Value::UInt(random.below(200))])?;
                let mut n = 0;
                let mut more = cursor.seek(txn, &key, Seek::Exact)?;
                while more && n < limit {
                    assert!(!cursor.row()?.get(column)?.is_null());
                    n += 1;
                    more = cursor.next_same_prefix(txn)?;
                }
                Ok(n)
            })
        })?;
    }
    both("full scan, min(dob), rows", |threads| {
        measure(&db, threads, |txn, _| {
            let mut cursor = Cursor::new(&table, 0, CursorOptions::default());
            let (mut n, mut least) = (0, u64::MAX);
            let mut more = cursor.seek(txn, b"", Seek::First)?;
            while more {
                if let Value::UInt(dob) = cursor.row()?.get(4)? {
                    least = least.min(dob);
                }
                n += 1;
                more = cursor.next(txn)?;
            }
            assert_eq!(n, rows);
            Ok(n)
        })
    })?;
    db.close()?;
    std::fs::remove_dir_all(&dir).ok();
    Ok(())
}
