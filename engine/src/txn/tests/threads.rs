//! Many threads: no change is lost or torn while purge and splits go on.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::fixture::{delete, get, get_locked, put, scan, Fixture};
use crate::error::Error;
use crate::settings::Isolation::{self, ReadCommitted, RepeatableRead};
use crate::txn::{PutMode, TreeTransaction};

fn number(row: &[u8]) -> u64 {
    u64::from_le_bytes(row[..8].try_into().unwrap())
}

/// Rolls the transaction back, and returns whether it may be tried again.
fn lost(txn: &mut TreeTransaction, error: &Error) -> bool {
    txn.rollback().unwrap();
    matches!(error, Error::Deadlock | Error::WriteConflict)
}

/// Increments counters in random order; returns how many commits there were.
fn increment(fixture: &Fixture, isolation: Isolation, seed: u64, keys: u8, rounds: u32) -> u64 {
    let mut random = StdRng::seed_from_u64(seed);
    let mut commits = 0;
    let mut txn = fixture.begin(isolation);
    for _ in 0..rounds {
        let key = [random.random_range(0..keys)];
        txn.start_statement();
        let outcome = (|| {
            // READ COMMITTED locks the row that it will write; with a snapshot, no lock is needed.
            let row = match isolation {
                ReadCommitted => get_locked(&mut txn, &fixture.tree, &key)?,
                _ => get(&mut txn, &fixture.tree, &key),
            };
            let next = number(&row.unwrap()) + 1;
            // The length varies, so that leaves split and freeze meanwhile.
            let mut row = next.to_le_bytes().to_vec();
            row.resize(8 + (next % 5) as usize * 300, 7);
            put(&mut txn, &fixture.tree, &key, &row, PutMode::Update)
        })();
        match outcome {
            Ok(_) if random.random_range(0..10) == 0 => txn.rollback().unwrap(),
            Ok(_) => {
                txn.commit().unwrap();
                commits += 1;
            }
            Err(error) => assert!(lost(&mut txn, &error), "{error}"),
        }
    }
    commits
}

fn counters(isolation: Isolation) {
    let fixture = Fixture::new();
    fixture.transactions.start_purge().unwrap();
    let keys = 12;
    fixture.load((0..keys).map(|key| (vec![key], 0u64.to_le_bytes().to_vec())));
    let commits = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for seed in 0..6 {
            let (fixture, commits) = (&fixture, &commits);
            scope.spawn(move || {
                let done = increment(fixture, isolation, seed, keys, 400);
                commits.fetch_add(done, Ordering::Relaxed);
            });
        }
    });
    let mut reader = fixture.begin(RepeatableRead);
    let view = reader.view();
    let total: u64 = scan(&reader, &fixture.tree, &view)
        .values()
        .map(|row| number(row))
        .sum();
    assert!(total > 0);
    assert_eq!(total, commits.load(Ordering::Relaxed));
    assert_eq!(fixture.transactions.stats().locked_rows, 0);
}

#[test]
fn no_update_is_lost_at_read_committed() {
    counters(ReadCommitted);
}

#[test]
fn no_update_is_lost_at_repeatable_read() {
    counters(RepeatableRead);
}

