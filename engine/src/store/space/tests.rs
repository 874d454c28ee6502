//! Many threads that take space, on full disks.

use std::path::Path;

use super::*;
use crate::error::Error;
use crate::os::simulated::SimulatedOs;
use crate::os::{OpenMode, Os};

#[test]
fn space_of_many_threads_is_never_shared() {
    let space = Space::new(Extents::new(8));
    let os = SimulatedOs::new(1);
    os.create_dir(Path::new("/db")).unwrap();
    let file = os.open(Path::new("/db/data"), OpenMode::CreateNew).unwrap();
    let all: Vec<Vec<(u64, u64)>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4u64)
            .map(|thread| {
                let (space, file) = (&space, &*file);
                scope.spawn(move || {
                    let mut held = Vec::new();
                    for step in 0..3000u64 {
                        let units = 1 + (step * 7 + thread) % 17;
                        match step % 3 {
                            0 => held.push((space.take(units, file).unwrap(), units)),
                            1 => held.push((space.take_next(units, file).unwrap(), units)),
                            _ => {
                                let at = (step * 31) as usize % held.len();
                                let (offset, units) = held.swap_remove(at);
                                space.give(offset, units);
                                if step % 7 == 0 {
                                    let run = space.take_run(file);
                                    held.extend(run.map(|run| (run.offset, run.units)));
                                }
                            }
                        }
                    }
                    held
                })
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    let mut all: Vec<_> = all.into_iter().flatten().collect();
    all.sort_unstable();
    for pair in all.windows(2) {
        assert!(pair[0].0 + pair[0].1 <= pair[1].0, "{pair:?} overlap");
    }
    let (end, free) = space.units();
    let used: u64 = all.iter().map(|held| held.1).sum();
    assert_eq!(end, 8 + free + used, "nothing is lost");
}

/// On a full disk, a checkpoint takes the last short pieces instead of waiting for the file to grow.
#[test]
fn where_the_disk_has_no_more_short_pieces_do() {
    if crate::knobs::SHAKEN {
        // The figures are those of production's knobs.
        return;
    }
    let space = Space::new(Extents::new(8));
    let os = SimulatedOs::new(1);
    os.create_dir(Path::new("/db")).unwrap();
    let file = os.open(Path::new("/db/data"), OpenMode::CreateNew).unwrap();
    let run = space.take_run(&*file).unwrap();
    os.set_capacity(Some(os.used()));
    for piece in 0..4 {
        space.give(run.offset + piece * 40, 20);
    }
    assert_eq!(space.take_run(&*file), None);
    let take = || space.take_next(17, &*file).unwrap();
    let mut taken: Vec<u64> = (0..4).map(|_| take()).collect();
    taken.sort_unstable();
    let pieces: Vec<u64> = (0..4).map(|piece| run.offset + piece * 40).collect();
    assert_eq!(taken, pieces);
    assert_eq!(
        space.units().0,
        8 + knobs::space_run(),
        "the file has not grown"
    );
    os.set_capacity(None);
    assert_eq!(take(), 8 + knobs::space_run());
}

#[test]
fn no_space_is_given_that_no_place_could_name() {
    let os = SimulatedOs::new(1);
    os.create_dir(Path::new("/db")).unwrap();
    let file = os.open(Path::new("/db/data"), OpenMode::CreateNew).unwrap();
    let mut extents = Extents::new(1 << 38);
    extents.give((1 << 38) - 5, 5);
    let space = Space::new(extents);
    assert_eq!(space.take(5, &*file).unwrap(), (1 << 38) - 5);
    let refused = space.take(1, &*file);
    assert!(matches!(refused, Err(Error::TooLarge(_))), "{refused:?}");
    let refused = space.take_next(1, &*file);
    assert!(matches!(refused, Err(Error::TooLarge(_))), "{refused:?}");
    assert_eq!(space.take_run(&*file), None);
    let refused = space.keep(1, 0, &*file);
    assert!(matches!(refused, Err(Error::TooLarge(_))), "{refused:?}");
    assert_eq!(file.len().unwrap(), 0);
    space.give((1 << 38) - 5, 5);
    assert_eq!(space.take_next(4, &*file).unwrap(), (1 << 38) - 5);
}

#[test]
fn what_the_disk_refuses_is_no_free_space() {
    let os = SimulatedOs::new(1);
    os.create_dir(Path::new("/db")).unwrap();
    let file = os.open(Path::new("/db/data"), OpenMode::CreateNew).unwrap();
    file.set_len(8 * UNIT as u64).unwrap();
    os.set_capacity(Some(os.used()));
    let mut extents = Extents::new(8);
    extents.give(5, 3);
    let space = Space::new(extents);
    for units in [1000, 5] {
        let refused = space.take(units, &*file);
        assert!(matches!(refused, Err(Error::NoSpace { .. })), "{refused:?}");
        assert_eq!(space.units(), (8, 3));
        assert_eq!(file.len().unwrap(), 8 * UNIT as u64);
    }
    assert_eq!(space.take(3, &*file).unwrap(), 5);
}

/// The place that an image leaves becomes free only at the end of the next checkpoint, which needs the space before.
#[test]
fn images_that_move_down_leave_the_room_that_is_kept() {
    let os = SimulatedOs::new(1);
    os.create_dir(Path::new("/db")).unwrap();
    let file = os.open(Path::new("/db/data"), OpenMode::CreateNew).unwrap();
    let (long, end) = (20 * LONGEST, 50 * LONGEST);
    let mut extents = Extents::new(end);
    extents.give(8, 10);
    extents.give(8 + LONGEST, long);
    file.set_len(end * UNIT as u64).unwrap();
    let space = Space::new(extents);
    space.keep(long, 0, &*file).unwrap();
    assert_eq!(space.units().0, end, "there was room enough");
    assert_eq!(space.take_spare_below(12, end), None);
    assert_eq!(space.take_spare_below(10, end), Some(8));
    assert_eq!(space.roomy_units(), long);
    // The kept space is for a checkpoint's own parts.
    assert_eq!(space.take_below(12, end), Some(8 + LONGEST));
    space.give(8 + LONGEST, 12);
    space.keep(long - LONGEST, 0, &*file).unwrap();
    assert_eq!(space.take_spare_below(12, end), Some(8 + LONGEST));
}

/// Short pieces do not count as space for a checkpoint's images, however many there are.
#[test]
fn the_room_that_is_kept_is_not_cut_off_for_free_space_in_short_pieces() {
    let os = SimulatedOs::new(1);
    os.create_dir(Path::new("/db")).unwrap();
    let file = os.open(Path::new("/db/data"), OpenMode::CreateNew).unwrap();
    let tail = 4 * knobs::shortest_tail() + 100 * LONGEST;
    let pieces = tail / (LONGEST - 1) + 1;
    let used = 8 + pieces * LONGEST;
    let mut extents = Extents::new(used + tail);
    // A used unit behind each piece.
    for piece in 0..pieces {
        extents.give(8 + piece * LONGEST, LONGEST - 1);
    }
    extents.give(used, tail);
    file.set_len((used + tail) * UNIT as u64).unwrap();
    let space = Space::new(extents);
    let kept = 90 * LONGEST;
    space.keep(kept, 0, &*file).unwrap();
    space.cut_tail(&*file, UNIT as u64).unwrap();
    assert!(space.roomy_units() >= kept, "{}", space.roomy_units());
    assert!(space.units().0 < used + tail, "nothing was cut off");
    assert_eq!(file.len().unwrap(), space.units().0 * UNIT as u64);
}

/// Not each write fails because of its place. So little space is out of use because of failed writes, and it becomes
/// free if there is no other.
#[test]
fn little_is_out_of_use_because_writes_have_failed() {
    let os = SimulatedOs::new(1);
    os.create_dir(Path::new("/db")).unwrap();
    let file = os.open(Path::new("/db/data"), OpenMode::CreateNew).unwrap();
    let space = Space::new(Extents::new(8));
    let most = knobs::most_refused();
    for _ in 0..=2 * most {
        let offset = space.take(LONGEST, &*file).unwrap();
        space.refuse(offset, LONGEST);
    }
    let (end, free) = space.units();
    let out_of_use = end - 8 - free;
    assert!((LONGEST..=most.max(LONGEST)).contains(&out_of_use));
    // A piece longer than the limit is the only one out of use.
    let offset = space.take(most + LONGEST, &*file).unwrap();
    space.refuse(offset, most + LONGEST);
    let (end, free) = space.units();
    assert_eq!(end - 8 - free, most + LONGEST);

    if knobs::SHAKEN {
        // The file may have grown by more than it needed.
        return;
    }
    os.set_capacity(Some(os.used()));
    let another_way = space.take_unrefused(most + LONGEST, &*file);
    assert!(matches!(another_way, Err(Error::NoSpace { .. })));
    let taken = space.take(most + LONGEST, &*file);
    assert!(matches!(taken, Err(Error::NoSpace { .. })), "{taken:?}");
    assert_eq!(space.units(), (end, end - 8));
    space.take(most + LONGEST, &*file).unwrap();
}
