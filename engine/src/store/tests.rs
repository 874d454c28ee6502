//! The store against a model of it, over random operations, crashes and faults.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::os::simulated::{FaultOn, SimulatedOs};
use crate::os::{OpenMode, Os};

const DIR: &str = "/db";

/// A page that is told by its seed, with a hole and content of varied density.
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

#[derive(Clone, Debug)]
enum Op {
    New(u64),
    Change(usize, u64),
    Evict(usize),
    Free(usize),
    Read(usize),
    Begin,
    Complete,
    Abandon,
    Crash(u64),
    /// The disk is full for the next so many operations.
    Full(u64),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => any::<u64>().prop_map(Op::New),
        8 => (any::<usize>(), any::<u64>()).prop_map(|(page, seed)| Op::Change(page, seed)),
        8 => any::<usize>().prop_map(Op::Evict),
        3 => any::<usize>().prop_map(Op::Free),
        8 => any::<usize>().prop_map(Op::Read),
        2 => Just(Op::Begin),
        2 => Just(Op::Complete),
        1 => Just(Op::Abandon),
        1 => any::<u64>().prop_map(Op::Crash),
        1 => (0u64..20).prop_map(Op::Full),
    ]
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    seed: u64,
    dirty: bool,
    /// The running checkpoint needs this image, and has it not yet.
    needed: bool,
}

/// A buffer pool reduced to its protocol with the store, and what must be read back.
struct Pool {
    os: SimulatedOs,
    store: Store,
    frames: BTreeMap<u64, Frame>,
    on_disk: BTreeMap<u64, u64>,
    gate: Option<BTreeMap<u64, u64>>,
    durable: BTreeMap<u64, u64>,
    checkpoints: u64,
}

impl Pool {
    fn new() -> Pool {
        let os = SimulatedOs::new(1);
        let store = Store::create(Arc::new(os.clone()), Path::new(DIR)).unwrap();
        Pool {
            os,
            store,
            frames: BTreeMap::new(),
            on_disk: BTreeMap::new(),
            gate: None,
            durable: BTreeMap::new(),
            checkpoints: 0,
        }
    }

    fn pages(&self) -> BTreeMap<u64, u64> {
        let mut pages = self.on_disk.clone();
        pages.extend(self.frames.iter().map(|(&id, frame)| (id, frame.seed)));
        pages
    }

    fn pick(&self, which: usize) -> Option<u64> {
        let pages = self.pages();
        let at = which.checked_rem(pages.len())?;
        pages.keys().nth(at).copied()
    }

    /// The image as of the gate goes out before it changes.
    fn save(&mut self, id: u64) -> Result<()> {
        if let Some(frame) = self.frames.get_mut(&id).filter(|frame| frame.needed) {
            let image = page_of(frame.seed);
            self.store
                .write_checkpoint_page(PageId(id), &image, false)?;
            frame.needed = false;
        }
        Ok(())
    }

    fn evict(&mut self, id: u64) -> Result<()> {
        let Some(&frame) = self.frames.get(&id) else {
            return Ok(());
        };
        if frame.dirty {
            let image = page_of(frame.seed);
            if frame.needed {
                self.store.write_checkpoint_page(PageId(id), &image, true)?;
            } else {
                self.store.write_page(PageId(id), &image)?;
            }
            self.on_disk.insert(id, frame.seed);
        }
        self.frames.remove(&id);
        Ok(())
    }

    fn apply(&mut self, op: Op) -> Result<()> {
        match op {
            Op::New(seed) => {
                let id = self.store.allocate_page().0;
                assert!(id > 0 && !self.pages().contains_key(&id), "{id} is in use");
                let frame = Frame {
                    seed,
                    dirty: true,
                    needed: false,
                };
                self.frames.insert(id, frame);
            }
            Op::Change(which, seed) => {
                let Some(id) = self.pick(which) else {
                    return Ok(());
                };
                self.save(id)?;
                let frame = Frame {
                    seed,
                    dirty: true,
                    needed: false,
                };
                self.frames.insert(id, frame);
            }
            Op::Evict(which) => {
                if let Some(id) = self.pick(which) {
                    self.evict(id)?;
                }
            }
            Op::Free(which) => {
                if let Some(id) = self.pick(which) {
                    self.save(id)?;
                    self.frames.remove(&id);
                    self.on_disk.remove(&id);
                    self.store.free_page(PageId(id));
                }
            }
            Op::Read(which) => self.read(which),
            Op::Begin => {
                self.store.begin_checkpoint();
                self.gate = Some(self.pages());
                for frame in self.frames.values_mut() {
                    frame.needed = frame.dirty;
                }
            }
            Op::Complete => self.complete()?,
            Op::Abandon => self.abandon(),
            Op::Crash(seed) => self.crash(seed),
            Op::Full(_) => {}
        }
        Ok(())
    }

