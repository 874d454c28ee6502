//! Real crashes: a child process commits transactions and says so on a pipe; it is killed at a
//! random moment (SIGKILL), and what the next opening finds must be every acknowledged commit and
//! no half of any other. The same directory goes through all rounds.
//!
//! The test is its own child: `PEREGRINE_CRASH_DIR` makes it one.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use peregrine::{
    Column, ColumnType, Cursor, CursorOptions, Database, Error, Index, Isolation, Key, Options,
    Result, Seek, Table, TableSchema, Transaction, Value,
};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

const CHILD_DIR: &str = "PEREGRINE_CRASH_DIR";
const THREADS: u64 = 3;
const IDS: u64 = 400;
/// How long the rounds go on, and how many there are at least and at most.
const TIME: Duration = Duration::from_secs(12);
const ROUNDS: std::ops::RangeInclusive<u32> = 10..=60;

/// id → the number that determines the row.
type Rows = BTreeMap<u64, u64>;

fn options() -> Options {
    Options {
        pool_bytes: 1 << 20,
        // Many checkpoints, so that crashes fall into them.
        log_bytes: 1 << 20,
        ..Options::default()
    }
}

fn schema() -> TableSchema {
    let int = ColumnType::Int {
        bytes: 8,
        signed: false,
    };
    TableSchema {
        columns: vec![
            Column::new("id", int),
            Column::new("token", int),
            Column::new("group", int),
            Column::new("text", ColumnType::Large { max: 1 << 20 }),
        ],
        primary: Some(Key::new(&[0])),
        indexes: vec![
            Index::new("token", &[1]).unique(),
            Index::new("group", &[2]),
        ],
        user: vec![],
    }
}

/// A text that the token determines; some are long enough to stand outside the row.
fn text(token: u64) -> Vec<u8> {
    let len = match token % 16 {
        0 => 9_000,
        n => n as usize * 10,
    };
    token.to_le_bytes().into_iter().cycle().take(len).collect()
}

fn row(id: u64, token: u64, text: &[u8]) -> [Value<'_>; 4] {
    [
        Value::UInt(id),
        Value::UInt(token),
        Value::UInt(token % 7),
        Value::Bytes(text),
    ]
}

fn key(table: &Table, id: u64) -> Result<Vec<u8>> {
    table.encode_key(0, &[Value::UInt(id)])
}

fn main() -> ExitCode {
    if let Some(dir) = std::env::var_os(CHILD_DIR) {
        return match child(Path::new(&dir)) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("the child: {error}");
                ExitCode::from(3)
            }
        };
    }
    parent();
    ExitCode::SUCCESS
}

/// Commits until it is killed. A line `B thread put:token… -deleted…` before each commit, `A
/// thread` after it.
fn child(dir: &Path) -> Result<()> {
    let db = Database::open(dir, options())?;
    let table = match db.table("t") {
        Err(Error::NotFound { .. }) => db.create_table("t", &schema())?,
        other => other?,
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let (db, table) = (&db, &table);
                scope.spawn(move || work(db, table, thread))
            })
            .collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().expect("no thread panics"))
    })
}

fn say(line: &str) {
    // One write a line: what was written before the kill stays in the pipe.
    let mut out = std::io::stdout().lock();
    if out
        .write_all(line.as_bytes())
        .and_then(|()| out.flush())
        .is_err()
    {
        std::process::exit(0);
    }
}

fn work(db: &Database, table: &Table, thread: u64) -> Result<()> {
    let mut rng = StdRng::from_os_rng();
    let mut txn = db.begin(Isolation::RepeatableRead);
    loop {
        let mut line = format!("B {thread}");
        for _ in 0..rng.random_range(1..9) {
            // Each thread has its own rows; pages, undo and log are shared.
            let id = rng.random_range(0..IDS / THREADS) * THREADS + thread;
            change(&mut txn, table, &mut rng, id, &mut line)?;
        }
        match rng.random_range(0..10) {
            0 => txn.rollback()?,
            _ => {
                line.push('\n');
                say(&line);
                txn.commit()?;
                say(&format!("A {thread}\n"));
            }
        }
    }
}

fn change(
    txn: &mut Transaction,
    table: &Table,
    rng: &mut StdRng,
    id: u64,
    line: &mut String,
) -> Result<()> {
    let key = key(table, id)?;
    let token = rng.random::<u64>() >> 1;
    let exists = txn.get(table, &key, |_| ())?.is_some();
    if exists && rng.random_bool(0.3) {
        txn.delete(table, &key)?;
        line.push_str(&format!(" -{id}"));
        return Ok(());
    }
    let savepoint = txn.savepoint();
    let text = text(token);
    let row = row(id, token, &text);
    if exists {
        txn.update(table, &key, &row)?;
    } else {
        txn.insert(table, &row)?;
    }
    if rng.random_bool(0.1) {
        return txn.rollback_to(&savepoint);
    }
    line.push_str(&format!(" {id}:{token}"));
    Ok(())
}

fn apply(rows: &mut Rows, changes: &str) {
    for change in changes.split_whitespace() {
        if let Some(id) = change.strip_prefix('-') {
            rows.remove(&id.parse().expect("an id"));
        } else {
            let (id, token) = change.split_once(':').expect("a change");
            rows.insert(id.parse().expect("an id"), token.parse().expect("a token"));
        }
    }
}

