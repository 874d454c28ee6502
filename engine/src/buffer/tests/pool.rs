//! The pool itself: pages without parents, frames running out, failing disks, damaged pages.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::buffer::{PoolWithThreads, MIN_FRAMES};
use crate::error::Error;
use crate::ids::{PageId, TreeId, PAGE_SIZE};
use crate::node::header::*;
use crate::os::simulated::{FaultOn, SimulatedOs};
use crate::store::Store;
use crate::tree::{RecordEdit, Tree};

/// Pages of a test; under Miri, where loading and evicting is slow, a few more than the pool has frames.
const PAGES: usize = if cfg!(miri) { 84 } else { 500 };
const THREADS: usize = if cfg!(miri) { 2 } else { 4 };
/// Pages that each thread reads.
const READS: usize = if cfg!(miri) { 12 } else { 1_500 };
/// Changes that each thread makes.
const CHANGES: usize = if cfg!(miri) { 12 } else { 2_000 };

fn pool(frames: usize) -> (SimulatedOs, Arc<PoolWithThreads>) {
    let os = SimulatedOs::new(1);
    let store = Store::create(Arc::new(os.clone()), Path::new("/db")).unwrap();
    let pool = PoolWithThreads::new(frames * PAGE_SIZE, Arc::new(store)).unwrap();
    (os, pool)
}

fn undo_page(pool: &PoolWithThreads, number: u64) -> PageId {
    let (id, mut guard) = pool.create_unparented(PageKind::Undo).unwrap();
    let body = guard.body_mut().unwrap();
    body[..8].copy_from_slice(&number.to_le_bytes());
    body[500..508].copy_from_slice(&number.to_le_bytes());
    guard.set_used(508).unwrap();
    id
}

fn number(body: &[u8]) -> u64 {
    assert_eq!(body[..8], body[500..508]);
    u64::from_le_bytes(body[..8].try_into().unwrap())
}

#[test]
fn too_small_a_pool_is_refused() {
    let os = SimulatedOs::new(1);
    let store = Store::create(Arc::new(os), Path::new("/db")).unwrap();
    let pool = PoolWithThreads::new(PAGE_SIZE, Arc::new(store));
    assert!(matches!(pool, Err(Error::Invalid(text)) if text.contains("1048576")));
}

/// While a thread finds out that the page that it claimed is not to be read, the page's number may be given to
/// another page.
#[test]
fn a_read_that_is_given_up_leaves_the_entry_of_another_page_alone() {
    let (_os, with_threads) = pool(MIN_FRAMES);
    let page = undo_page(&with_threads, 7);
    let pool = with_threads.buffer_pool();
    for claim in [pool.table.loading(), pool.table.loading()] {
        pool.end_claim(page.0, claim, None);
        assert_eq!(
            number(with_threads.resident_shared(page).unwrap().body()),
            7
        );
    }
    let (mine, other) = (pool.table.loading(), pool.table.loading());
    pool.table.lock(1_000).insert(1_000, other);
    pool.end_claim(1_000, mine, None);
    assert_eq!(pool.table.lock(1_000).get(&1_000), Some(&other));
    pool.end_claim(1_000, other, None);
    assert_eq!(pool.table.lock(1_000).get(&1_000), None);
}

#[test]
fn pages_without_parents_come_back_as_they_were() {
    let (_os, pool) = pool(MIN_FRAMES);
    let ids: Vec<PageId> = (0..PAGES as u64).map(|i| undo_page(&pool, i)).collect();
    // The provider may just have evicted some, and not counted them yet.
    assert!(pool.stats().evictions >= (PAGES - MIN_FRAMES - 16) as u64);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (pool, ids) = (&pool, &ids);
            scope.spawn(move || {
                for i in 0..READS {
                    let i = (i * 7 + thread * 131) % PAGES;
                    let guard = pool.fetch_shared(ids[i]).unwrap();
                    assert_eq!(guard.page(), ids[i]);
                    assert_eq!(number(guard.body()), i as u64);
                }
            });
        }
    });
    for id in ids {
        pool.free(id).unwrap();
    }
    assert_eq!(pool.store().pages().count(), 0);
    // The provider may be about to release one.
    let given_back = (0..10_000).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(1));
        pool.stats().free == MIN_FRAMES as u64
    });
    assert!(given_back, "{:?}", pool.stats());
}

#[test]
fn changes_by_many_threads_add_up() {
    let (_os, pool) = pool(MIN_FRAMES);
    let ids: Vec<PageId> = (0..PAGES.min(100)).map(|_| undo_page(&pool, 0)).collect();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (pool, ids) = (&pool, &ids);
            scope.spawn(move || {
                for i in 0..CHANGES {
                    let id = ids[(i * 37 + thread * 11) % ids.len()];
                    let mut guard = pool.fetch_exclusive(id).unwrap();
                    let next = number(guard.body()) + 1;
                    let body = guard.body_mut().unwrap();
                    body[..8].copy_from_slice(&next.to_le_bytes());
                    body[500..508].copy_from_slice(&next.to_le_bytes());
                }
            });
        }
    });
    let sum: u64 = ids
        .iter()
        .map(|id| number(pool.fetch_shared(*id).unwrap().body()))
        .sum();
    assert_eq!(sum, (THREADS * CHANGES) as u64);
}

