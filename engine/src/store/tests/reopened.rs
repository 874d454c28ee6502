//! A process is killed, another opens the data file and goes on, and then the power fails.

use super::*;
use crate::os::simulated::Loss;

fn checkpoint(store: &Store, page: PageId, image: &[u8], meta: &[u8]) {
    let epoch = store.begin_checkpoint();
    store.write_checkpoint_page(page, image, true).unwrap();
    store.complete_checkpoint(epoch, meta).unwrap();
}

fn content(store: &Store, page: PageId) -> Vec<u8> {
    let mut buf = vec![0; PAGE_SIZE];
    store.read_page(page, &mut buf).unwrap();
    buf
}

/// A process that goes on from a newer checkpoint may overwrite all that only the one before needs.
#[test]
fn a_checkpoint_that_was_found_is_there_when_the_power_goes() {
    let os = SimulatedOs::new(5);
    let store = Store::create(Arc::new(os.clone()), Path::new(DIR)).unwrap();
    let (page, beside) = (store.allocate_page(), store.allocate_page());
    checkpoint(&store, page, &page_of(1), b"1");
    checkpoint(&store, page, &page_of(2), b"2");
    os.record();
    checkpoint(&store, page, &page_of(3), b"3");
    let moments = os.recorded();
    let mut found = BTreeMap::new();
    for (n, moment) in moments.iter().enumerate() {
        let killed = moment.crash(Loss::Nothing, 0);
        let (again, meta) = Store::open(Arc::new(killed.clone()), Path::new(DIR)).unwrap();
        *found.entry(meta.clone()).or_insert(0) += 1;
        // Enough writes to use all free space.
        for seed in 10..30 {
            again.write_page(beside, &page_of(seed)).unwrap();
        }
        for (loss, seed) in Loss::ALL
            .into_iter()
            .flat_map(|loss| (0..4).map(move |n| (loss, n)))
        {
            let lost = killed.crash_with(loss, seed);
            let (last, left) = Store::open(Arc::new(lost), Path::new(DIR)).unwrap();
            assert_eq!(left, meta, "{loss:?}, killed after moment {n}");
            let expected = page_of(if meta == b"2" { 2 } else { 3 });
            assert!(
                content(&last, page) == expected,
                "{loss:?}, killed after moment {n}"
            );
        }
    }
    assert_eq!(found.len(), 2, "{found:?}");
}

#[test]
fn a_database_whose_creation_went_on_is_there_when_the_power_goes() {
    let os = SimulatedOs::new(5);
    os.record();
    let store = Store::create(Arc::new(os.clone()), Path::new(DIR)).unwrap();
    let moments = os.recorded();
    drop(store);
    let mut opened = 0;
    for (n, moment) in moments.iter().enumerate() {
        let killed = moment.crash(Loss::Nothing, 0);
        if !Store::exists(&killed, Path::new(DIR)).unwrap() {
            continue;
        }
        opened += 1;
        let (again, _) = Store::open(Arc::new(killed.clone()), Path::new(DIR)).unwrap();
        let page = again.allocate_page();
        checkpoint(&again, page, &page_of(1), b"1");
        let lost = killed.crash_with(Loss::Everything, 0);
        let last = Store::open(Arc::new(lost), Path::new(DIR));
        let (last, meta) = last.unwrap_or_else(|error| panic!("killed after moment {n}: {error}"));
        assert_eq!(meta, b"1");
        assert!(content(&last, page) == page_of(1));
    }
    assert!(opened > 2);
}

/// A header whose sync failed may be in the kernel's memory only, which counts it as written.
#[test]
fn a_header_that_a_failed_sync_has_forgotten_is_written_again() {
    for seed in 0..20 {
        let os = SimulatedOs::new(seed);
        let store = Store::create(Arc::new(os.clone()), Path::new(DIR)).unwrap();
        let page = store.allocate_page();
        checkpoint(&store, page, &page_of(1), b"1");
        let epoch = store.begin_checkpoint();
        store
            .write_checkpoint_page(page, &page_of(2), true)
            .unwrap();
        // The first sync is of the parts that the header leads to.
        os.fail_once(
            crate::os::simulated::FaultOn::Sync,
            1,
            std::io::ErrorKind::Other,
        );
        store.complete_checkpoint(epoch, b"2").unwrap_err();
        os.heal();
        let killed = os.crash_with(Loss::Nothing, 0);
        let (_, meta) = Store::open(Arc::new(killed.clone()), Path::new(DIR)).unwrap();
        assert_eq!(meta, b"2");
        let lost = killed.crash_with(Loss::Everything, 0);
        let (last, meta) = Store::open(Arc::new(lost), Path::new(DIR)).unwrap();
        assert_eq!(meta, b"2");
        assert!(content(&last, page) == page_of(2));
    }
}
