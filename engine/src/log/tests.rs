//! The log under random operations, torn ends, recycled segments and damage.

mod commits;
mod files;
mod reopened;

use std::io::ErrorKind;
use std::path::PathBuf;

use proptest::prelude::*;

use super::*;
use crate::os::simulated::{FaultOn, SimulatedOs};

const SMALL: u64 = 16 * 1024;

fn dir() -> PathBuf {
    PathBuf::from("/db/log")
}

fn options() -> LogOptions {
    LogOptions {
        segment_bytes: SMALL,
        ..LogOptions::new(77, Arc::new(StopFlag::new()))
    }
}

fn create(os: &SimulatedOs) -> Log {
    os.create_dir(&dir()).unwrap();
    Log::create(Arc::new(os.clone()), &dir(), options()).unwrap()
}

/// A log that syncs nothing by itself.
fn create_without_threads(os: &SimulatedOs) -> Log {
    os.create_dir(&dir()).unwrap();
    let options = LogOptions {
        background: false,
        ..options()
    };
    Log::create(Arc::new(os.clone()), &dir(), options).unwrap()
}

fn open(os: &SimulatedOs, from: Lsn) -> Result<Log> {
    Log::open(Arc::new(os.clone()), &dir(), options(), from)
}

type Record = (u8, Vec<u8>);

fn records(log: &Log, from: Lsn) -> Vec<Record> {
    let read = log.read_from(from).unwrap().map(Result::unwrap);
    read.map(|record| (record.kind, record.payload)).collect()
}

fn record(seed: u64, len: usize) -> Record {
    let payload = (0..len as u64).map(|i| (seed.wrapping_mul(i + 7) >> 13) as u8);
    ((seed % 0xF0) as u8, payload.collect())
}

#[derive(Clone, Debug)]
enum Op {
    Append(u64, usize),
    Durable(Durability),
    Confirm,
    /// A checkpoint: appends a mark, makes it durable, releases the log before it.
    Checkpoint,
    Crash(u64),
    Close,
}

fn op() -> impl Strategy<Value = Op> {
    let durability = prop_oneof![
        Just(Durability::SyncAtCommit),
        Just(Durability::WriteAtCommit),
        Just(Durability::Later),
    ];
    prop_oneof![
        // Lengths repeat, so that a stale record may begin where a new one ends.
        8 => (any::<u64>(), prop_oneof![Just(0usize), Just(40), Just(400), 0usize..3000, 0usize..40_000])
            .prop_map(|(seed, len)| Op::Append(seed, len)),
        4 => durability.prop_map(Op::Durable),
        1 => Just(Op::Confirm),
        1 => Just(Op::Checkpoint),
        2 => any::<u64>().prop_map(Op::Crash),
        1 => Just(Op::Close),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// After a crash the log returns a prefix of the appended records, with all acknowledged ones; never anything else,
    /// whatever older bytes the files hold.
    #[test]
    fn what_was_durable_comes_back_and_nothing_else(
        ops in proptest::collection::vec(op(), 1..120),
    ) {
        let mut os = SimulatedOs::new(1);
        let mut log = Some(create(&os));
        let mut from = Lsn(0);
        let mut appended: Vec<Record> = Vec::new();
        let mut acknowledged = 0;
        for op in ops {
            let now = log.as_ref().unwrap();
            match op {
                Op::Append(seed, len) => {
                    let (kind, payload) = record(seed, len);
                    let (a, b) = payload.split_at(len / 3);
                    let end = now.append(kind, &[a, b]).unwrap();
                    prop_assert_eq!(end, now.end());
                    appended.push((kind, payload));
                }
                Op::Durable(durability) => {
                    now.durable(now.end(), durability).unwrap();
                    if durability == Durability::SyncAtCommit {
                        acknowledged = appended.len();
                        prop_assert_eq!(&records(now, from), &appended);
                    }
                }
                Op::Confirm => {
                    now.confirm().unwrap();
                    acknowledged = appended.len();
                    let end = now.end();
                    now.confirm().unwrap();
                    prop_assert_eq!(now.end(), end);
                }
                Op::Checkpoint => {
                    from = now.mark().unwrap();
                    now.durable(now.end(), Durability::SyncAtCommit).unwrap();
                    now.release_before(from).unwrap();
                    appended.clear();
                    acknowledged = 0;
                }
                Op::Crash(seed) => {
                    let after = os.crash(seed);
                    drop(log.take());
                    os = after;
                    let reader = Log::read_only(Arc::new(os.clone()), &dir(), 77, from).unwrap();
                    let seen = reader.map(Result::unwrap).count();
                    let next = open(&os, from).unwrap();
                    let found = records(&next, from);
                    prop_assert_eq!(found.len(), seen);
                    prop_assert!(found.len() >= acknowledged, "{} < {acknowledged}", found.len());
                    prop_assert_eq!(&found[..], &appended[..found.len()]);
                    appended = found;
                    acknowledged = appended.len();
                    log = Some(next);
                }
                Op::Close => {
                    drop(log.take());
                    let next = open(&os, from).unwrap();
                    prop_assert_eq!(&records(&next, from), &appended);
                    acknowledged = appended.len();
                    log = Some(next);
                }
            }
        }
    }
}

proptest! {
    /// Whatever bytes are damaged: reading returns a prefix of the written records, or an error.
    #[test]
    fn damage_anywhere_is_an_error_or_the_end(
        spots in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>(), 1usize..2000), 1..4),
        segment in 0u64..3,
    ) {
        let os = SimulatedOs::new(10);
        let log = create(&os);
        let mut appended = Vec::new();
        for seed in 0..60 {
            let (kind, payload) = record(seed, 500);
            log.append(kind, &[&payload]).unwrap();
            appended.push((kind, payload));
        }
        drop(log);
        os.damage(&dir().join(format!("{segment:08}")), |bytes| {
            for (spot, byte, len) in spots {
                let at = spot.index(bytes.len());
                let end = (at + len).min(bytes.len());
                bytes[at..end].fill(byte);
            }
        });
        match open(&os, Lsn(0)) {
            Err(Error::Corrupt { .. } | Error::Format { .. }) => {}
            Err(error) => panic!("{error}"),
            Ok(log) => {
                let found = records(&log, Lsn(0));
                prop_assert_eq!(&found[..], &appended[..found.len()]);
            }
        }
    }
}

