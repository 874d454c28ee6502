//! A process is killed, another opens the log and goes on, and then the power fails.

use super::*;
use crate::os::simulated::{Event, Loss};

fn killed(os: &SimulatedOs) -> SimulatedOs {
    os.crash_with(Loss::Nothing, 0)
}

fn open_without_threads(os: &SimulatedOs) -> Result<Log> {
    let options = LogOptions {
        background: false,
        ..options()
    };
    Log::open(Arc::new(os.clone()), &dir(), options, Lsn(0))
}

fn append(log: &Log, record: &Record, durability: Durability) -> Result<()> {
    let end = log.append(record.0, &[&record.1])?;
    log.durable(end, durability)
}

/// The records found after a loss of power, with all unsynced bytes lost.
fn found_without_power(os: &SimulatedOs) -> Vec<Record> {
    let lost = os.crash_with(Loss::Everything, 0);
    let log = open_without_threads(&lost).unwrap();
    records(&log, Lsn(0))
}

/// The disk of a log whose process synced only a part of it, and was killed; and all records of the log.
fn unsynced(segment_bytes: u64, bytes: usize, sync_fails: bool) -> (SimulatedOs, Vec<Record>) {
    let os = SimulatedOs::new(11);
    os.create_dir(&dir()).unwrap();
    let options = LogOptions {
        background: false,
        segment_bytes,
        ..options()
    };
    let log = Log::create(Arc::new(os.clone()), &dir(), options).unwrap();
    let mut all = vec![record(1, 3000)];
    append(&log, &all[0], Durability::SyncAtCommit).unwrap();
    for seed in 0..bytes as u64 / 3000 {
        all.push(record(2 + seed, 3000));
        append(&log, &all[all.len() - 1], Durability::WriteAtCommit).unwrap();
    }
    if sync_fails {
        os.fail_once(FaultOn::Sync, 0, ErrorKind::Other);
        log.durable(log.end(), Durability::SyncAtCommit)
            .unwrap_err();
        os.heal();
    }
    let disk = killed(&os);
    (disk, all)
}

/// A log that ends so close to its segment's end that an opening keeps the next segment; and its records.
fn near_its_segments_end(os: &SimulatedOs) -> (Log, Vec<Record>) {
    let log = create_without_threads(os);
    let mut all = vec![record(1, 3000)];
    append(&log, &all[0], Durability::SyncAtCommit).unwrap();
    let rest = log.segment_bytes() - log.end().0 - group_commit::room_behind();
    all.push(record(2, rest as usize - record::RECORD_HEADER));
    append(&log, &all[1], Durability::SyncAtCommit).unwrap();
    assert_eq!(log.stats().segments, 1);
    (log, all)
}

#[test]
fn what_is_acknowledged_behind_a_segment_whose_name_was_not_durable_survives() {
    let os = SimulatedOs::new(11);
    let (log, mut all) = near_its_segments_end(&os);
    os.record();
    log.group.segments.prepare(log.segment_bytes() + 1).unwrap();
    let moments = os.recorded();
    all.extend((3..5).map(|seed| record(seed, 3000)));
    let named = moments
        .iter()
        .filter(|moment| matches!(moment.event, Event::Name(_)));
    assert!(named.count() >= 2);
    for (n, moment) in moments.iter().enumerate() {
        let disk = moment.crash(Loss::Nothing, 0);
        let again = open_without_threads(&disk).unwrap();
        for record in &all[2..] {
            append(&again, record, Durability::SyncAtCommit).unwrap();
        }
        assert_eq!(found_without_power(&disk), all, "killed after moment {n}");
    }
}

/// The process that opens the log acknowledges records behind a part that was only in the kernel's memory.
#[test]
fn what_is_acknowledged_behind_an_end_that_was_not_synced_survives() {
    for (segment_bytes, bytes) in [(SMALL, 4000), (SMALL, 40_000), (1 << 20, 100_000)] {
        for sync_fails in [false, true] {
            let (disk, mut all) = unsynced(segment_bytes, bytes, sync_fails);
            let log = open_without_threads(&disk).unwrap();
            assert_eq!(records(&log, Lsn(0)), all);
            assert_eq!(found_without_power(&disk), all, "{bytes} bytes, opened");
            let one = record(99, 300);
            append(&log, &one, Durability::SyncAtCommit).unwrap();
            all.push(one);
            assert_eq!(found_without_power(&disk), all, "{bytes} bytes, gone on");
        }
    }
}

/// The unsynced end is longer than one write, over several segments or within one.
#[test]
fn a_long_end_that_was_not_synced_is_kept_whole() {
    let piece = crate::knobs::log_write_blocks() * segment_header::BLOCK as usize;
    let bytes = piece * 5 / 2;
    for segment_bytes in [1 << 20, 16 << 20] {
        let (disk, mut all) = unsynced(segment_bytes, bytes, true);
        let log = open_without_threads(&disk).unwrap();
        assert!(records(&log, Lsn(0)) == all);
        let one = record(99, 300);
        append(&log, &one, Durability::SyncAtCommit).unwrap();
        all.push(one);
        assert!(found_without_power(&disk) == all);
    }
}