    fn abandon(&mut self) {
        self.store.abandon_checkpoint();
        self.gate = None;
        for frame in self.frames.values_mut() {
            frame.needed = false;
        }
    }

    fn complete(&mut self) -> Result<()> {
        let Some(gate) = self.gate.clone() else {
            return Ok(());
        };
        for (&id, frame) in &mut self.frames {
            if frame.needed {
                let image = page_of(frame.seed);
                self.store.write_checkpoint_page(PageId(id), &image, true)?;
                (frame.needed, frame.dirty) = (false, false);
                self.on_disk.insert(id, frame.seed);
            }
        }
        let meta = (self.checkpoints + 1).to_le_bytes();
        let outcome = self.store.complete_checkpoint(&meta);
        self.gate = None;
        outcome?;
        self.checkpoints += 1;
        self.durable = gate;
        Ok(())
    }

    fn read(&self, which: usize) {
        if let Some(at) = which.checked_rem(self.on_disk.len()) {
            let (&id, &seed) = self.on_disk.iter().nth(at).unwrap();
            let mut buf = vec![1; PAGE_SIZE];
            self.store.read_page(PageId(id), &mut buf).unwrap();
            assert!(buf == page_of(seed), "page {id} has other content");
        }
    }

    /// Loses power, opens what is left, and finds the last checkpoint.
    fn crash(&mut self, seed: u64) {
        self.os = self.os.crash(seed);
        self.os.set_capacity(None);
        let (store, meta) = Store::open(Arc::new(self.os.clone()), Path::new(DIR)).unwrap();
        let expected = match self.checkpoints {
            0 => Vec::new(),
            n => n.to_le_bytes().to_vec(),
        };
        assert_eq!(meta, expected);
        self.store = store;
        self.gate = None;
        self.frames.clear();
        self.on_disk = self.durable.clone();
        let found: Vec<u64> = self.store.pages().map(|page| page.0).collect();
        assert!(found.iter().eq(self.durable.keys()));
        (0..self.durable.len()).for_each(|which| self.read(which));
    }

    /// Outside a checkpoint each unit of the file is free, or named by the durable or the
    /// current table.
    fn check_space(&self) {
        let mut named = std::collections::BTreeSet::new();
        let durable = self.store.durable.lock();
        let (_, places) = durable.chunks.iter().enumerate().fold(
            (0, Vec::new()),
            |(count, mut places), (index, &chunk)| {
                if chunk != 0 {
                    let place = Place(chunk);
                    named.insert((place.offset(), place.units()));
                    let mut bytes = vec![0; place.byte_len()];
                    let file = &self.store.file;
                    file.read_exact_at(&mut bytes, place.byte_offset()).unwrap();
                    places.extend(header::decode_chunk(&bytes, index).unwrap().1);
                }
                (count + 1, places)
            },
        );
        named.extend(
            places
                .into_iter()
                .chain(
                    self.store
                        .pages()
                        .map(|page| self.store.table.current(page).0),
                )
                .filter(|&place| place != 0)
                .map(|place| (Place(place).offset(), Place(place).units())),
        );
        named.insert(durable.record);
        let used: u64 = named.iter().map(|part| part.1).sum();
        self.store
            .batch
            .flush(&*self.store.file, &self.store.space)
            .unwrap();
        let (end, free) = self.store.space.units();
        assert_eq!(end, header::HEADER_UNITS + used + free, "space is lost");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn pages_and_checkpoints_come_back_exactly(ops in proptest::collection::vec(op(), 1..160)) {
        let mut pool = Pool::new();
        let mut full_for = 0;
        for op in ops {
            if let Op::Full(operations) = op {
                full_for = operations;
                pool.os.set_capacity(Some(pool.os.used()));
            }
            let crashed = matches!(op, Op::Crash(_));
            match pool.apply(op) {
                Ok(()) => {}
                Err(Error::NoSpace { .. }) if full_for > 0 => pool.abandon(),
                Err(error) => panic!("{error}"),
            }
            full_for = if crashed { 0 } else { full_for.saturating_sub(1) };
            if full_for == 0 {
                pool.os.set_capacity(None);
            }
        }
        pool.os.set_capacity(None);
        pool.abandon();
        pool.check_space();
        pool.apply(Op::Begin).unwrap();
        pool.complete().unwrap();
        pool.check_space();
        pool.crash(5);
        pool.check_space();
    }

    /// Each fault of a device, once: an error, never a wrong page, and the last checkpoint stands.
    #[test]
    fn a_failing_device_gives_errors_and_keeps_the_last_checkpoint(
        ops in proptest::collection::vec(op(), 20..60), after in 0u64..40, on_sync: bool, seed: u64,
    ) {
        let mut pool = Pool::new();
        for seed in 0..20 {
            pool.apply(Op::New(seed)).unwrap();
        }
        pool.apply(Op::Begin).unwrap();
        pool.complete().unwrap();
        let on = if on_sync { FaultOn::Sync } else { FaultOn::Write };
        pool.os.fail(on, after, ErrorKind::Other);
        for op in ops {
            if matches!(op, Op::Crash(_)) {
                continue;
            }
            let checkpoints = pool.checkpoints;
            if pool.apply(op).is_err() {
                pool.abandon();
                if checkpoints == pool.checkpoints && pool.store.stop_flag().is_stopped() {
                    let write = pool.store.write_page(PageId(1), &page_of(1));
                    prop_assert!(matches!(write, Err(Error::Stopped(_))));
                    // A header whose sync failed may have reached the disk all the same.
                    return Ok(());
                }
            }
        }
        pool.crash(seed);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever bytes go bad: a page reads back right or is an error, and nothing panics.
    #[test]
    fn damage_anywhere_is_an_error_or_without_effect(
        spots in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>(), 1usize..2000), 1..6),
        cut in proptest::option::of(any::<proptest::sample::Index>()),
    ) {
        let mut pool = Pool::new();
        for seed in 0..30 {
            pool.apply(Op::New(seed)).unwrap();
        }
        pool.apply(Op::Begin).unwrap();
        pool.complete().unwrap();
        let os = pool.os.crash(0);
        os.damage(&Path::new(DIR).join("data"), |bytes| {
            for (spot, byte, len) in spots {
                let at = spot.index(bytes.len());
                let end = (at + len).min(bytes.len());
                bytes[at..end].fill(byte);
            }
            if let Some(cut) = cut {
                bytes.truncate(cut.index(bytes.len()));
            }
        });
        let dir = Path::new(DIR);
        match Store::open(Arc::new(os), dir) {
            Err(Error::Corrupt { .. } | Error::Format { .. }) => {}
            Err(error) => panic!("{error}"),
            // The older header: a checkpoint without pages. Or all is where it was.
            Ok((store, meta)) => {
                prop_assert_eq!(store.pages().count(), if meta.is_empty() { 0 } else { 30 });
                let mut buf = vec![0; PAGE_SIZE];
                for page in store.pages() {
                    match store.read_page(page, &mut buf) {
                        Ok(()) => prop_assert!(buf == page_of(pool.durable[&page.0])),
                        Err(Error::Corrupt { page: named, .. }) => {
                            prop_assert_eq!(named, Some(page));
                        }
                        Err(error) => panic!("{error}"),
                    }
                }
            }
        }
    }
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
                store.begin_checkpoint();
                store.complete_checkpoint(b"x").unwrap();
            }
        });
        let all: BTreeMap<u64, u64> = workers
            .into_iter()
            .flat_map(|worker| worker.join().unwrap())
            .collect();
        stop.store(true, Ordering::Relaxed);
        checkpoints.join().unwrap();
        store.begin_checkpoint();
        store.complete_checkpoint(b"end").unwrap();
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