#[test]
fn a_tail_torn_at_any_byte_is_the_end() {
    let os = SimulatedOs::new(2);
    let log = create(&os);
    let first = record(1, 300);
    let second = record(2, 500);
    log.append(first.0, &[&first.1]).unwrap();
    let before = log.end();
    log.append(second.0, &[&second.1]).unwrap();
    let end = log.end();
    drop(log);
    let file = dir().join("00000000");
    let at = |position: Lsn| (4096 + position.0) as usize;
    for cut in at(before)..at(end) {
        for tear in [0, 0xFF] {
            let torn = os.crash(0);
            let mut changed = false;
            torn.damage(&file, |bytes| {
                changed = bytes[cut..at(end)].iter().any(|&byte| byte != tear);
                bytes[cut..at(end)].fill(tear);
            });
            if !changed {
                continue;
            }
            let log = open(&torn, Lsn(0)).unwrap();
            assert_eq!(records(&log, Lsn(0)), vec![first.clone()], "cut at {cut}");
            let third = record(3, 500);
            log.append(third.0, &[&third.1]).unwrap();
            drop(log);
            let log = open(&torn, Lsn(0)).unwrap();
            assert_eq!(records(&log, Lsn(0)), [first.clone(), third]);
        }
    }
}

#[test]
fn damage_before_the_durable_end_is_reported_at_every_byte() {
    let os = SimulatedOs::new(3);
    let log = create(&os);
    let mut ends = vec![log.end()];
    for seed in 0..3 {
        let (kind, payload) = record(seed, 50);
        let end = log.append(kind, &[&payload]).unwrap();
        log.durable(end, Durability::SyncAtCommit).unwrap();
        ends.push(end);
    }
    drop(log);
    let file = dir().join("00000000");
    // No mark behind the last write tells that it was synced.
    for position in 0..ends[2].0 {
        let damaged = os.crash(0);
        damaged.damage(&file, |bytes| bytes[4096 + position as usize] ^= 0x10);
        let error = open(&damaged, Lsn(0)).unwrap_err();
        let Error::Corrupt {
            file: named,
            offset,
            ..
        } = &error
        else {
            panic!("position {position}: {error}");
        };
        assert_eq!(named, &file);
        assert!(*offset <= 4096 + position, "{error}");
    }
    for position in 0..4096 {
        let damaged = os.crash(0);
        damaged.damage(&file, |bytes| bytes[position] ^= 0x10);
        assert!(open(&damaged, Lsn(0)).is_err(), "header byte {position}");
    }
}