fn parent() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("db");
    let mut rng = StdRng::from_os_rng();
    // Per thread: what is there for certain.
    let mut rows: Vec<Rows> = vec![Rows::new(); THREADS as usize];
    let begun = Instant::now();
    let (mut rounds, mut commits) = (0, 0);
    while rounds < *ROUNDS.start() || (begun.elapsed() < TIME && rounds < *ROUNDS.end()) {
        let open: Vec<Option<String>> = run_child(&path, &mut rng, &mut rows, &mut commits);
        verify(&path, &mut rows, &open);
        rounds += 1;
    }
    assert!(commits > 0, "no child came to a commit");
    println!("test kill: {rounds} kills, {commits} acknowledged commits, all there ... ok");
}

/// Runs a child and kills it; applies what it acknowledged. Returns per thread the changes whose
/// commit had begun and was not acknowledged.
fn run_child(
    path: &Path,
    rng: &mut StdRng,
    rows: &mut [Rows],
    commits: &mut u64,
) -> Vec<Option<String>> {
    let mut child = Command::new(std::env::current_exe().expect("own path"))
        .env(CHILD_DIR, path)
        .stdout(Stdio::piped())
        .spawn()
        .expect("the child starts");
    let out = BufReader::new(child.stdout.take().expect("a pipe"));
    let wait = Duration::from_millis(rng.random_range(5..250));
    // Counted from its first commit, or it might never come to one on a slow machine; sometimes
    // not, so that openings and recoveries are killed too.
    let from_first = rng.random_bool(0.8);
    let (first_line, began) = std::sync::mpsc::channel();
    let killer = std::thread::spawn(move || {
        if from_first {
            let _ = began.recv_timeout(Duration::from_secs(60));
        }
        std::thread::sleep(wait);
        child.kill().expect("the kill");
        child.wait().expect("the end")
    });
    let mut open: Vec<Option<String>> = vec![None; rows.len()];
    for line in out.lines() {
        let line = line.expect("a line");
        let _ = first_line.send(());
        let mut words = line.splitn(3, ' ');
        let kind = words.next();
        let thread: usize = words.next().and_then(|w| w.parse().ok()).expect("a thread");
        match kind {
            Some("B") => open[thread] = Some(words.next().unwrap_or("").to_owned()),
            Some("A") => {
                let changes = open[thread].take().expect("a commit that had begun");
                apply(&mut rows[thread], &changes);
                *commits += 1;
            }
            _ => panic!("the child said {line:?}"),
        }
    }
    let status = killer.join().expect("the killer");
    assert_eq!(status.code(), None, "the child ended by itself: {status}");
    open
}

/// What the directory holds must be what was acknowledged, and of each thread's open commit all
/// or nothing.
fn verify(path: &Path, rows: &mut [Rows], open: &[Option<String>]) {
    if !path.join("data").exists() {
        return;
    }
    let mut report = peregrine::check::Report::default();
    peregrine::check::check(path, &mut report).expect("the check runs");
    assert!(report.is_sound(), "after the kill: {:?}", report.problems);

    let db = Database::open(path, options()).expect("recovery");
    let table = match db.table("t") {
        Ok(table) => table,
        Err(Error::NotFound { .. }) => {
            assert!(rows.iter().all(Rows::is_empty));
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let mut found = vec![Rows::new(); rows.len()];
    let mut txn = db.begin(Isolation::RepeatableRead);
    let mut buffer = Vec::new();
    let mut counts = Vec::new();
    for index in 0..3 {
        let mut cursor = Cursor::new(&table, index, CursorOptions::default());
        let mut count = 0;
        let mut more = cursor.seek(&mut txn, b"", Seek::First).expect("a scan");
        while more {
            let row = cursor.row().expect("a row");
            let (Ok(Value::UInt(id)), Ok(Value::UInt(token))) = (row.get(0), row.get(1)) else {
                panic!("a row without numbers");
            };
            assert!(row.get_large(3, &mut buffer).expect("the text"));
            assert!(buffer == text(token), "row {id} has another's text");
            assert_eq!(row.get(2).expect("the group"), Value::UInt(token % 7));
            found[(id % THREADS) as usize].insert(id, token);
            count += 1;
            more = cursor.next(&mut txn).expect("a scan");
        }
        counts.push(count);
    }
    assert!(counts.iter().all(|c| c == &counts[0]), "{counts:?}");
    drop(txn);
    for (thread, (known, open)) in rows.iter_mut().zip(open).enumerate() {
        let mut with = known.clone();
        if let Some(changes) = open {
            apply(&mut with, changes);
        }
        let is = &found[thread];
        assert!(
            is == known || is == &with,
            "thread {thread}: found {is:?}\nacknowledged {known:?}\nbegun {open:?}"
        );
        *known = is.clone();
    }
    drop(table);
    db.close().expect("closing");
    let mut report = peregrine::check::Report::default();
    peregrine::check::check(path, &mut report).expect("the check runs");
    assert!(report.is_sound(), "after recovery: {:?}", report.problems);
    assert_eq!((report.in_flight, report.unused_pages), (0, 0));
}
