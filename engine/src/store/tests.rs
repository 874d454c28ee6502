//! The store: threads beside checkpoints, misplaced and foreign files, and space that is given back.

mod flushing;
mod model;
mod refused;
mod reopened;
mod scattered;

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use super::*;
use crate::buffer::PoolWithThreads;
use crate::node::PageKind;
use crate::os::simulated::{FaultOn, SimulatedOs};
use crate::os::{OpenMode, Os};

const DIR: &str = "/db";

/// A page with content from a seed, with a hole and content that compresses more or less well.
fn page_of(seed: u64) -> Vec<u8> {
    let mut page = vec![0; PAGE_SIZE];
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let start = 26 + (state >> 40) as usize % 8000;
    let end = start + (state >> 20) as usize % (PAGE_SIZE - start);
    let spread = 1 + (state >> 8) % 255;
    for byte in page[26..start].iter_mut() {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        *byte = ((state >> 33) % spread) as u8;
    }
    for byte in page[end..].iter_mut() {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        *byte = ((state >> 33) % spread) as u8;
    }
    page[0..8].copy_from_slice(&seed.to_le_bytes());
    page[22..24].copy_from_slice(&(start as u16).to_le_bytes());
    page[24..26].copy_from_slice(&(end as u16).to_le_bytes());
    page
}

/// An act before a write; the write fails if the act does.
type Meddle = Box<dyn FnOnce() -> Result<()> + Send>;

/// A file that performs acts before its next writes.
struct Meddled {
    file: Arc<dyn File>,
    meddles: parking_lot::Mutex<VecDeque<Meddle>>,
    /// An act before the next reservation.
    reserving: parking_lot::Mutex<Option<Meddle>>,
    /// A byte that can't be written.
    bad: parking_lot::Mutex<Option<u64>>,
    /// The kind of that byte's error.
    bad_is: parking_lot::Mutex<io::ErrorKind>,
    /// Offsets of all writes, including failed ones.
    written: parking_lot::Mutex<Vec<u64>>,
}

impl Meddled {
    /// Puts such a file in place of a store's data file.
    fn of(store: &mut Store) -> Arc<Meddled> {
        let file = Arc::new(Meddled {
            file: store.file.clone(),
            meddles: parking_lot::Mutex::default(),
            reserving: parking_lot::Mutex::default(),
            bad: parking_lot::Mutex::default(),
            bad_is: parking_lot::Mutex::new(io::ErrorKind::Other),
            written: parking_lot::Mutex::default(),
        });
        store.file = file.clone();
        file
    }

    /// Adds an act, for the first write that has none yet.
    fn meddle(&self, meddle: impl FnOnce() -> Result<()> + Send + 'static) {
        self.meddles.lock().push_back(Box::new(meddle));
    }
}

impl std::fmt::Debug for Meddled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.file.fmt(f)
    }
}

impl File for Meddled {
    fn path(&self) -> &Path {
        self.file.path()
    }
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        self.file.read_at(buf, offset)
    }
    fn write_at(&self, data: &[u8], offset: u64) -> Result<()> {
        let meddle = self.meddles.lock().pop_front();
        meddle.map_or(Ok(()), |meddle| meddle())?;
        let written = offset..offset + data.len() as u64;
        self.written.lock().push(offset);
        if self.bad.lock().is_some_and(|bad| written.contains(&bad)) {
            let bad = io::Error::from(*self.bad_is.lock());
            return Err(Error::io("write", self.path(), bad));
        }
        self.file.write_at(data, offset)
    }
    fn sync_data(&self) -> Result<()> {
        self.file.sync_data()
    }
    fn len(&self) -> Result<u64> {
        self.file.len()
    }
    fn set_len(&self, len: u64) -> Result<()> {
        self.file.set_len(len)
    }
    fn allocate(&self, offset: u64, len: u64) -> Result<()> {
        let meddle = self.reserving.lock().take();
        meddle.map_or(Ok(()), |meddle| meddle())?;
        self.file.allocate(offset, len)
    }
}

