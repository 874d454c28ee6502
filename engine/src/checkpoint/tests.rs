//! Store, log and checkpointer together: a table of numbers that must survive crashes.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use parking_lot::RwLock;

use super::*;
use crate::ids::{PageId, PAGE_SIZE};
use crate::log::{Durability, LogOptions};
use crate::os::simulated::{FaultOn, SimulatedOs};
use crate::os::StopFlag;

#[derive(Clone, Copy)]
struct Cell {
    value: u64,
    dirty: bool,
    needed: bool,
}

/// One number per page: a minimal buffer pool with a barrier.
struct Numbers {
    store: Arc<Store>,
    log: Arc<Log>,
    barrier: RwLock<()>,
    cells: Mutex<BTreeMap<u64, Cell>>,
}

fn image(value: u64) -> Vec<u8> {
    let mut page = vec![0; PAGE_SIZE];
    page[64..72].copy_from_slice(&value.to_le_bytes());
    page
}

fn word(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes[..8].try_into().unwrap())
}

impl Numbers {
    fn set(&self, page: u64, value: u64) -> Result<Lsn> {
        let _inside = self.barrier.read();
        let mut cells = self.cells.lock();
        if let Some(cell) = cells.get(&page).filter(|cell| cell.needed) {
            let old = image(cell.value);
            self.store
                .write_checkpoint_page(PageId(page), &old, false)?;
        }
        let parts = [&page.to_le_bytes()[..], &value.to_le_bytes()];
        let end = self.log.append(1, &parts)?;
        let cell = Cell {
            value,
            dirty: true,
            needed: false,
        };
        cells.insert(page, cell);
        Ok(end)
    }
}

impl CheckpointSource for Numbers {
    fn with_barrier_closed(&self, inside: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        let _closed = self.barrier.write();
        inside()
    }

    fn begin_pages(&self, _epoch: u64) {
        for cell in self.cells.lock().values_mut() {
            cell.needed = cell.dirty;
        }
    }

    fn capture(&self, redo_from: Lsn) -> Result<Captured> {
        Ok(Captured {
            meta: redo_from.0.to_le_bytes().to_vec(),
            keep_log_from: redo_from,
        })
    }

    fn write_pages(&self, _epoch: u64, progress: &mut dyn FnMut(u64) -> Result<()>) -> Result<()> {
        let pages: Vec<u64> = self.cells.lock().keys().copied().collect();
        for page in pages {
            let mut cells = self.cells.lock();
            if let Some(cell) = cells.get_mut(&page).filter(|cell| cell.needed) {
                self.store
                    .write_checkpoint_page(PageId(page), &image(cell.value), true)?;
                (cell.needed, cell.dirty) = (false, false);
                drop(cells);
                progress(1)?;
            }
        }
        Ok(())
    }

    fn end_pages(&self, _epoch: u64, _complete: bool) {
        // Images that were still current stay in their places, also after the checkpoint was given up.
        for cell in self.cells.lock().values_mut() {
            cell.needed = false;
        }
    }
}

fn log_dir() -> PathBuf {
    PathBuf::from("/db/log")
}

fn options(store: &Store) -> LogOptions {
    LogOptions {
        segment_bytes: 16 * 1024,
        ..LogOptions::new(store.database_id(), Arc::clone(store.stop_flag()))
    }
}

fn create(os: &SimulatedOs) -> Arc<Numbers> {
    let store = Store::create(Arc::new(os.clone()), Path::new("/db")).unwrap();
    let log = Log::create(Arc::new(os.clone()), &log_dir(), options(&store)).unwrap();
    for page in 1..=50 {
        assert_eq!(store.allocate_page(), PageId(page));
    }
    Arc::new(Numbers {
        store: Arc::new(store),
        log: Arc::new(log),
        barrier: RwLock::default(),
        cells: Mutex::default(),
    })
}

