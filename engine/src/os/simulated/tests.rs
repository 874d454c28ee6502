//! The disk itself: the bytes it keeps, loses and refuses.

use std::collections::BTreeSet;

use super::*;

#[test]
fn a_crash_keeps_what_was_synced_and_only_sectors_of_the_rest() {
    let dir = Path::new("/db");
    let mut outcomes = BTreeSet::new();
    let os = SimulatedOs::new(1);
    os.create_dir(dir).unwrap();
    let file = os.open(&dir.join("a"), OpenMode::CreateNew).unwrap();
    file.write_at(&[1; 2048], 0).unwrap();
    file.sync_data().unwrap();
    os.sync_dir(dir).unwrap();
    file.write_at(&[2; 1024], 512).unwrap();
    for seed in 0..64 {
        let after = os.crash(seed);
        let file = after.open(&dir.join("a"), OpenMode::ReadWrite).unwrap();
        let mut bytes = vec![0; 2048];
        file.read_exact_at(&mut bytes, 0).unwrap();
        for sector in bytes.chunks(512) {
            assert!(sector.iter().all(|byte| byte == &sector[0]));
        }
        assert_eq!((bytes[0], bytes[1536]), (1, 1));
        outcomes.insert((bytes[512], bytes[1024]));
    }
    assert_eq!(outcomes.len(), 4, "each sector is lost or kept");
}

#[test]
fn names_are_durable_after_the_directory_is_synced() {
    let dir = Path::new("/db");
    let os = SimulatedOs::new(1);
    os.create_dir(dir).unwrap();
    let _ = os.open(&dir.join("a"), OpenMode::CreateNew).unwrap();
    let lost = |os: &SimulatedOs| {
        (0..64)
            .filter(|&seed| os.crash(seed).list(dir).unwrap().is_empty())
            .count()
    };
    assert!(lost(&os) > 0);
    os.sync_dir(dir).unwrap();
    assert_eq!(lost(&os), 0);
}

#[test]
fn faults_and_a_full_disk_are_errors() {
    let dir = Path::new("/db");
    let os = SimulatedOs::new(1);
    os.create_dir(dir).unwrap();
    let file = os.open(&dir.join("a"), OpenMode::CreateNew).unwrap();
    os.set_capacity(Some(1000));
    file.write_at(&[1; 900], 0).unwrap();
    let full = file.write_at(&[1; 900], 500);
    assert!(matches!(full, Err(Error::NoSpace { .. })));
    os.set_capacity(None);
    os.fail(FaultOn::Sync, 1, io::ErrorKind::Other);
    file.sync_data().unwrap();
    assert!(file.sync_data().is_err());
    os.heal();
    file.sync_data().unwrap();
    assert_eq!(os.used(), 900);
}

const DIR: &str = "/db";

/// A disk with a synced file of four blocks of ones, and then three unsynced writes.
fn half_written() -> SimulatedOs {
    let os = SimulatedOs::new(1);
    os.create_dir(Path::new(DIR)).unwrap();
    let file = os.open(&Path::new(DIR).join("a"), OpenMode::CreateNew);
    let file = file.unwrap();
    file.write_at(&[1; 16384], 0).unwrap();
    file.sync_data().unwrap();
    os.sync_dir(Path::new(DIR)).unwrap();
    file.write_at(&[2; 4096], 0).unwrap();
    file.write_at(&[3; 4096], 4096).unwrap();
    file.write_at(&[4; 8192], 8192).unwrap();
    os
}

/// The contents of the sectors that a loss leaves of [`half_written`], over many seeds.
fn left_by(loss: Loss, unit: usize) -> BTreeSet<Vec<u8>> {
    let os = half_written();
    let path = Path::new(DIR).join("a");
    (0..300)
        .map(|seed| {
            let after = os.crash_with(loss, seed);
            let again = os.crash_with(loss, seed);
            let bytes = after.bytes(&path, 0, 1 << 20);
            assert_eq!(bytes, again.bytes(&path, 0, 1 << 20), "by seed alone");
            assert_eq!(bytes.len(), 16384);
            let whole = |part: &[u8]| part.iter().all(|byte| byte == &part[0]);
            assert!(
                bytes.chunks(unit).all(whole),
                "{loss:?} tears within {unit} bytes"
            );
            bytes.chunks(unit).map(|part| part[0]).collect()
        })
        .collect()
}