#[test]
fn an_image_whose_decision_fell_before_the_gate_is_the_checkpoints_too() {
    let os = SimulatedOs::new(4);
    let store = Store::create(Arc::new(os.clone()), Path::new(DIR)).unwrap();
    let page = store.allocate_page();
    let seen = store.epoch();
    store.begin_checkpoint();
    store.write_page_seen(page, &page_of(1), seen).unwrap();
    store.write_page(page, &page_of(2)).unwrap();
    store.complete_checkpoint(b"").unwrap();
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
        store.begin_checkpoint();
        store.complete_checkpoint(b"").unwrap();
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

#[test]
fn one_process_writes_many_read() {
    let os: Arc<dyn Os> = Arc::new(SimulatedOs::new(7));
    let dir = Path::new(DIR);
    assert!(!Store::exists(&*os, dir).unwrap());
    let store = Store::create(Arc::clone(&os), dir).unwrap();
    let page = store.allocate_page();
    store.write_page(page, &page_of(1)).unwrap();
    store.begin_checkpoint();
    store.complete_checkpoint(b"m").unwrap();
    let again = |os: &Arc<dyn Os>| Store::open(Arc::clone(os), dir).err();
    assert!(matches!(again(&os), Some(Error::InUse(_))));
    let reader = Store::open_read_only(Arc::clone(&os), dir);
    assert!(matches!(reader.err(), Some(Error::InUse(_))));
    drop(store);
    let (one, meta) = Store::open_read_only(Arc::clone(&os), dir).unwrap();
    let (two, _) = Store::open_read_only(Arc::clone(&os), dir).unwrap();
    assert_eq!(meta, b"m");
    let mut buf = vec![0; PAGE_SIZE];
    one.prefetch(&[page, PageId(77), PageId(1 << 40)]);
    one.read_page(page, &mut buf).unwrap();
    assert!(two.write_page(page, &buf).is_err());
    assert!(two.complete_checkpoint(b"").is_err());
    assert!(matches!(again(&os), Some(Error::InUse(_))));
    drop((one, two));
    assert!(Store::create(Arc::clone(&os), dir).is_err());
    assert!(again(&os).is_none());
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