/// Two threads find the same page to be saved for a checkpoint. One of them comes to it while the checkpoint writes the
/// gathered images. All that the checkpoint leads to must still be in the file.
#[test]
fn a_page_saved_while_a_checkpoint_ends_is_not_lost_with_the_machine() {
    let os = SimulatedOs::new(5);
    let mut store = Store::create(Arc::new(os.clone()), Path::new(DIR)).unwrap();
    let file = Meddled::of(&mut store);
    let store = Arc::new(store);
    let page = store.allocate_page();
    let image = page_of(1);
    let epoch = store.begin_checkpoint();
    store.write_checkpoint_page(page, &image, true).unwrap();
    let (late, bytes) = (store.clone(), image.clone());
    file.meddle(move || late.write_checkpoint_page(page, &bytes, true));
    store.complete_checkpoint(epoch, b"meta").unwrap();
    let mut buf = vec![0; PAGE_SIZE];
    store.read_page(page, &mut buf).unwrap();
    assert!(buf == image);

    let (again, _) = Store::open(Arc::new(os.crash(1)), Path::new(DIR)).unwrap();
    again.read_page(page, &mut buf).unwrap();
    assert!(buf == image);
}

#[test]
fn threads_read_what_they_wrote_while_checkpoints_run() {
    let os = SimulatedOs::new(3);
    let store = Store::create(Arc::new(os.clone()), Path::new(DIR)).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..3u64)
            .map(|thread| {
                let store = &store;
                scope.spawn(move || {
                    let mut mine: BTreeMap<u64, u64> = BTreeMap::new();
                    let mut buf = vec![0; PAGE_SIZE];
                    for step in 0..1500u64 {
                        let seed = thread << 32 | step;
                        let old = mine
                            .keys()
                            .nth(step as usize * 7 % (mine.len() + 1))
                            .copied();
                        let id = match old {
                            Some(id) if step % 11 == 0 => {
                                store.free_page(PageId(id));
                                mine.remove(&id);
                                continue;
                            }
                            Some(id) => id,
                            None => store.allocate_page().0,
                        };
                        if step % 3 == 0 {
                            let image = page_of(seed);
                            store
                                .write_checkpoint_page(PageId(id), &image, true)
                                .unwrap();
                        } else {
                            store.write_page(PageId(id), &page_of(seed)).unwrap();
                        }
                        mine.insert(id, seed);
                        let (&id, &seed) = mine.iter().nth(step as usize % mine.len()).unwrap();
                        store.read_page(PageId(id), &mut buf).unwrap();
                        assert!(buf == page_of(seed), "page {id}");
                    }
                    mine
                })
            })
            .collect();
        let (store, stop) = (&store, &stop);
        let checkpoints = scope.spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                let epoch = store.begin_checkpoint();
                store.complete_checkpoint(epoch, b"x").unwrap();
            }
        });
        let all: BTreeMap<u64, u64> = workers
            .into_iter()
            .flat_map(|worker| worker.join().unwrap())
            .collect();
        stop.store(true, Ordering::Relaxed);
        checkpoints.join().unwrap();
        let epoch = store.begin_checkpoint();
        store.complete_checkpoint(epoch, b"end").unwrap();
        let (after, meta) = Store::open(Arc::new(os.crash(9)), Path::new(DIR)).unwrap();
        assert_eq!(meta, b"end");
        let found: Vec<u64> = after.pages().map(|page| page.0).collect();
        assert!(found.iter().eq(all.keys()));
        let mut buf = vec![0; PAGE_SIZE];
        for (id, seed) in all {
            after.read_page(PageId(id), &mut buf).unwrap();
            assert!(buf == page_of(seed), "page {id}");
        }
    });
}

/// The metadata of one checkpoint is not made durable with the pages of another.
#[test]
fn a_checkpoint_that_another_has_ended_is_neither_completed_nor_takes_that_one_along() {
    let os = SimulatedOs::new(4);
    let store = Store::create(Arc::new(os.clone()), Path::new(DIR)).unwrap();
    let page = store.allocate_page();
    let first = store.begin_checkpoint();
    let second = store.begin_checkpoint();
    store
        .write_checkpoint_page(page, &page_of(1), true)
        .unwrap();
    assert!(store.complete_checkpoint(first, b"1").is_err());
    store.abandon_checkpoint(first);
    store.complete_checkpoint(second, b"2").unwrap();
    assert!(store.complete_checkpoint(second, b"2").is_err());
    let (_, meta) = Store::open(Arc::new(os.crash(0)), Path::new(DIR)).unwrap();
    assert_eq!(meta, b"2");
}

#[test]
fn an_image_whose_decision_fell_before_the_barrier_is_the_checkpoints_too() {
    let os = SimulatedOs::new(4);
    let store = Store::create(Arc::new(os.clone()), Path::new(DIR)).unwrap();
    let page = store.allocate_page();
    let seen = store.epoch();
    let epoch = store.begin_checkpoint();
    store.write_page_seen(page, &page_of(1), seen).unwrap();
    store.write_page(page, &page_of(2)).unwrap();
    store.complete_checkpoint(epoch, b"").unwrap();
    let (after, _) = Store::open(Arc::new(os.crash(0)), Path::new(DIR)).unwrap();
    let mut buf = vec![0; PAGE_SIZE];
    after.read_page(page, &mut buf).unwrap();
    assert!(buf == page_of(1));
    store.read_page(page, &mut buf).unwrap();
    assert!(buf == page_of(2));
}

