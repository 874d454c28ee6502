//! Segment files that can't be renamed, removed or made: the log forgets none of them.

use super::*;
use crate::os::simulated::{Call, Loss};

/// Number of files in the log's directory, and of files that the log counts, by their bytes.
fn files(os: &SimulatedOs, log: &Log) -> (u64, u64) {
    let there = os.list(&dir()).unwrap().len() as u64;
    (there, log.stats().file_bytes / SMALL)
}

/// A log of `segments` segments, a position near its end, and the number of segments needed from there.
fn with_segments(os: &SimulatedOs, segments: u64) -> (Log, Lsn, u64) {
    let log = create_without_threads(os);
    let (kind, payload) = record(1, 1000);
    while log.stats().segments < segments {
        log.append(kind, &[&payload]).unwrap();
    }
    let from = log.mark().unwrap();
    log.durable(log.end(), Durability::SyncAtCommit).unwrap();
    let needed = segments - from.0 / log.segment_bytes();
    (log, from, needed)
}

#[test]
fn segments_that_can_not_be_renamed_are_released_later() {
    for failing in 0..4 {
        let os = SimulatedOs::new(11);
        let (log, from, needed) = with_segments(&os, 6);
        os.fail_once(FaultOn::Only(Call::Name), failing, ErrorKind::Other);
        assert!(log.release_before(from).is_err());
        // The others are spares.
        assert_eq!(log.stats().segments, needed + 1, "rename {failing}");
        let (there, known) = files(&os, &log);
        assert_eq!(there, known, "rename {failing}");
        log.release_before(from).unwrap();
        assert_eq!(log.stats().segments, needed);
        log.give_spares_back().unwrap();
        assert_eq!(files(&os, &log), (needed, needed));
    }
}

#[test]
fn spares_that_can_not_be_removed_are_removed_later() {
    for failing in 0..4 {
        let os = SimulatedOs::new(12);
        let (log, from, needed) = with_segments(&os, 6);
        log.release_before(from).unwrap();
        os.fail_once(FaultOn::Only(Call::Name), failing, ErrorKind::Other);
        assert!(log.give_spares_back().is_err());
        let (there, known) = files(&os, &log);
        assert_eq!(there, known, "removal {failing}");
        log.give_spares_back().unwrap();
        assert_eq!(files(&os, &log), (needed, needed));
    }
}

/// With spares and without; also if a file that could not become a segment can't be removed either.
#[test]
fn files_that_can_not_become_segments_are_not_forgotten() {
    if crate::knobs::SHAKEN {
        // Records may be written at once then, and their writes must not fail.
        return;
    }
    for call in [Call::Write, Call::Sync, Call::Name, Call::Allocate] {
        for (spares, once) in [(true, true), (true, false), (false, true), (false, false)] {
            for failing in 0..4 {
                fail_to_make_a_segment(call, failing, spares, once);
            }
        }
    }
}

fn fail_to_make_a_segment(call: Call, failing: u64, spares: bool, once: bool) {
    let long = record(3, 40_000);
    let os = SimulatedOs::new(13);
    let (log, from, _) = with_segments(&os, 4);
    if spares {
        log.release_before(from).unwrap();
    }
    match once {
        true => os.fail_once(FaultOn::Only(call), failing, ErrorKind::Other),
        false => os.fail(FaultOn::Only(call), failing, ErrorKind::Other),
    }
    let appended = log.append(long.0, &[&long.1]);
    os.heal();
    if appended.is_err() {
        log.append(long.0, &[&long.1]).unwrap();
    }
    let case = format!("{call:?} {failing}, spares: {spares}, once: {once}");
    let (there, known) = files(&os, &log);
    assert_eq!(there, known, "{case}");
    log.durable(log.end(), Durability::SyncAtCommit).unwrap();
    drop(log);
    let log = open(&os, from).unwrap();
    assert!(records(&log, from).contains(&long), "{case}");
}

/// A log with two short records; between them, the log has refused a record longer than the space on the disk.
fn refuse_a_long_record(os: &SimulatedOs) -> (Log, Vec<Record>) {
    let short = record(1, 100);
    let long = record(2, 10 * SMALL as usize);
    let log = create_without_threads(os);
    log.append(short.0, &[&short.1]).unwrap();
    log.durable(log.end(), Durability::SyncAtCommit).unwrap();
    os.set_capacity(Some(os.used() + 3 * SMALL));
    let refused = log.append(long.0, &[&long.1]);
    assert!(matches!(refused, Err(Error::NoSpace { .. })), "{refused:?}");
    log.append(short.0, &[&short.1]).unwrap();
    log.durable(log.end(), Durability::SyncAtCommit).unwrap();
    (log, vec![short.clone(), short])
}

#[test]
fn segments_of_a_record_that_is_refused_are_given_back() {
    let os = SimulatedOs::new(14);
    let (log, all) = refuse_a_long_record(&os);
    log.give_spares_back().unwrap();
    assert_eq!(log.stats().segments, 1);
    assert_eq!(files(&os, &log), (1, 1));
    assert_eq!(os.used(), SMALL);
    drop(log);
    assert_eq!(records(&open(&os, Lsn(0)).unwrap(), Lsn(0)), all);
}

