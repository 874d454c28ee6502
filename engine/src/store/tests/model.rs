//! The store against a model of it, over random operations, crashes and faults.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;

use super::super::*;
use super::{page_of, DIR};
use crate::os::simulated::{FaultOn, SimulatedOs};

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
    /// The disk is full for so many operations.
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
    /// The running checkpoint needs this image, and does not have it yet.
    needed: bool,
}

/// A buffer pool reduced to its protocol with the store, and the content that reads must find.
struct Pool {
    os: SimulatedOs,
    store: Store,
    frames: BTreeMap<u64, Frame>,
    on_disk: BTreeMap<u64, u64>,
    /// Number of the running checkpoint, and the pages at its barrier.
    barrier: Option<(u64, BTreeMap<u64, u64>)>,
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
            barrier: None,
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

    /// Writes the image as of the barrier before the page changes.
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
                let epoch = self.store.begin_checkpoint();
                self.barrier = Some((epoch, self.pages()));
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
        if let Some((epoch, _)) = self.barrier.take() {
            self.store.abandon_checkpoint(epoch);
        }
        for frame in self.frames.values_mut() {
            frame.needed = false;
        }
    }

    fn complete(&mut self) -> Result<()> {
        let Some((epoch, barrier)) = self.barrier.clone() else {
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
        let outcome = self.store.complete_checkpoint(epoch, &meta);
        self.barrier = None;
        outcome?;
        self.checkpoints += 1;
        self.durable = barrier;
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

    /// Loses power, opens the store again, and expects the last checkpoint.
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
        self.barrier = None;
        self.frames.clear();
        self.on_disk = self.durable.clone();
        let found: Vec<u64> = self.store.pages().map(|page| page.0).collect();
        assert!(found.iter().eq(self.durable.keys()));
        (0..self.durable.len()).for_each(|which| self.read(which));
    }

    /// Outside a checkpoint each unit of the file is free, or the durable or the current table names it.
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
        self.store.batch.flush(&self.store.target()).unwrap();
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

    /// After each single fault of a device: an error, never a wrong page, and the last checkpoint stays valid.
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
                    // A header whose sync failed may have reached the disk.
                    return Ok(());
                }
            }
        }
        pool.crash(seed);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever bytes are damaged: a read returns the right page or an error, and nothing panics.
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
            // The older header, with a checkpoint without pages; or the newer one, with all pages.
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