/// Threads move money between accounts. Accounts without money are deleted and made again. Every snapshot sees the
/// same total, by scan and by point reads, in two trees.
#[test]
fn every_snapshot_sees_the_whole_bank() {
    let fixture = Fixture::new();
    fixture.transactions.start_purge().unwrap();
    let accounts = 30u8;
    let total = u64::from(accounts) * 100;
    fixture.load((0..accounts).map(|key| (vec![key], 100u64.to_le_bytes().to_vec())));
    let stop = AtomicBool::new(false);
    let audits = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let movers: Vec<_> = (0..4)
            .map(|seed| {
                let fixture = &fixture;
                scope.spawn(move || move_money(fixture, seed, accounts, 500))
            })
            .collect();
        for _ in 0..2 {
            let (fixture, stop, audits) = (&fixture, &stop, &audits);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let mut auditor = fixture.begin(RepeatableRead);
                    let view = auditor.view();
                    for _ in 0..2 {
                        let mut rows = scan(&auditor, &fixture.tree, &view);
                        let other = scan(&auditor, &fixture.other, &view);
                        let mut sum: u64 = rows.values().map(|row| number(row)).sum();
                        sum += other.values().map(|row| number(row)).sum::<u64>();
                        assert_eq!(sum, total);
                        for key in 0..accounts {
                            let row = get(&mut auditor, &fixture.tree, &[key]);
                            assert_eq!(row, rows.remove(&vec![key]));
                        }
                    }
                    audits.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for mover in movers {
            mover.join().unwrap();
        }
        while audits.load(Ordering::Relaxed) == 0 {
            std::thread::yield_now();
        }
        stop.store(true, Ordering::Relaxed);
    });
    fixture.transactions.shutdown();
    fixture.purge();
    let records = fixture.records(&fixture.tree);
    assert!(records.iter().all(|(_, header, _)| !header.deleted));
    assert_eq!(fixture.transactions.stats().unpurged, 0);
    assert_eq!(fixture.transactions.stats().locked_rows, 0);
}

fn move_money(fixture: &Fixture, seed: u64, accounts: u8, rounds: u32) {
    let mut random = StdRng::seed_from_u64(seed);
    let mut done = 0;
    while done < rounds {
        let mut txn = fixture.begin(RepeatableRead);
        let outcome = (|| {
            for _ in 0..random.random_range(1..4) {
                let from_tree = [&fixture.tree, &fixture.other][random.random_range(0..2)];
                let to_tree = [&fixture.tree, &fixture.other][random.random_range(0..2)];
                let from = [random.random_range(0..accounts)];
                let to = [random.random_range(0..accounts)];
                let Some(row) = get(&mut txn, from_tree, &from) else {
                    continue;
                };
                let amount = random.random_range(1..=number(&row));
                let rest = number(&row) - amount;
                if rest == 0 {
                    delete(&mut txn, from_tree, &from)?;
                } else {
                    put(
                        &mut txn,
                        from_tree,
                        &from,
                        &rest.to_le_bytes(),
                        PutMode::Update,
                    )?;
                }
                let before = get(&mut txn, to_tree, &to).map_or(0, |row| number(&row));
                let after = (before + amount).to_le_bytes();
                put(&mut txn, to_tree, &to, &after, PutMode::Upsert)?;
            }
            Ok(())
        })();
        match outcome {
            Ok(()) if random.random_range(0..8) == 0 => txn.rollback().unwrap(),
            Ok(()) => {
                txn.commit().unwrap();
                done += 1;
            }
            Err(error) => assert!(lost(&mut txn, &error), "{error}"),
        }
    }
}

/// Threads lock rows in random order, so there are many deadlocks; each is found, and all threads finish.
#[test]
fn random_locks_never_hang() {
    let fixture = Fixture::new();
    let keys = 6u8;
    fixture.load((0..keys).map(|key| (vec![key], 0u64.to_le_bytes().to_vec())));
    std::thread::scope(|scope| {
        for seed in 0..6 {
            let fixture = &fixture;
            scope.spawn(move || {
                let mut random = StdRng::seed_from_u64(seed);
                let mut done = 0;
                while done < 150 {
                    let mut txn = fixture.begin(ReadCommitted);
                    let outcome = (|| {
                        for _ in 0..4 {
                            let key = [random.random_range(0..keys)];
                            if random.random() {
                                txn.lock_row(&fixture.tree, &key, crate::lock::LockMode::Shared)?;
                            } else {
                                let row = get_locked(&mut txn, &fixture.tree, &key)?;
                                let next = (number(&row.unwrap()) + 1).to_le_bytes();
                                put(&mut txn, &fixture.tree, &key, &next, PutMode::Update)?;
                            }
                        }
                        Ok(())
                    })();
                    match outcome {
                        Ok(()) => {
                            txn.commit().unwrap();
                            done += 1;
                        }
                        Err(error) => assert!(lost(&mut txn, &error), "{error}"),
                    }
                }
            });
        }
    });
    assert_eq!(fixture.transactions.stats().locked_rows, 0);
}