/// A crash then loses no durable record, and the log does not count as damaged.
#[test]
fn the_power_may_go_at_any_moment_of_an_opening() {
    let (disk, all) = unsynced(SMALL, 30_000, false);
    disk.record();
    let log = open_without_threads(&disk).unwrap();
    let moments = disk.recorded();
    drop(log);
    assert!(moments.len() > 5);
    for (n, moment) in moments.iter().enumerate() {
        for loss in Loss::ALL {
            for seed in 0..16 {
                let lost = moment.crash(loss, seed);
                let again = match open_without_threads(&lost) {
                    Ok(log) => records(&log, Lsn(0)),
                    Err(error) => panic!("{loss:?} after moment {n} ({:?}): {error}", moment.event),
                };
                assert!(!again.is_empty(), "{loss:?} after moment {n}");
                assert_eq!(again[..], all[..again.len()], "{loss:?} after moment {n}");
            }
        }
    }
}

/// A log of three segments, all durable, as a later mark says; its disk and its records.
fn three_segments() -> (SimulatedOs, Vec<Record>) {
    let (disk, mut all) = unsynced(SMALL, 30_000, false);
    let log = open_without_threads(&disk).unwrap();
    all.push(record(98, 100));
    append(&log, &all[all.len() - 1], Durability::SyncAtCommit).unwrap();
    log.confirm().unwrap();
    drop(log);
    (disk, all)
}

#[test]
fn a_segment_that_was_cut_short_is_reported_and_not_the_end() {
    let (disk, all) = three_segments();
    let names = disk.list(&dir()).unwrap();
    assert!(names.len() >= 3, "{names:?}");
    for name in names {
        for len in [5000, SMALL / 2, SMALL - 4096, SMALL - 1] {
            let cut = killed(&disk);
            let path = dir().join(&name);
            cut.damage(&path, |bytes| bytes.truncate(len as usize));
            let error = open(&cut, Lsn(0)).map(drop).unwrap_err();
            let Error::Corrupt { file, what, .. } = &error else {
                panic!("{name} cut to {len}: {error}");
            };
            assert_eq!(file, &path);
            assert!(what.contains(&format!("has {len} bytes")), "{error}");
            // The records before the cut can be read.
            let reader = Log::read_only(Arc::new(cut.clone()), &dir(), 77, Lsn(0)).unwrap();
            let read: Vec<_> = reader.collect();
            assert!(read[read.len() - 1].is_err());
            for (found, expected) in read.iter().flatten().zip(&all) {
                assert_eq!((found.kind, &found.payload), (expected.0, &expected.1));
            }
        }
    }
}

#[test]
fn a_segment_whose_making_did_not_end_does_no_harm() {
    let (disk, mut all) = three_segments();
    for (name, len) in [("new", 100), ("spare-9", 0), ("spare-10", 5000)] {
        let file = disk.open(&dir().join(name), OpenMode::CreateNew).unwrap();
        file.set_len(len).unwrap();
    }
    let log = open_without_threads(&disk).unwrap();
    for seed in 200..230 {
        all.push(record(seed, 3000));
        append(&log, &all[all.len() - 1], Durability::SyncAtCommit).unwrap();
    }
    assert_eq!(found_without_power(&disk), all);
}

/// In the end there is no space for the first record of an opening. The log can still be opened, any number of times.
#[test]
fn a_log_opens_on_a_full_disk_however_often() {
    let os = SimulatedOs::new(11);
    let (log, mut all) = near_its_segments_end(&os);
    drop(log);
    os.set_capacity(Some(os.used()));
    let mut from = Lsn(0);
    for n in 0..20 {
        let log = open_without_threads(&os).unwrap_or_else(|error| panic!("opening {n}: {error}"));
        assert_eq!(records(&log, Lsn(0)), all);
        // A checkpoint, and the confirmation that a coordinator asks for.
        from = log.mark().unwrap();
        log.durable(Lsn(from.0 + 1), Durability::SyncAtCommit)
            .unwrap();
        log.confirm().unwrap();
        let refused = append(&log, &record(9, 3000), Durability::SyncAtCommit);
        assert!(matches!(refused, Err(Error::NoSpace { .. })), "{refused:?}");
    }
    assert_eq!(found_without_power(&os.crash_with(Loss::Nothing, 0)), all);

    let log = open_without_threads(&os).unwrap();
    os.set_capacity(None);
    let more = [record(3, 3000), record(4, 300)];
    for record in &more {
        append(&log, record, Durability::SyncAtCommit).unwrap();
    }
    let lost = os.crash_with(Loss::Everything, 0);
    let again = open(&lost, from).unwrap();
    assert_eq!(records(&again, from), more);
    drop(again);
    all.extend(more);
    assert_eq!(found_without_power(&os), all);
}