#[test]
fn misplaced_stale_and_damaged_pages_are_named() {
    let os = SimulatedOs::new(5);
    let store = Store::create(Arc::new(os.clone()), Path::new(DIR)).unwrap();
    let (a, b) = (store.allocate_page(), store.allocate_page());
    store.write_page(a, &page_of(1)).unwrap();
    store.write_page(b, &page_of(1)).unwrap();
    let (at, beside) = (store.table.current(a), store.table.current(b));
    let mut buf = vec![0; PAGE_SIZE];
    let mut what = |change: &dyn Fn(&mut Vec<u8>)| {
        os.damage(&Path::new(DIR).join("data"), change);
        match store.read_page(a, &mut buf) {
            Err(Error::Corrupt {
                page, offset, what, ..
            }) => {
                assert_eq!((page, offset), (Some(a), at.byte_offset()));
                what
            }
            other => panic!("{other:?}"),
        }
    };
    let len = at.byte_len();
    let (from, to) = (beside.byte_offset() as usize, at.byte_offset() as usize);
    let found = what(&|bytes| bytes.copy_within(from..from + len, to));
    assert!(found.contains("expected page 1, found page 2"), "{found}");
    let found = what(&|bytes| bytes[to + 100] ^= 1);
    assert!(found.contains("checksum"), "{found}");
    let found = what(&|bytes| bytes.truncate(to + 10));
    assert!(found.contains("the file ends"), "{found}");

    let mut scratch = Scratch::default();
    image::encode(a, 999, &page_of(1), &mut scratch);
    let found = what(&|bytes| {
        bytes.resize(to, 0);
        bytes.extend_from_slice(&scratch.image);
    });
    assert!(found.contains("stale"), "{found}");
}

#[test]
fn the_file_shrinks_when_little_of_it_is_used() {
    let os = SimulatedOs::new(6);
    let store = Store::create(Arc::new(os.clone()), Path::new(DIR)).unwrap();
    let checkpoint = || {
        let epoch = store.begin_checkpoint();
        store.complete_checkpoint(epoch, b"").unwrap();
    };
    let pages: Vec<_> = (0..1000).map(|_| store.allocate_page()).collect();
    for (seed, &page) in pages.iter().enumerate() {
        store.write_page(page, &page_of(seed as u64)).unwrap();
    }
    checkpoint();
    let full = os.used();
    for &page in &pages[..990] {
        store.free_page(page);
    }
    for _ in 0..4 {
        checkpoint();
    }
    assert!(os.used() * 5 < full, "{} of {full} bytes left", os.used());
    let mut buf = vec![0; PAGE_SIZE];
    for (seed, &page) in pages.iter().enumerate().skip(990) {
        store.read_page(page, &mut buf).unwrap();
        assert!(buf == page_of(seed as u64));
    }
}

/// A page with `bytes` bytes that do not compress.
fn noisy_page(seed: u64, bytes: usize) -> Vec<u8> {
    let mut page = vec![0; PAGE_SIZE];
    let mut state = seed;
    for byte in &mut page[26..26 + bytes] {
        *byte = crate::random::next(&mut state) as u8;
    }
    page[0..8].copy_from_slice(&seed.to_le_bytes());
    page[22..24].copy_from_slice(&(26 + bytes as u16).to_le_bytes());
    page[24..26].copy_from_slice(&(PAGE_SIZE as u16).to_le_bytes());
    page
}

/// Runs checkpoints for as long as the file asks for further ones; returns their number.
fn checkpoints_for_slack(store: &Store) -> u32 {
    let mut count = 0;
    while count == 0 || store.is_slack() {
        let epoch = store.begin_checkpoint();
        store.complete_checkpoint(epoch, b"").unwrap();
        count += 1;
        assert!(count < 100, "each of {count} checkpoints asks for the next");
    }
    count
}

