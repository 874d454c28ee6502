//! A flush beside others that write what was gathered, and fail.

use std::sync::mpsc::{channel, Receiver, Sender};
use std::time::Duration;

use super::*;
use crate::txn::tests::moments::Moment;

/// A file whose writes tell that they have begun, and end as they are told.
struct Led {
    file: Arc<dyn File>,
    begun: parking_lot::Mutex<Sender<()>>,
    ends: parking_lot::Mutex<Vec<Receiver<bool>>>,
}

impl std::fmt::Debug for Led {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.file.fmt(f)
    }
}

impl File for Led {
    fn path(&self) -> &Path {
        self.file.path()
    }
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        self.file.read_at(buf, offset)
    }
    fn write_at(&self, data: &[u8], offset: u64) -> Result<()> {
        let end = self.ends.lock().pop();
        if let Some(end) = end {
            self.begun.lock().send(()).unwrap();
            if !end.recv().unwrap() {
                let error = std::io::Error::from(std::io::ErrorKind::Other);
                return Err(Error::io("write", self.path(), error));
            }
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
        self.file.allocate(offset, len)
    }
}

/// Another thread's write fails while a flush waits for it, and a third thread tries it again just before
/// the flush would: the flush has to wait for that one too.
#[test]
fn a_flush_waits_for_writes_that_are_tried_again() {
    let os = SimulatedOs::new(5);
    let mut store = Store::create(Arc::new(os.clone()), Path::new(DIR)).unwrap();
    let (begun, has_begun) = channel();
    let (first_ends, first) = channel();
    let (second_ends, second) = channel();
    let file = Arc::new(Led {
        file: store.file.clone(),
        begun: begun.into(),
        ends: vec![second, first].into(),
    });
    store.file = file.clone();
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
