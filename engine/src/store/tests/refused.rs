//! Places of the data file that can't be written, by any writer.

use std::io;
use std::sync::Arc;

use super::scattered::Scattered;
use super::{page_of, Meddled};
use crate::ids::PAGE_SIZE;
use crate::store::header::HEADER;

const META: &[u8] = b"second";

/// A store with its free space in pieces: images are written one by one, and chunks too if the disk is full.
fn scattered(full: bool) -> (Scattered, Arc<Meddled>) {
    let mut scattered = Scattered::new();
    if full {
        scattered.fill_disk();
    }
    let file = Meddled::of(&mut scattered.store);
    (scattered, file)
}

/// A store with its free space at the end of the file: images are gathered.
fn gathered() -> (Scattered, Arc<Meddled>) {
    let mut gathered = Scattered::unscattered();
    let file = Meddled::of(&mut gathered.store);
    (gathered, file)
}

/// Makes each write of a checkpoint but the header's fail, one at a time: a later checkpoint succeeds.
fn later_checkpoints_pass(made: impl Fn() -> (Scattered, Arc<Meddled>)) {
    let (store, file) = made();
    store.try_checkpoint(2, META).unwrap();
    let mut written = std::mem::take(&mut *file.written.lock());
    written.retain(|&offset| offset >= 2 * HEADER as u64);
    assert!(written.len() > 1);
    for bad in written {
        let (store, file) = made();
        *file.bad.lock() = Some(bad);
        let refused: Vec<_> = (0..3)
            .map_while(|_| store.try_checkpoint(2, META).err())
            .collect();
        assert!(refused.len() < 3, "a bad sector at {bad}: {refused:?}");
        store.is_found_again(2, META);
        // The bad place is not used again.
        store.try_checkpoint(3, META).unwrap();
        store.is_found_again(3, META);
    }
}

#[test]
fn a_checkpoint_comes_to_its_end_whatever_place_can_not_be_written() {
    later_checkpoints_pass(|| scattered(false));
    later_checkpoints_pass(gathered);
}

#[test]
fn so_it_does_on_a_full_disk() {
    later_checkpoints_pass(|| scattered(true));
}

/// A failed write takes the bad place out of use: the next write of the page gets another.
#[test]
fn an_evicted_page_goes_elsewhere() {
    let (store, file) = scattered(false);
    let page = store.pages[0];
    store.store.write_page(page, &page_of(5)).unwrap();
    let bad = file.written.lock()[0];

    let (store, file) = scattered(false);
    *file.bad.lock() = Some(bad);
    store.store.write_page(page, &page_of(5)).unwrap_err();
    store.store.write_page(page, &page_of(5)).unwrap();
    let mut buf = vec![0; PAGE_SIZE];
    store.store.read_page(page, &mut buf).unwrap();
    assert!(buf == page_of(5));
}

/// If the disk has no space for a group of chunks, though the file is long enough, each chunk is written by itself.
#[test]
fn chunks_that_can_not_be_written_side_by_side_are_written_apart() {
    for kind in [io::ErrorKind::StorageFull, io::ErrorKind::Other] {
        let (store, file) = scattered(false);
        store.try_checkpoint(2, META).unwrap();
        let written = std::mem::take(&mut *file.written.lock());
        // Behind the images: the chunks, the record, and the header.
        let [.., chunks, _record, _header] = written[..] else {
            panic!("{written:?}");
        };
        let (store, file) = scattered(false);
        *file.bad.lock() = Some(chunks);
        *file.bad_is.lock() = kind;
        store.try_checkpoint(2, META).unwrap();
        store.is_found_again(2, META);
    }
}
