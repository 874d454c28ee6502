//! Promises to committers: beside one another, with failing calls or a full disk, and at the end.

use super::*;

#[test]
fn one_sync_serves_all_that_wait() {
    let os = SimulatedOs::new(6);
    let log = create_without_threads(&os);
    let before = log.stats().syncs;
    os.pause_syncs(true);
    std::thread::scope(|scope| {
        for seed in 0..16 {
            let log = &log;
            scope.spawn(move || {
                let (kind, payload) = record(seed, 100);
                let end = log.append(kind, &[&payload]).unwrap();
                log.durable(end, Durability::SyncAtCommit).unwrap();
            });
        }
        // All have appended, and the first of them is syncing.
        let all = Lsn(16 * 121 + 33);
        while log.end() < all {
            std::thread::yield_now();
        }
        os.pause_syncs(false);
    });
    let syncs = log.stats().syncs - before;
    assert!(syncs <= 2, "{syncs} syncs for 16 commits");
    let after = open(&os.crash(1), Lsn(0)).unwrap();
    assert_eq!(records(&after, Lsn(0)).len(), 16);
}

#[test]
fn what_threads_were_promised_is_there_after_a_crash() {
    let os = SimulatedOs::new(7);
    let log = create(&os);
    let promised: Vec<Vec<u32>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..6u32)
            .map(|thread| {
                let log = &log;
                scope.spawn(move || {
                    let commit = |step: u32| {
                        let number = thread << 16 | step;
                        let end = log.append(1, &[&number.to_le_bytes()]).unwrap();
                        let durability = match step % 4 {
                            0 => Durability::SyncAtCommit,
                            1 => Durability::WriteAtCommit,
                            _ => Durability::Later,
                        };
                        log.durable(end, durability).unwrap();
                        (step % 4 == 0).then_some(number)
                    };
                    (0..400).filter_map(commit).collect()
                })
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    let after = open(&os.crash(2), Lsn(0)).unwrap();
    let found: std::collections::BTreeSet<u32> = records(&after, Lsn(0))
        .into_iter()
        .map(|(_, payload)| u32::from_le_bytes(payload.try_into().unwrap()))
        .collect();
    for number in promised.into_iter().flatten() {
        assert!(found.contains(&number), "{number:x} is lost");
    }
}

#[test]
fn a_failed_sync_or_write_is_final() {
    if crate::knobs::SHAKEN {
        // The figures are those of production's knobs.
        return;
    }
    for on in [FaultOn::Sync, FaultOn::Write] {
        let os = SimulatedOs::new(8);
        let log = create(&os);
        let end = log.append(1, &[b"a"]).unwrap();
        os.fail(on, 0, ErrorKind::Other);
        let failed = log.durable(end, Durability::SyncAtCommit);
        assert!(matches!(failed, Err(Error::Stopped(_))), "{failed:?}");
        os.heal();
        let again = log.durable(end, Durability::SyncAtCommit);
        assert!(matches!(again, Err(Error::Stopped(_))), "{again:?}");
        assert!(matches!(log.append(1, &[b"b"]), Err(Error::Stopped(_))));
        assert!(matches!(log.mark(), Err(Error::Stopped(_))));
    }
}

#[test]
fn a_full_disk_refuses_appends_and_ends() {
    let os = SimulatedOs::new(9);
    let log = create(&os);
    os.set_capacity(Some(os.used() + SMALL));
    let (kind, payload) = record(1, 1000);
    let mut appended = Vec::new();
    let full = loop {
        match log.append(kind, &[&payload]) {
            Ok(_) => appended.push((kind, payload.clone())),
            Err(error) => break error,
        }
        assert!(appended.len() < 100, "{} {:?}", os.used(), os.list(&dir()));
    };
    assert!(matches!(full, Error::NoSpace { .. }), "{full}");
    log.durable(log.end(), Durability::SyncAtCommit).unwrap();
    os.set_capacity(None);
    log.append(kind, &[&payload]).unwrap();
    appended.push((kind, payload));
    drop(log);
    let log = open(&os, Lsn(0)).unwrap();
    assert_eq!(records(&log, Lsn(0)), appended);
}

/// Holds on a full disk, whatever other threads append meanwhile.
#[test]
fn promised_room_is_kept_until_it_is_used_or_given_up() {
    let os = SimulatedOs::new(13);
    let log = create_without_threads(&os);
    os.set_capacity(Some(os.used()));
    let long = vec![7u8; 8_000];
    let promised = log.promise(long.len()).unwrap();
    let refused = log.append(1, &[&long]);
    assert!(matches!(refused, Err(Error::NoSpace { .. })), "{refused:?}");
    drop(promised);
    let promised = log.promise(long.len()).unwrap();
    let mut short = 0;
    while log.append(2, &[b"short"]).is_ok() {
        short += 1;
    }
    log.confirm().unwrap();
    let end = promised.append(1, &[&long]).unwrap();
    log.durable(end, Durability::SyncAtCommit).unwrap();
    assert_eq!(records(&log, Lsn(0)).len(), short + 1);
}

/// A checkpoint begins while another thread confirms the log: its mark is appended, and not durable yet.
#[test]
fn a_mark_that_another_appends_is_durable_when_it_confirms() {
    let os = SimulatedOs::new(12);
    let log = create_without_threads(&os);
    let end = log.append(1, &[b"record"]).unwrap();
    log.durable(end, Durability::SyncAtCommit).unwrap();
    log.mark().unwrap();
    assert!(log.stats().durable < log.end());
    log.group.confirm_durable(end.0).unwrap();
    assert_eq!(log.stats().durable, log.end());
}

#[test]
fn nothing_is_written_after_closing() {
    let os = SimulatedOs::new(11);
    let log = create(&os);
    let done = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut done = 0u64;
                    loop {
                        let Ok(end) = log.append(1, &[b"record"]) else {
                            return done;
                        };
                        if log.durable(end, Durability::SyncAtCommit).is_err() {
                            return done;
                        }
                        done += 1;
                    }
                })
            })
            .collect();
        while log.stats().syncs < 50 {
            std::thread::yield_now();
        }
        log.close();
        // Once the log is closed, its files do not change any more.
        let files = Log::read_only(Arc::new(os.clone()), &dir(), 77, Lsn(0)).unwrap();
        let found = files.map(Result::unwrap).count();
        let done: u64 = threads.into_iter().map(|t| t.join().unwrap()).sum();
        assert!(found as u64 >= done);
        found
    });
    drop(log);
    let log = open(&os, Lsn(0)).unwrap();
    assert_eq!(records(&log, Lsn(0)).len(), done);
}
