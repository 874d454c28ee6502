//! A flush beside threads whose writes of gathered images fail, and images whose place can't be written.

use crate::sync::Moment;
use std::sync::mpsc::channel;
use std::time::Duration;

use super::*;

/// Another thread's write fails while a flush waits for it. A third thread tries that write again just before the flush
/// would: the flush has to wait for the third thread, too.
#[test]
fn a_flush_waits_for_writes_that_are_tried_again() {
    let os = SimulatedOs::new(5);
    let mut store = Store::create(Arc::new(os.clone()), Path::new(DIR)).unwrap();
    let (begun, has_begun) = channel();
    let (first_ends, first) = channel();
    let (second_ends, second) = channel();
    let file = Meddled::of(&mut store);
    // Writes report that they have begun, and end as they are told.
    for ends in [first, second] {
        let begun = begun.clone();
        file.meddle(move || {
            begun.send(()).unwrap();
            match ends.recv().unwrap() {
                true => Ok(()),
                false => Err(Error::io(
                    "write",
                    Path::new(DIR),
                    io::ErrorKind::Other.into(),
                )),
            }
        });
    }
    let store = Arc::new(store);
    let page = store.allocate_page();
    let image = page_of(1);
    store.begin_checkpoint();
    store.write_checkpoint_page(page, &image, true).unwrap();

    let flush = || {
        let store = store.clone();
        std::thread::spawn(move || store.batch.flush(&store.target()))
    };
    let writer = flush();
    has_begun.recv().unwrap();
    let (left, third) = (store.clone(), Arc::new(parking_lot::Mutex::new(None)));
    let (begins, starts) = (third.clone(), store.clone());
    store.batch.moments.at(Moment::FlushWaits, move || {
        first_ends.send(false).unwrap();
        writer.join().unwrap().unwrap_err();
    });
    store.batch.moments.at(Moment::FlushTriesAgain, move || {
        *begins.lock() = Some(std::thread::spawn(move || {
            starts.batch.flush(&starts.target())
        }));
        has_begun.recv().unwrap();
    });
    let (done, is_done) = channel();
    let flushing = std::thread::spawn(move || {
        let flushed = left.batch.flush(&left.target());
        done.send(()).unwrap();
        flushed
    });
    let early = is_done.recv_timeout(Duration::from_millis(300));
    second_ends.send(true).unwrap();
    flushing.join().unwrap().unwrap();
    let third = third.lock().take();
    third.unwrap().join().unwrap().unwrap();
    assert!(early.is_err(), "the flush returned before all was written");
    assert!(store.batch.moments.passed());
    let mut buf = vec![0; PAGE_SIZE];
    store.read_page(page, &mut buf).unwrap();
    assert!(buf == image);
}

/// A store with gathered images of pages; the third image's place can't be written. The images are the newest states,
/// or those as of the barrier only. The first attempt to write them has failed.
fn with_a_bad_sector(still_current: bool) -> (SimulatedOs, Store, Arc<Meddled>, Vec<PageId>) {
    let os = SimulatedOs::new(5);
    let mut store = Store::create(Arc::new(os.clone()), Path::new(DIR)).unwrap();
    let file = Meddled::of(&mut store);
    let pages: Vec<PageId> = (0..5).map(|_| store.allocate_page()).collect();
    let epoch = store.begin_checkpoint();
    let mut places = Vec::new();
    for (seed, page) in (0..).zip(&pages) {
        let image = page_of(seed);
        store
            .write_checkpoint_page(*page, &image, still_current)
            .unwrap();
        places.push(store.batch.last_offset());
    }
    *file.bad.lock() = Some(places[2] * UNIT as u64);
    store.complete_checkpoint(epoch, b"").unwrap_err();
    (os, store, file, pages)
}

fn is_whole(store: &Store, pages: &[PageId]) {
    let mut buf = vec![0; PAGE_SIZE];
    for (seed, page) in (0..).zip(pages) {
        store.read_page(*page, &mut buf).unwrap();
        assert!(buf == page_of(seed), "page {page}");
    }
}

#[test]
fn an_image_whose_place_can_not_be_written_goes_elsewhere() {
    let (os, store, _file, mut pages) = with_a_bad_sector(true);
    is_whole(&store, &pages);
    for _ in 0..3 {
        let page = store.allocate_page();
        let epoch = store.begin_checkpoint();
        let image = page_of(pages.len() as u64);
        store.write_checkpoint_page(page, &image, true).unwrap();
        store.complete_checkpoint(epoch, b"meta").unwrap();
        pages.push(page);
        is_whole(&store, &pages);
    }
    let (again, _) = Store::open(Arc::new(os.crash(1)), Path::new(DIR)).unwrap();
    is_whole(&again, &pages);
}

/// Images of a checkpoint that was given up do not block later ones.
#[test]
fn images_that_nobody_wants_any_more_are_not_waited_for() {
    let (_os, store, _file, pages) = with_a_bad_sector(false);
    assert!(pages.iter().all(|page| !store.has_place(*page)));
    for _ in 0..3 {
        let epoch = store.begin_checkpoint();
        store.write_page(pages[0], &page_of(0)).unwrap();
        let image = page_of(1);
        store.write_checkpoint_page(pages[1], &image, true).unwrap();
        store.complete_checkpoint(epoch, b"meta").unwrap();
        is_whole(&store, &pages[..2]);
    }
}

#[test]
fn what_a_running_checkpoint_alone_wants_goes_elsewhere_too() {
    let (os, store, file, pages) = with_a_bad_sector(true);
    *file.bad.lock() = None;
    let epoch = store.begin_checkpoint();
    store.complete_checkpoint(epoch, b"1").unwrap();
    let epoch = store.begin_checkpoint();
    store
        .write_checkpoint_page(pages[3], &page_of(3), false)
        .unwrap();
    let offset = store.batch.last_offset();
    store.write_page(pages[3], &page_of(77)).unwrap();
    *file.bad.lock() = Some(offset * UNIT as u64);
    store.batch.flush(&store.target()).unwrap_err();
    store.complete_checkpoint(epoch, b"2").unwrap();
    let mut buf = vec![0; PAGE_SIZE];
    store.read_page(pages[3], &mut buf).unwrap();
    assert!(buf == page_of(77));
    let (again, meta) = Store::open(Arc::new(os.crash(1)), Path::new(DIR)).unwrap();
    assert_eq!(meta, b"2");
    is_whole(&again, &pages);
}