/// The numbers that an opening after a crash finds.
fn recover(os: &SimulatedOs) -> BTreeMap<u64, u64> {
    let (store, meta) = Store::open(Arc::new(os.clone()), Path::new("/db")).unwrap();
    let mut found = BTreeMap::new();
    let mut buf = vec![0; PAGE_SIZE];
    for page in store.pages() {
        store.read_page(page, &mut buf).unwrap();
        found.insert(page.0, word(&buf[64..]));
    }
    let from = Lsn(if meta.is_empty() { 0 } else { word(&meta) });
    let log = Log::open(Arc::new(os.clone()), &log_dir(), options(&store), from).unwrap();
    for record in log.read_from(from).unwrap() {
        let payload = record.unwrap().payload;
        found.insert(word(&payload), word(&payload[8..]));
    }
    found
}

fn triggers(log_bytes: u64) -> Triggers {
    Triggers {
        log_bytes,
        interval: Duration::from_secs(3600),
        recovery_target: None,
        replay_pace: ReplayPace::default(),
    }
}

fn start(numbers: &Arc<Numbers>, log_bytes: u64) -> Checkpointer {
    Checkpointer::start(
        Arc::clone(&numbers.store),
        Arc::clone(&numbers.log),
        Arc::clone(numbers) as Arc<dyn CheckpointSource>,
        triggers(log_bytes),
    )
    .unwrap()
}

/// The page of the `step`-th change.
fn page_at(step: u64) -> u64 {
    1 + step.wrapping_mul(0x9E37_79B9) % 50
}

#[test]
fn a_crash_at_any_moment_finds_every_promised_change() {
    for seed in 0..40 {
        let os = SimulatedOs::new(seed);
        let numbers = create(&os);
        let checkpointer = start(&numbers, 2000);
        let mut promised = 0;
        let steps = 20 + seed * 37;
        for step in 1..=steps {
            let end = numbers.set(page_at(step), step).unwrap();
            if step % 5 == 0 {
                numbers.log.durable(end, Durability::SyncAtCommit).unwrap();
                promised = step;
            }
            if step % 90 == seed {
                checkpointer.request();
            }
            if step % 170 == seed {
                checkpointer.now().unwrap();
            }
        }
        // The checkpointer may be running a checkpoint.
        let found = recover(&os.crash(seed));
        let last = found.values().copied().max().unwrap_or_default();
        assert!(last >= promised, "change {promised} is lost, {last} is not");
        let expected: BTreeMap<u64, u64> = (1..=last).map(|step| (page_at(step), step)).collect();
        assert_eq!(found, expected, "seed {seed}");
        shutdown(&checkpointer);
        let found = recover(&os.crash(0));
        let expected: BTreeMap<u64, u64> = (1..=steps).map(|step| (page_at(step), step)).collect();
        assert_eq!(found, expected);
    }
}

/// Whether anything was logged since the last checkpoint began.
fn is_behind(checkpointer: &Checkpointer) -> bool {
    checkpointer.shared.log.end() > checkpointer.shared.state.lock().log_end
}

/// A last checkpoint if anything was logged since the last one; then the thread ends.
fn shutdown(checkpointer: &Checkpointer) {
    if is_behind(checkpointer) {
        checkpointer.now().unwrap();
    }
    checkpointer.end_thread();
}

#[test]
fn the_log_stays_short_and_a_shutdown_leaves_nothing_to_replay() {
    let os = SimulatedOs::new(1);
    let numbers = create(&os);
    let checkpointer = start(&numbers, u64::MAX);
    // In shaken builds, time may bring further checkpoints.
    let alone = !knobs::SHAKEN;
    for round in 0..10 {
        for step in 0..1000 {
            numbers.set(page_at(step), round).unwrap();
        }
        checkpointer.now().unwrap();
        assert!(!(alone && is_behind(&checkpointer)));
    }
    let completed = checkpointer.stats().completed;
    assert!(completed == 10 || !alone && completed > 10);
    assert!(numbers.log.stats().segments <= 5);
    numbers.set(1, 99).unwrap();
    assert!(!alone || is_behind(&checkpointer));
    shutdown(&checkpointer);
    let redo_from = checkpointer.stats().last.unwrap().redo_from;
    assert_eq!(numbers.log.read_from(redo_from).unwrap().count(), 0);
    assert!(matches!(checkpointer.now(), Err(Error::Stopped(_))));
}