#[test]
fn damage_to_a_confirmed_log_is_reported_at_every_byte() {
    let os = SimulatedOs::new(3);
    let log = create(&os);
    let (kind, payload) = record(1, 50);
    log.append(kind, &[&payload]).unwrap();
    let end = log.append(kind, &[&payload]).unwrap();
    log.confirm().unwrap();
    let file = dir().join("00000000");
    for position in 0..end.0 {
        let damaged = os.crash(0);
        damaged.damage(&file, |bytes| bytes[4096 + position as usize] ^= 0x10);
        let error = open(&damaged, Lsn(0)).unwrap_err();
        assert!(
            matches!(error, Error::Corrupt { .. }),
            "{position}: {error}"
        );
    }
    // If that mark itself is damaged, it is not missed.
    for position in end.0..log.end().0 {
        let damaged = os.crash(0);
        damaged.damage(&file, |bytes| bytes[4096 + position as usize] ^= 0x10);
        let log = open(&damaged, Lsn(0)).unwrap();
        assert_eq!(records(&log, Lsn(0)).len(), 2);
    }
}

/// A log with a long record, durable as a later mark says; with the record's position and length.
fn with_long_record() -> (SimulatedOs, u64, usize) {
    let os = SimulatedOs::new(4);
    os.create_dir(&dir()).unwrap();
    let options = LogOptions {
        segment_bytes: 64 << 20,
        background: false,
        ..options()
    };
    let log = Log::create(Arc::new(os.clone()), &dir(), options).unwrap();
    let begin = log.end();
    let long = vec![7; 17 << 20];
    let mut starts = Vec::new();
    for payload in [&long[..], b"short"] {
        let end = log.append(1, &[payload]).unwrap();
        starts.push(end.0 - (payload.len() + 21) as u64);
        log.durable(end, Durability::SyncAtCommit).unwrap();
    }
    assert!(starts[0] >= begin.0);
    (os, starts[0], long.len())
}

/// The record is longer than the bytes that a short search looks through.
#[test]
fn damage_to_a_long_record_that_was_durable_is_reported() {
    let (os, start, len) = with_long_record();
    let middle = 4096 + start as usize + len / 2;
    os.damage(&dir().join("00000000"), |bytes| bytes[middle] ^= 0x10);
    let opened = open(&os, Lsn(0)).map(drop);
    assert!(matches!(opened, Err(Error::Corrupt { .. })), "{opened:?}");
}

/// The record's length is unknown then.
#[test]
fn damage_to_the_header_of_a_long_record_that_was_durable_is_reported() {
    let (os, start, _) = with_long_record();
    let file = dir().join("00000000");
    for byte in 0..21 {
        let at = 4096 + start as usize + byte;
        os.damage(&file, |bytes| bytes[at] ^= 0x10);
        let opened = open(&os, Lsn(0)).map(drop);
        assert!(
            matches!(opened, Err(Error::Corrupt { .. })),
            "byte {byte}: {opened:?}"
        );
        os.damage(&file, |bytes| bytes[at] ^= 0x10);
    }
    open(&os, Lsn(0)).unwrap();
}

#[test]
fn a_full_disk_keeps_nothing_from_being_durable() {
    let os = SimulatedOs::new(5);
    let log = create_without_threads(&os);
    let (kind, payload) = record(1, 50);
    os.set_capacity(Some(os.used()));
    let mut last = log.end();
    while let Ok(end) = log.append(kind, &[&payload]) {
        last = end;
    }
    log.confirm().unwrap();
    assert!(log.stats().durable >= last);
}

#[test]
fn a_log_that_rests_is_confirmed_once() {
    let os = SimulatedOs::new(5);
    let log = create(&os);
    let (kind, payload) = record(1, 50);
    let end = log.append(kind, &[&payload]).unwrap();
    while log.end() == end {
        std::thread::sleep(crate::knobs::log_sync_interval() / 10);
    }
    let confirmed = log.end();
    std::thread::sleep(crate::knobs::log_sync_interval() * 3);
    assert_eq!(log.end(), confirmed);
}