/// The free space is in holes that are too short for each image behind them: no checkpoint shortens the file.
#[test]
fn a_file_that_can_not_be_made_shorter_asks_for_no_more_checkpoints() {
    let os = SimulatedOs::new(6);
    let store = Store::create(Arc::new(os.clone()), Path::new(DIR)).unwrap();
    let (mut small, mut large) = (Vec::new(), Vec::new());
    for seed in 0..400 {
        for (pages, bytes) in [(&mut small, 11_000), (&mut large, PAGE_SIZE - 26)] {
            let page = store.allocate_page();
            store.write_page(page, &noisy_page(seed, bytes)).unwrap();
            pages.push(page);
        }
    }
    checkpoints_for_slack(&store);
    small.into_iter().for_each(|page| store.free_page(page));
    checkpoints_for_slack(&store);
    let full = os.used();
    for page in large.drain(..390) {
        store.free_page(page);
    }
    checkpoints_for_slack(&store);
    assert!(os.used() * 5 < full, "{} of {full} bytes left", os.used());
}

/// An image at the file's end can't be read: such an attempt gains nothing, too.
#[test]
fn a_file_whose_end_can_not_be_read_asks_for_no_more_checkpoints() {
    let os = SimulatedOs::new(6);
    let store = Store::create(Arc::new(os.clone()), Path::new(DIR)).unwrap();
    let mut pages = Vec::new();
    for seed in 0..400 {
        let page = store.allocate_page();
        store
            .write_page(page, &noisy_page(seed, PAGE_SIZE - 26))
            .unwrap();
        pages.push(page);
    }
    checkpoints_for_slack(&store);
    pages.drain(..390).for_each(|page| store.free_page(page));
    os.fail(FaultOn::Read, 0, io::ErrorKind::Other);
    assert!(checkpoints_for_slack(&store) > 1);
    os.heal();
    let epoch = store.begin_checkpoint();
    store.complete_checkpoint(epoch, b"").unwrap();
}

#[test]
fn one_process_writes_many_read() {
    let os: Arc<dyn Os> = Arc::new(SimulatedOs::new(7));
    let dir = Path::new(DIR);
    assert!(!Store::exists(&*os, dir).unwrap());
    let store = Store::create(Arc::clone(&os), dir).unwrap();
    let page = store.allocate_page();
    store.write_page(page, &page_of(1)).unwrap();
    let epoch = store.begin_checkpoint();
    store.complete_checkpoint(epoch, b"m").unwrap();
    let again = |os: &Arc<dyn Os>| Store::open(Arc::clone(os), dir).err();
    assert!(matches!(again(&os), Some(Error::InUse(_))));
    let reader = Store::open_read_only(Arc::clone(&os), dir);
    assert!(matches!(reader.err(), Some(Error::InUse(_))));
    drop(store);
    let (one, meta) = Store::open_read_only(Arc::clone(&os), dir).unwrap();
    let (two, _) = Store::open_read_only(Arc::clone(&os), dir).unwrap();
    assert_eq!(meta, b"m");
    let mut buf = vec![0; PAGE_SIZE];
    let runs = one.runs([page, PageId(77), PageId(1 << 40)].into_iter(), 8);
    assert_eq!(runs.len(), 1, "what has no place is left out");
    assert!(runs[0].pages().eq([page]));
    one.read_page(page, &mut buf).unwrap();
    assert!(two.write_page(page, &buf).is_err());
    assert!(two.complete_checkpoint(1, b"").is_err());
    assert!(matches!(again(&os), Some(Error::InUse(_))));
    drop((one, two));
    assert!(Store::create(Arc::clone(&os), dir).is_err());
    assert!(again(&os).is_none());
}

/// The places of pages are noted one after the other: the first may be freed, and become part of the second meanwhile.
#[test]
fn pages_whose_places_lie_in_each_other_are_read_one_by_one() {
    if crate::knobs::SHAKEN {
        // The figures are those of production's knobs.
        return;
    }
    let os = SimulatedOs::new(5);
    let store = Store::create(Arc::new(os), Path::new(DIR)).unwrap();
    let pages: Vec<PageId> = (0..3).map(|_| store.allocate_page()).collect();
    for (seed, &page) in (0..).zip(&pages) {
        store.write_page(page, &noisy_page(seed, 12_000)).unwrap();
    }
    let first = store.table.current(pages[0]);
    assert!(first.units() > 4);
    let within = Place::new(first.offset() + 1, 2, 0);
    store.table.put(pages[1], within, store.epoch());
    store.free_page(pages[2]);
    let mixed = store.runs(pages.iter().copied(), 8);
    assert_eq!(mixed.len(), 1);
    let mut found = Vec::new();
    for run in &mixed {
        store.read_run(run, &mut |page, read| {
            let mut buf = vec![0; PAGE_SIZE];
            found.push((page, read(&mut buf).is_ok()));
        });
    }
    assert_eq!(found, [(pages[0], true), (pages[1], false)]);
}