#[test]
fn each_kind_of_loss_takes_what_it_says() {
    let only = |outcome: &[u8]| BTreeSet::from([outcome.to_vec()]);
    assert_eq!(left_by(Loss::Nothing, 4096), only(&[2, 3, 4, 4]));
    assert_eq!(left_by(Loss::Everything, 4096), only(&[1, 1, 1, 1]));
    let later = left_by(Loss::Later, 512);
    assert!(later.iter().all(|parts| {
        // A write is there only if all before it are.
        parts.windows(2).all(|pair| pair[1] == 1 || pair[0] != 1)
    }));
    assert!(later.len() > 4, "the last write is cut off anywhere");
    let reordered = left_by(Loss::Some, 4096);
    assert_eq!(reordered.len(), 8, "each of three writes by itself");
    let blocks = left_by(Loss::TornBlocks, 4096);
    assert_eq!(blocks.len(), 16, "each of four blocks by itself");
    let sectors = left_by(Loss::TornSectors, 512);
    assert!(sectors.len() > 100);
}

#[test]
fn what_a_killed_process_had_not_synced_is_lost_when_the_power_goes_later() {
    let dir = Path::new(DIR);
    let path = dir.join("a");
    let os = half_written();
    os.rename(&path, &dir.join("b")).unwrap();
    os.fail_once(FaultOn::Sync, 0, io::ErrorKind::Other);
    let forgotten = os.open(&dir.join("f"), OpenMode::CreateNew).unwrap();
    os.sync_dir(dir).unwrap_err();
    forgotten.write_at(&[5; 512], 0).unwrap();
    let killed = os.crash_with(Loss::Nothing, 1);
    assert_eq!(killed.bytes(&dir.join("b"), 0, 1), [2]);
    let lost = killed.crash_with(Loss::Everything, 2);
    assert_eq!(lost.list(dir).unwrap(), ["a"]);
    assert_eq!(lost.bytes(&path, 0, 1 << 20), [1; 16384]);

    // Bytes synced since are there; names that were not synced are still open.
    let file = killed.open(&dir.join("b"), OpenMode::ReadWrite).unwrap();
    file.sync_data().unwrap();
    let lost = killed.crash_with(Loss::Everything, 3);
    assert_eq!(lost.bytes(&path, 0, 1), [2]);
    killed.sync_dir(dir).unwrap();
    let lost = killed.crash_with(Loss::Everything, 4);
    assert_eq!(lost.list(dir).unwrap(), ["b", "f"]);
    assert!(lost.bytes(&dir.join("f"), 0, 512).is_empty());
}

/// A disk with a new file; a failed sync may have forgotten some of its one write.
fn after_a_failed_sync(seed: u64, path: &Path) -> (SimulatedOs, Arc<dyn File>) {
    let os = SimulatedOs::new(seed);
    os.create_dir(Path::new(DIR)).unwrap();
    let file = os.open(path, OpenMode::CreateNew).unwrap();
    os.sync_dir(Path::new(DIR)).unwrap();
    file.write_at(&[1; 4096], 0).unwrap();
    os.fail_once(FaultOn::Sync, 0, io::ErrorKind::Other);
    assert!(file.sync_data().is_err());
    (os, file)
}

#[test]
fn what_a_failed_sync_forgot_no_sync_of_a_later_process_brings_back() {
    let path = Path::new(DIR).join("a");
    let mut forgets = 0;
    for seed in 0..40 {
        let (os, _file) = after_a_failed_sync(seed, &path);
        let killed = os.crash_with(Loss::Nothing, seed);
        let file = killed.open(&path, OpenMode::ReadWrite).unwrap();
        file.sync_data().unwrap();
        assert_eq!(killed.bytes(&path, 0, 1), [1], "the process sees it");
        let left = |os: &SimulatedOs| os.crash_with(Loss::Everything, 0).bytes(&path, 0, 1);
        forgets += usize::from(left(&killed).is_empty());
        file.write_at(&[1; 4096], 0).unwrap();
        file.sync_data().unwrap();
        assert_eq!(left(&killed), [1], "written once more it is there");
    }
    assert!(forgets > 0);
}

