//! The comparison of embedded stores with few rows: all stores answer right, and a store with wrong answers is found.

use std::path::Path;
use std::time::Duration;

use peregrine_bench::embedded::{create, run, Expected, Request, NAMES};
use peregrine_bench::normal::generator::Row;
use peregrine_bench::stores::{Question, Store, StoreReader};
use peregrine_harness::engines::RowSink;
use peregrine_harness::error::Result;

const ROWS: u32 = 500;
const CACHE: u64 = 64 << 20;

fn request() -> Request {
    Request {
        threads: vec![1, 2],
        run: Duration::from_millis(5),
        runs: 2,
        seed: 1,
    }
}

#[test]
fn every_store_answers_right() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut stores: Vec<Box<dyn Store>> = NAMES
        .iter()
        .map(|name| create(name, &dir.path().join(name), CACHE).expect("a store"))
        .collect();
    let expected = Expected::compute(3, ROWS);
    let outcome = run(&mut stores, &expected, &request(), |_| ()).expect("it runs");
    assert_eq!(outcome.stores.len(), NAMES.len());
    for store in &outcome.stores {
        assert!(store.is_right(), "{}", outcome.details());
        for cell in store.points.iter().chain([&store.scan]) {
            assert_eq!(cell.rates.len(), 2);
            assert!(cell.best().is_some_and(|rate| rate > 0.0));
        }
    }
    let table = outcome.table();
    for shown in [
        "Peregrine",
        "LMDB",
        "SQLite",
        "redb",
        "fjall",
        "plain copy",
        "2 threads",
    ] {
        assert!(table.contains(shown), "{table}");
    }
    // The speeds depend on the machine; the verdict must be consistent and name the thresholds in any case.
    let line = outcome.to_string();
    assert_eq!(line.starts_with("held"), outcome.held(), "{line}");
    assert!(line.contains("× LMDB (1 required)") && line.contains("× redb (3 required)"));
}

#[test]
fn an_unknown_store_is_answered_with_the_known_ones() {
    let dir = tempfile::tempdir().expect("a directory");
    let error = create("berkeley", dir.path(), CACHE).err().expect("none");
    let error = error.to_string();
    for name in NAMES.iter().chain([&"berkeley"]) {
        assert!(error.contains(name), "{error}");
    }
}

/// The fault of a store.
#[derive(Clone, Copy, PartialEq)]
enum Lie {
    /// One name in 500 has another letter.
    Name,
    /// One row is missing in lookups.
    Missing,
    /// A scan skips a row.
    Scan,
    /// A row has another zip after loading.
    Row,
    /// The index misses an entry.
    Index,
}

struct Liar {
    store: Box<dyn Store>,
    lie: Lie,
}

struct LiarsReader {
    reader: Box<dyn StoreReader>,
    lie: Lie,
}

impl Store for Liar {
    fn title(&self) -> &'static str {
        self.store.title()
    }

    fn settings(&self) -> String {
        self.store.settings()
    }

    fn cache_bytes(&self) -> u64 {
        self.store.cache_bytes()
    }

    fn is_log(&self, file: &Path) -> bool {
        self.store.is_log(file)
    }

    fn load(&mut self, rows: &[Row]) -> Result<()> {
        let mut rows = rows.to_vec();
        if let (Lie::Row, Some(row)) = (self.lie, rows.get_mut(99)) {
            row.zip.push('0');
        }
        self.store.load(&rows)
    }

    fn settle(&mut self) -> Result<()> {
        self.store.settle()
    }

    fn reader(&self) -> Result<Box<dyn StoreReader>> {
        Ok(Box::new(LiarsReader {
            reader: self.store.reader()?,
            lie: self.lie,
        }))
    }
}

impl StoreReader for LiarsReader {
    fn names(&mut self, ids: &[u32], see: &mut dyn FnMut(&[u8])) -> Result<()> {
        let lie = self.lie;
        let mut at = ids.iter();
        self.reader.names(ids, &mut |name| match (lie, at.next()) {
            (Lie::Name, Some(7)) => see(&name.to_ascii_uppercase()),
            (Lie::Missing, Some(7)) => {}
            _ => see(name),
        })
    }

    fn scan(&mut self, see: &mut dyn FnMut(&[u8])) -> Result<()> {
        let mut left_out = self.lie == Lie::Scan;
        self.reader.scan(&mut |bytes| {
            if !std::mem::take(&mut left_out) {
                see(bytes);
            }
        })
    }

    fn rows(&mut self, see: &mut dyn FnMut(&[u8]), row: &mut dyn FnMut(&Row)) -> Result<()> {
        self.reader.rows(see, row)
    }

    fn of_country(&mut self, country: u16) -> Result<u64> {
        let count = self.reader.of_country(country)?;
        Ok(count.saturating_sub(u64::from(self.lie == Lie::Index)))
    }

    fn by_email(&mut self, email: &str) -> Result<Option<u32>> {
        self.reader.by_email(email)
    }

    fn answer(&mut self, question: &Question, rows: &mut dyn RowSink) -> Result<()> {
        self.reader.answer(question, rows)
    }
}

#[test]
fn wrong_answers_are_found() {
    let expected = Expected::compute(3, ROWS);
    for lie in [Lie::Name, Lie::Missing, Lie::Scan, Lie::Row, Lie::Index] {
        let dir = tempfile::tempdir().expect("a directory");
        let made = |name: &str| create(name, &dir.path().join(name), CACHE).expect("a store");
        let liar = Liar {
            store: made("lmdb"),
            lie,
        };
        let mut stores: Vec<Box<dyn Store>> = vec![made("peregrine"), Box::new(liar)];
        let outcome = run(&mut stores, &expected, &request(), |_| ()).expect("it runs");
        let [honest, liar] = &outcome.stores[..] else {
            panic!("two stores");
        };
        assert!(honest.is_right() && !liar.is_right());
        let points: u64 = liar.points.iter().map(|cell| cell.wrong).sum();
        match lie {
            Lie::Name | Lie::Missing | Lie::Row => assert!(points > 0 || lie == Lie::Row),
            Lie::Scan => assert!(liar.scan.wrong > 0 && points == 0),
            Lie::Index => assert!(liar.wrong > 0 && points == 0),
        }
        assert_eq!(liar.wrong > 0, matches!(lie, Lie::Row | Lie::Index));
        assert!(!outcome.held());
        let line = outcome.to_string();
        assert!(line.starts_with("NOT HELD"), "{line}");
        assert!(line.contains("LMDB gave WRONG ANSWERS"), "{line}");
        assert!(outcome.table().contains("void"));
        assert!(outcome.details().contains("WRONG"));
    }
}