#[test]
fn when_every_frame_is_held_a_call_fails_instead_of_hanging() {
    if crate::knobs::SHAKEN {
        // The test counts results of the knobs' default values.
        return;
    }
    let (_os, pool) = pool(MIN_FRAMES);
    pool.buffer_pool().set_waits(25);
    let ids: Vec<PageId> = (0..MIN_FRAMES as u64 + 1)
        .map(|i| undo_page(&pool, i))
        .collect();
    let pins: Vec<_> = ids[..MIN_FRAMES]
        .iter()
        .map(|id| pool.pin(*id).unwrap())
        .collect();
    let start = Instant::now();
    assert!(matches!(
        pool.fetch_shared(ids[MIN_FRAMES]),
        Err(Error::TooLarge(_))
    ));
    assert!(matches!(
        pool.create_unparented(PageKind::Undo),
        Err(Error::TooLarge(_))
    ));
    assert!(start.elapsed() >= Duration::from_millis(100));
    for (i, pin) in pins.iter().enumerate() {
        assert_eq!(number(pin.shared().body()), i as u64);
    }
    drop(pins);
    let guard = pool.fetch_shared(ids[MIN_FRAMES]).unwrap();
    assert_eq!(number(guard.body()), MIN_FRAMES as u64);
}

fn put(tree: &Tree, key: u32, len: usize) -> crate::Result<()> {
    tree.modify(&key.to_be_bytes(), len, 1, |_, new| {
        new.resize(len, key as u8);
        (RecordEdit::Put, ())
    })
}

#[test]
fn a_full_disk_fails_changes_and_loses_none() {
    let (os, pool) = pool(MIN_FRAMES);
    let tree = Tree::create(&pool, TreeId(1)).unwrap();
    os.set_capacity(Some(os.used() + 300 * 1024));
    let mut random = 1u64;
    // Values that don't compress, until the pool can evict nothing more.
    let mut fill = |key: u32| {
        tree.modify(&key.to_be_bytes(), 1000, 1, |_, new| {
            while new.len() < 1000 {
                random = random.wrapping_mul(6364136223846793005).wrapping_add(1);
                new.push((random >> 56) as u8);
            }
            (RecordEdit::Put, ())
        })
    };
    let (failed, error) = (0..100_000u32)
        .find_map(|key| Some((key, fill(key).err()?)))
        .unwrap();
    assert!(matches!(error, Error::NoSpace { .. }), "{error}");
    os.set_capacity(None);
    for key in failed..failed + 500 {
        fill(key).unwrap();
    }
    let mut next = 0u32;
    tree.verify(&mut |key, value| {
        assert_eq!(key, next.to_be_bytes());
        assert_eq!(value.len(), 1000);
        next += 1;
        Ok(())
    })
    .unwrap();
    assert_eq!(next, failed + 500);
}

#[test]
fn a_failed_read_is_an_error_and_can_be_tried_again() {
    let (os, pool) = pool(MIN_FRAMES);
    let tree = Tree::create(&pool, TreeId(1)).unwrap();
    for key in 0..3_000 {
        put(&tree, key, 1000).unwrap();
    }
    os.fail(FaultOn::Read, 0, std::io::ErrorKind::Other);
    let outcomes: Vec<_> = (0..3_000u32)
        .map(|key| tree.read(&key.to_be_bytes(), |value, _| value.is_some()))
        .collect();
    assert!(outcomes.iter().any(|o| matches!(o, Err(Error::Io { .. }))));
    os.heal();
    for key in 0..3_000u32 {
        let found = tree
            .read(&key.to_be_bytes(), |value, _| value.map(<[u8]>::len))
            .unwrap();
        assert_eq!(found, Some(1000));
    }
}

/// Pages with a right checksum and impossible contents.
#[test]
fn damaged_nodes_are_found_when_they_are_read() {
    for (what, offset, byte) in [
        ("count", COUNT + 1, 0xff),
        ("hole", HOLE_END + 1, 0xff),
        ("kind", KIND, 9),
        ("level", LEVEL, 3),
        ("tree", TREE_ID, 77),
        ("prefix", PREFIX_LEN, 200),
        ("fence", PAGE_SIZE - 1, 0xee),
        ("first slot", HEADER_SIZE, 0xff),
    ] {
        let (os, pool) = pool(MIN_FRAMES);
        let tree = Tree::create(&pool, TreeId(1)).unwrap();
        for key in 0..3_000 {
            put(&tree, key, 1000).unwrap();
        }
        let root = tree.root();
        let store = pool.store().clone();
        let epoch = store.begin_checkpoint();
        pool.begin_checkpoint(epoch);
        pool.write_checkpoint(epoch, &mut |_| Ok(())).unwrap();
        store.complete_checkpoint(epoch, b"").unwrap();
        let (store, _) = Store::open(Arc::new(os.crash(1)), Path::new("/db")).unwrap();
        let mut damaged = 0;
        let ids: Vec<PageId> = store.pages().filter(|id| *id != root).collect();
        for id in ids {
            let mut page = [0; PAGE_SIZE];
            store.read_page(id, &mut page).unwrap();
            if page[KIND] == PageKind::Leaf as u8 && damaged < 5 {
                page[offset] = byte;
                store.write_page(id, &page).unwrap();
                damaged += 1;
            }
        }
        assert_eq!(damaged, 5);
        let pool = PoolWithThreads::new(MIN_FRAMES * PAGE_SIZE, Arc::new(store)).unwrap();
        let tree = Tree::open(&pool, TreeId(1), root).unwrap();
        let mut errors = 0;
        for key in 0..3_000u32 {
            match tree.read(&key.to_be_bytes(), |value, _| value.map(<[u8]>::len)) {
                Ok(_) => {}
                Err(Error::Corrupt { page, .. }) => {
                    assert!(page.is_some());
                    errors += 1;
                }
                Err(other) => panic!("{what}: {other}"),
            }
        }
        // A changed head of one record misleads a search; no check of bounds can find this.
        if what != "first slot" {
            assert!(errors >= 5, "{what}: {errors} errors");
        }
    }
}