#[test]
fn log_bytes_and_time_start_checkpoints() {
    let os = SimulatedOs::new(2);
    let numbers = create(&os);
    let checkpointer = start(&numbers, 1000);
    let wait_for = |completed| {
        while checkpointer.stats().completed < completed {
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    for step in 0..50 {
        numbers.set(page_at(step), step).unwrap();
    }
    wait_for(1);
    checkpointer.shared.state.lock().triggers = Triggers {
        interval: Duration::from_millis(1),
        ..triggers(u64::MAX)
    };
    checkpointer.shared.changed.notify_all();
    numbers.set(1, 1).unwrap();
    wait_for(2);
}

#[test]
fn a_failed_checkpoint_is_reported_and_a_later_one_succeeds() {
    let os = SimulatedOs::new(3);
    let numbers = create(&os);
    let checkpointer = start(&numbers, u64::MAX);
    numbers.set(1, 1).unwrap();
    checkpointer.now().unwrap();
    // More than the kept space: this source does not report its dirty pages.
    for page in 1..=4_000 {
        numbers.set(page, 7).unwrap();
    }
    numbers
        .log
        .durable(numbers.log.end(), Durability::SyncAtCommit)
        .unwrap();
    os.set_capacity(Some(os.used()));
    assert!(matches!(checkpointer.now(), Err(Error::NoSpace { .. })));
    assert!(checkpointer.stats().failed > 0);
    assert!(checkpointer.stats().error.is_some());
    os.set_capacity(None);
    checkpointer.now().unwrap();
    assert!(checkpointer.stats().error.is_none());
    numbers.set(2, 8).unwrap();
    os.fail(FaultOn::Sync, 0, ErrorKind::Other);
    assert!(matches!(checkpointer.now(), Err(Error::Stopped(_))));
    os.heal();
    assert!(matches!(checkpointer.now(), Err(Error::Stopped(_))));
    assert!(numbers.set(1, 2).is_err());
    let found = recover(&os.crash(1));
    assert_eq!(found.get(&1), Some(&7));
}

/// A source with a barrier that does not close.
struct Open;

impl CheckpointSource for Open {
    fn with_barrier_closed(&self, _: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        Err(Error::TooLarge("as any error would".into()))
    }
    fn begin_pages(&self, _: u64) {}
    fn capture(&self, _: Lsn) -> Result<Captured> {
        Err(Error::Internal("the barrier is open".into()))
    }
    fn write_pages(&self, _: u64, _: &mut dyn FnMut(u64) -> Result<()>) -> Result<()> {
        Ok(())
    }
}

#[test]
fn a_barrier_that_does_not_close_fails_the_checkpoint_alone() {
    let os = SimulatedOs::new(5);
    let numbers = create(&os);
    numbers.set(1, 1).unwrap();
    let error = checkpoint(&numbers.store, &numbers.log, &Open).unwrap_err();
    assert!(matches!(error, Error::TooLarge(_)), "{error}");
    numbers.set(2, 2).unwrap();
    checkpoint(&numbers.store, &numbers.log, &*numbers).unwrap();
    assert_eq!(recover(&os.crash(1)), BTreeMap::from([(1, 1), (2, 2)]));
}

struct Panics(Arc<Numbers>);

impl CheckpointSource for Panics {
    fn with_barrier_closed(&self, inside: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        self.0.with_barrier_closed(inside)
    }
    fn begin_pages(&self, epoch: u64) {
        self.0.begin_pages(epoch);
    }
    fn capture(&self, _: Lsn) -> Result<Captured> {
        panic!("as a bug would")
    }
    fn write_pages(&self, _: u64, _: &mut dyn FnMut(u64) -> Result<()>) -> Result<()> {
        Ok(())
    }
}

#[test]
fn a_panic_stops_the_engine_and_not_the_process() {
    let os = SimulatedOs::new(4);
    let numbers = create(&os);
    let source = Arc::new(Panics(Arc::clone(&numbers)));
    let (store, log) = (Arc::clone(&numbers.store), Arc::clone(&numbers.log));
    let checkpointer = Checkpointer::start(store, log, source, triggers(u64::MAX)).unwrap();
    assert!(matches!(checkpointer.now(), Err(Error::Stopped(_))));
    let flag: &StopFlag = numbers.store.stop_flag();
    assert!(flag.is_stopped());
    assert!(matches!(numbers.set(1, 1), Err(Error::Stopped(_))));
}