#[test]
fn names_are_lost_in_order_unless_reordered() {
    let dir = Path::new(DIR);
    let os = SimulatedOs::new(1);
    os.create_dir(dir).unwrap();
    os.sync_dir(dir).unwrap();
    for name in ["a", "b", "c"] {
        let _ = os.open(&dir.join(name), OpenMode::CreateNew).unwrap();
    }
    os.rename(&dir.join("a"), &dir.join("d")).unwrap();
    let left = |loss| -> BTreeSet<String> {
        let after = |seed| os.crash_with(loss, seed).list(dir).unwrap().concat();
        (0..300).map(after).collect()
    };
    let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(left(Loss::Nothing), set(&["bcd"]));
    assert_eq!(left(Loss::Everything), set(&[""]));
    assert_eq!(left(Loss::Later), set(&["", "a", "ab", "abc", "bcd"]));
    assert!(left(Loss::Some).contains("ac"));
}

#[test]
fn a_recording_has_the_disk_of_every_moment() {
    let path = Path::new(DIR).join("a");
    let os = half_written();
    os.record();
    let file = os.open(&path, OpenMode::ReadWrite).unwrap();
    os.set_note(7);
    file.write_at(&[5; 512], 512).unwrap();
    file.sync_data().unwrap();
    file.set_len(1024).unwrap();
    let moments = os.recorded();
    let events: Vec<&Event> = moments.iter().map(|moment| &moment.event).collect();
    let expected = [
        Event::Note,
        Event::Note,
        Event::Write(path.clone(), 512, 512),
        Event::Sync(path.clone()),
        Event::Length(path.clone(), 1024),
    ];
    assert_eq!(events, expected.iter().collect::<Vec<_>>());
    assert_eq!(
        moments.iter().map(|m| m.note).collect::<Vec<_>>(),
        [0, 7, 7, 7, 7]
    );
    let lost = |n: usize| {
        moments[n]
            .crash(Loss::Everything, 0)
            .bytes(&path, 0, 1 << 20)
    };
    assert_eq!(lost(2), [1; 16384]);
    assert_eq!(lost(3)[..1024], [[2; 512], [5; 512]].concat());
    assert_eq!(lost(4).len(), 16384);
    let kept = moments[4].crash(Loss::Nothing, 0);
    assert_eq!(kept.bytes(&path, 0, 1 << 20).len(), 1024);
    assert!(moments[3].is_synced() && !moments[4].is_synced());
}

#[test]
fn a_failed_sync_forgets_and_a_later_one_does_not_bring_it_back() {
    let path = Path::new(DIR).join("a");
    let mut outcomes = BTreeSet::new();
    for seed in 0..40 {
        let (os, file) = after_a_failed_sync(seed, &path);
        file.sync_data().unwrap();
        assert_eq!(os.struck(), 1);
        let mut live = [0; 1];
        file.read_exact_at(&mut live, 0).unwrap();
        assert_eq!(live, [1], "the process still sees it");
        outcomes.insert(os.crash_with(Loss::Everything, 0).bytes(&path, 0, 1).len());
    }
    assert_eq!(outcomes.len(), 2, "sometimes it is gone");
}

#[test]
fn faults_hit_the_calls_that_they_name() {
    let path = Path::new(DIR).join("a");
    let os = SimulatedOs::new(1);
    os.create_dir(Path::new(DIR)).unwrap();
    let file = os.open(&path, OpenMode::CreateNew).unwrap();
    let mut byte = [0];
    let mut refused = |call| {
        os.fail(FaultOn::Only(call), 0, io::ErrorKind::Other);
        let refused = [
            file.read_at(&mut byte, 0).is_err(),
            file.write_at(&[1], 0).is_err(),
            file.allocate(0, 10).is_err(),
            file.set_len(20).is_err(),
            os.rename(&path, &path).is_err(),
            file.sync_data().is_err(),
        ];
        os.heal();
        refused
    };
    for (n, call) in Call::ALL.into_iter().enumerate() {
        assert_eq!(refused(call), std::array::from_fn(|i| i == n), "{call:?}");
    }
    os.fail(FaultOn::Growth, 0, io::ErrorKind::StorageFull);
    file.write_at(&[1; 20], 0).unwrap();
    assert!(matches!(
        file.write_at(&[1; 20], 1),
        Err(Error::NoSpace { .. })
    ));
    assert_eq!(file.len().unwrap(), 20);
}