#[test]
fn segments_are_recycled_and_missing_ones_reported() {
    let os = SimulatedOs::new(4);
    let log = create(&os);
    let mut from = Lsn(0);
    for round in 0..20 {
        for step in 0..10 {
            let (kind, payload) = record(round * 10 + step, 3000);
            log.append(kind, &[&payload]).unwrap();
        }
        from = log.mark().unwrap();
        log.durable(log.end(), Durability::SyncAtCommit).unwrap();
        log.release_before(from).unwrap();
    }
    let kept = record(999, 30_000);
    log.append(kept.0, &[&kept.1]).unwrap();
    assert!(os.used() <= 10 * SMALL, "{} bytes of log", os.used());
    drop(log);
    let log = open(&os, from).unwrap();
    assert_eq!(records(&log, from), [kept]);
    drop(log);
    let names = os.list(&dir()).unwrap();
    let number = from.0 / (SMALL - 4096);
    let needed = format!("{number:08}");
    assert!(names.contains(&needed));
    os.remove(&dir().join(&needed)).unwrap();
    let error = open(&os, from).unwrap_err();
    assert!(matches!(&error, Error::Corrupt { .. }), "{error}");
    let error = open(&os, Lsn(0)).unwrap_err();
    assert!(error.to_string().contains("missing"), "{error}");
}

#[test]
fn another_databases_log_and_a_newer_format_are_refused() {
    let os = SimulatedOs::new(5);
    drop(create(&os));
    let other = LogOptions::new(78, Arc::new(StopFlag::new()));
    let error = Log::open(Arc::new(os.clone()), &dir(), other, Lsn(0)).unwrap_err();
    assert!(matches!(&error, Error::Format { .. }), "{error}");
    os.damage(&dir().join("00000000"), |bytes| {
        bytes[8] = 2;
        let checksum = crc32c::crc32c(&bytes[..4092]);
        bytes[4092..4096].copy_from_slice(&checksum.to_le_bytes());
    });
    let error = open(&os, Lsn(0)).unwrap_err();
    assert!(error.to_string().contains("format 2"), "{error}");
    let odd = LogOptions {
        segment_bytes: 5000,
        ..options()
    };
    assert!(Log::create(Arc::new(os), &dir(), odd).is_err());
}

/// Writes a word into a segment's header, with a correct checksum.
fn forge(os: &SimulatedOs, number: u64, at: usize, word: u64) {
    os.damage(&dir().join(format!("{number:08}")), |bytes| {
        bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
        let checksum = crc32c::crc32c(&bytes[..4092]);
        bytes[4092..4096].copy_from_slice(&checksum.to_le_bytes());
    });
}

#[test]
fn segments_that_are_not_what_they_should_be_are_refused() {
    let os = SimulatedOs::new(6);
    let log = create(&os);
    let (kind, payload) = record(1, 30_000);
    log.append(kind, &[&payload]).unwrap();
    log.durable(log.end(), Durability::SyncAtCommit).unwrap();
    let end = log.end();
    drop(log);
    for (number, at, word, expected) in [
        (0, 24, 1, "expected segment 0, found 1"),
        (0, 32, 1000, "segments of 1000 bytes can't be"),
        (0, 32, 2 * SMALL, "among ones of 16384"),
    ] {
        let disk = os.crash(0);
        forge(&disk, number, at, word);
        let error = open(&disk, Lsn(0)).unwrap_err();
        assert!(matches!(&error, Error::Corrupt { .. }), "{error}");
        assert!(error.to_string().contains(expected), "{error}");
    }
    let beyond = open(&os, Lsn(end.0 + 100 * SMALL)).unwrap_err();
    assert!(beyond.to_string().contains("ends before"), "{beyond}");
    for name in os.list(&dir()).unwrap() {
        os.remove(&dir().join(name)).unwrap();
    }
    let none = open(&os, Lsn(0)).unwrap_err();
    assert!(none.to_string().contains("no segments"), "{none}");
}

#[test]
fn records_that_cannot_be_are_refused_and_leave_nothing() {
    let os = SimulatedOs::new(7);
    let log = create(&os);
    let begin = log.end();
    let megabyte = vec![0; 1 << 20];
    let parts = vec![&megabyte[..]; (record::MAX_PAYLOAD >> 20) + 1];
    assert!(matches!(log.append(1, &parts), Err(Error::TooLarge(_))));
    let own = log.append(record::FIRST_OWN_KIND, &[b"x"]);
    assert!(matches!(own, Err(Error::Internal(_))));
    assert_eq!(log.end(), begin);
    assert_eq!(records(&log, Lsn(0)), []);
}