/// Whatever a crash loses while segments are given back, no segment is missing.
#[test]
fn the_power_may_go_while_segments_are_given_back() {
    let os = SimulatedOs::new(15);
    os.record();
    let (log, all) = refuse_a_long_record(&os);
    log.give_spares_back().unwrap();
    drop(log);
    let moments = os.recorded();
    // The log has been created before the first sync of a record.
    let created = moments.iter().position(|moment| {
        let disk = moment.crash(Loss::Everything, 0);
        open(&disk, Lsn(0)).is_ok_and(|log| records(&log, Lsn(0)) == all[..1])
    });
    for (n, moment) in moments.iter().enumerate().skip(created.unwrap()) {
        for (seed, loss) in (0..4).flat_map(|seed| Loss::ALL.map(|loss| (seed, loss))) {
            let disk = moment.crash(loss, seed);
            disk.set_capacity(None);
            let log = open(&disk, Lsn(0)).unwrap_or_else(|error| panic!("{n} {loss:?}: {error}"));
            let found = records(&log, Lsn(0));
            assert!(!found.is_empty() && all.starts_with(&found), "{n} {loss:?}");
        }
    }
}

/// Whatever a crash loses meanwhile, no segment is missing.
#[test]
fn an_opening_lets_go_of_what_a_killed_process_made_ahead_of_the_log() {
    let short = record(1, 100);
    let os = SimulatedOs::new(18);
    let log = create_without_threads(&os);
    log.append(short.0, &[&short.1]).unwrap();
    log.durable(log.end(), Durability::SyncAtCommit).unwrap();
    log.group.segments.prepare(6 * log.segment_bytes()).unwrap();
    // The next file has no segment's name yet.
    let new = os.open(&dir().join("new"), OpenMode::CreateNew).unwrap();
    new.allocate(0, SMALL).unwrap();
    assert_eq!(os.list(&dir()).unwrap().len(), 7);
    let killed = os.crash_with(Loss::Nothing, 0);
    killed.record();
    let log = open(&killed, Lsn(0)).unwrap();
    assert_eq!(log.stats().segments, 1);
    log.give_spares_back().unwrap();
    assert_eq!(files(&killed, &log), (1, 1));
    drop(log);
    for (n, moment) in killed.recorded().iter().enumerate() {
        for (seed, loss) in (0..4).flat_map(|seed| Loss::ALL.map(|loss| (seed, loss))) {
            let disk = moment.crash(loss, seed);
            let log = open(&disk, Lsn(0)).unwrap_or_else(|error| panic!("{n} {loss:?}: {error}"));
            assert_eq!(
                records(&log, Lsn(0)),
                std::slice::from_ref(&short),
                "{n} {loss:?}"
            );
            assert_eq!(log.stats().segments, 1, "{n} {loss:?}");
        }
    }
}

/// As soon as the log is closed, another process may have the directory.
#[test]
fn no_file_is_made_renamed_or_removed_after_closing() {
    let os = SimulatedOs::new(16);
    let log = create_without_threads(&os);
    let long = record(3, 40_000);
    os.pause_syncs(true);
    std::thread::scope(|scope| {
        let appending = scope.spawn(|| log.append(long.0, &[&long.1]));
        // The thread waits in the sync of a new segment's header.
        while !os.exists(&dir().join("new")).unwrap() {
            std::thread::yield_now();
        }
        let (closed, is_closed) = std::sync::mpsc::channel();
        let log = &log;
        let os = &os;
        scope.spawn(move || {
            log.close();
            closed.send(os.list(&dir()).unwrap()).unwrap();
        });
        let early = is_closed.recv_timeout(std::time::Duration::from_millis(200));
        os.pause_syncs(false);
        let appended = appending.join().unwrap();
        assert!(matches!(appended, Err(Error::Stopped(_))), "{appended:?}");
        let names = early.unwrap_or_else(|_| is_closed.recv().unwrap());
        assert_eq!(os.list(&dir()).unwrap(), names);
    });
    let released = log.give_spares_back();
    assert!(matches!(released, Err(Error::Stopped(_))), "{released:?}");
}

/// An opening ignores names beyond the last.
#[test]
fn a_segment_that_no_opening_would_see_is_not_made() {
    let os = Arc::new(SimulatedOs::new(17));
    os.create_dir(Path::new("/db")).unwrap();
    let segments = Segments::create(os.clone(), &dir(), 77, SMALL).unwrap();
    let end = segments.capacity() << 30;
    assert_eq!(segments.prepare(end).unwrap(), end);
    let refused = segments.prepare(end + 1);
    assert!(matches!(refused, Err(Error::TooLarge(_))), "{refused:?}");
    let mode = OpenMode::ReadWrite;
    let opened = Segments::open(os, &dir(), 77, end - 1, mode).unwrap();
    assert_eq!(opened.end(), end);
}