/// An opening does not read place table chunks of a database that was larger once.
#[test]
fn the_place_table_ends_with_the_last_page() {
    let os = SimulatedOs::new(6);
    let store = Store::create(Arc::new(os.clone()), Path::new(DIR)).unwrap();
    let checkpoint = || {
        let epoch = store.begin_checkpoint();
        store.complete_checkpoint(epoch, b"").unwrap();
    };
    let chunks = 20;
    let pages: Vec<_> = (0..chunks * 1024).map(|_| store.allocate_page()).collect();
    for &page in pages.iter().step_by(1024) {
        store.write_page(page, &page_of(page.0)).unwrap();
    }
    checkpoint();
    for &page in pages.iter().step_by(1024).skip(2) {
        store.free_page(page);
    }
    checkpoint();
    let open = || {
        Store::open(Arc::new(os.crash(1)), Path::new(DIR))
            .unwrap()
            .0
    };
    assert_eq!(open().table.ids(), 2 * 1024);
    // Pages behind the table's end are found again.
    store.write_page(pages[9 * 1024], &page_of(9)).unwrap();
    checkpoint();
    let again = open();
    assert_eq!(again.table.ids(), 10 * 1024);
    let mut buf = vec![0; PAGE_SIZE];
    again.read_page(pages[9 * 1024], &mut buf).unwrap();
    assert!(buf == page_of(9));
    assert_eq!(again.pages().count(), 3);
}

#[test]
fn a_short_or_foreign_file_is_refused_untouched() {
    let os = SimulatedOs::new(8);
    let dir = Path::new(DIR);
    let data = dir.join("data");
    drop(Store::create(Arc::new(os.clone()), dir).unwrap());
    let file = os.open(&data, OpenMode::ReadOnly).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    for len in 0..bytes.len() {
        os.damage(&data, |content| {
            content.clear();
            content.extend_from_slice(&bytes[..len]);
        });
        let error = Store::open(Arc::new(os.clone()), dir).unwrap_err();
        let named = matches!(&error, Error::Corrupt { .. } | Error::Format { .. });
        assert!(named, "{error}");
        assert_eq!(file.len().unwrap(), len as u64);
    }
}

/// As soon as the store is closed, another process may have its file, and make it longer.
#[test]
fn a_closed_stores_file_is_not_cut() {
    let os = SimulatedOs::new(6);
    let mut store = Store::create(Arc::new(os.clone()), Path::new(DIR)).unwrap();
    let file = Meddled::of(&mut store);
    let (reserving, comes) = std::sync::mpsc::channel();
    let (go_on, told) = std::sync::mpsc::channel::<()>();
    *file.reserving.lock() = Some(Box::new(move || {
        reserving.send(()).unwrap();
        // As long as closing may take if it does not wait for this.
        let _ = told.recv_timeout(std::time::Duration::from_millis(200));
        let full = io::Error::from(io::ErrorKind::StorageFull);
        Err(Error::io("reserve space in", Path::new(DIR), full))
    }));
    std::thread::scope(|scope| {
        let keeping = scope.spawn(|| store.keep_room(100, 64, false).map(drop));
        comes.recv().unwrap();
        store.close();
        // Images of another process.
        let longer = file.len().unwrap() + (8 << 20);
        file.set_len(longer).unwrap();
        // The receiver may have stopped waiting.
        let _ = go_on.send(());
        keeping.join().unwrap().unwrap();
        assert_eq!(file.len().unwrap(), longer);
    });
}

/// The disk may take long to reserve space: pages that become dirty meanwhile need some, too.
#[test]
fn pages_that_become_newer_while_room_is_got_are_counted() {
    const PAGES: u32 = 10;
    let headroom = |newer: u32| {
        let os = SimulatedOs::new(7);
        let mut store = Store::create(Arc::new(os), Path::new(DIR)).unwrap();
        let file = Meddled::of(&mut store);
        let pool = PoolWithThreads::without_thread(64 * PAGE_SIZE, Arc::new(store)).unwrap();
        let changed = pool.clone();
        *file.reserving.lock() = Some(Box::new(move || {
            (0..newer).try_for_each(|_| changed.create_unparented(PageKind::Undo).map(drop))
        }));
        assert!(pool.keep_room(false).unwrap().is_none());
        assert_eq!(pool.stats().dirty, u64::from(newer));
        pool.buffer_pool().headroom()
    };
    assert_eq!(headroom(PAGES), headroom(0) - i64::from(PAGES));
}
