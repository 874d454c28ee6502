//! A flush beside others that write what was gathered, and fail.

use crate::sync::Moment;
use std::sync::mpsc::channel;
use std::time::Duration;

use super::*;

/// Another thread's write fails while a flush waits for it, and a third thread tries it again just before
/// the flush would: the flush has to wait for that one too.
#[test]
fn a_flush_waits_for_writes_that_are_tried_again() {
    let os = SimulatedOs::new(5);
    let mut store = Store::create(Arc::new(os.clone()), Path::new(DIR)).unwrap();
    let (begun, has_begun) = channel();
    let (first_ends, first) = channel();
    let (second_ends, second) = channel();
    let file = Meddled::of(&mut store);
    // Writes tell that they have begun, and end as they are told.
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
        std::thread::spawn(move || store.batch.flush(&*store.file, &store.space))
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
            starts.batch.flush(&*starts.file, &starts.space)
        }));
        has_begun.recv().unwrap();
    });
    let (done, is_done) = channel();
    let flushing = std::thread::spawn(move || {
        let flushed = left.batch.flush(&*left.file, &left.space);
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
