//! Files of this format, which every later version must open with the right rows; and files of a newer version, which
//! must be refused and stay unchanged.
//!
//! `cargo run -p peregrine --example make_golden` makes the files of a new format, under its number; the files of
//! earlier formats stay.

#[allow(dead_code)] // Encoding is for who makes the files.
mod archive;
mod content;

use std::path::Path;

use peregrine::check::{check, Report};
use peregrine::dump::Dump;
use peregrine::{
    Cursor, CursorOptions, Database, Error, Isolation, Locking, OwnedValue, Seek, Value,
};

use content::{expected, options, Row};

fn golden(name: &str) -> Vec<(String, Vec<u8>)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden/files")
        .join(name);
    archive::decode(&std::fs::read(path).unwrap())
}

fn read(db: &Database, name: &str, index: usize) -> Vec<Row> {
    let table = db.table(name).unwrap();
    let mut txn = db.begin(Isolation::RepeatableRead);
    let mut cursor = Cursor::new(&table, index, CursorOptions::default());
    let mut more = cursor.seek(&mut txn, &[], Seek::First).unwrap();
    let mut rows = Vec::new();
    let mut large = Vec::new();
    while more {
        let view = cursor.row().unwrap();
        let row = (0..table.schema().columns.len()).map(|column| match view.get(column).unwrap() {
            Value::OutOfRow(_) => {
                view.get_large(column, &mut large).unwrap();
                OwnedValue::Bytes(large.clone())
            }
            value => value.to_owned(),
        });
        rows.push(row.collect());
        more = cursor.next(&mut txn).unwrap();
    }
    rows
}

fn dumped(dir: &Path) {
    let dump = Dump::open(dir).unwrap();
    assert!(dump.missing().is_empty(), "{:?}", dump.missing());
    for (name, rows) in expected() {
        let mut found = Vec::new();
        let mut row = |row: &[OwnedValue]| {
            found.push(row.to_vec());
            Ok(())
        };
        let mut missing = |what| panic!("{name}: {what}");
        dump.rows(name, &mut row, &mut missing).unwrap();
        assert_eq!(found, rows, "dump of {name}");
    }
}

fn opens(archive: &str, prepared: usize) {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    archive::unpack(&golden(archive), dir);
    let mut report = Report::default();
    check(dir, &mut report).unwrap();
    assert!(report.is_sound(), "{archive}: {:?}", report.problems);
    dumped(dir);
    for time in 0..2 {
        let db = Database::open(dir, options()).unwrap();
        assert_eq!(db.prepared().len(), prepared, "{archive}, opening {time}");
        if time == 1 && prepared > 0 {
            db.rollback_prepared(&content::xid()).unwrap();
        }
        let expected = expected();
        assert!(db.table_names().iter().eq(expected.keys()), "{archive}");
        for (name, rows) in &expected {
            assert_eq!(&read(&db, name, 0), rows, "{archive}: {name}");
            let table = db.table(name).unwrap();
            for index in 1..=table.schema().indexes.len() {
                let found = read(&db, name, index);
                assert_eq!(
                    found.len(),
                    rows.len(),
                    "{archive}: {name} by index {index}"
                );
                assert!(
                    found.iter().all(|row| rows.contains(row)),
                    "{archive}: {name}"
                );
            }
        }
        assert_eq!(db.locking("pairs").unwrap(), Locking::Optimistic);
        assert!(db.table("pairs").unwrap().next_auto_increment() >= 77);
        db.close().unwrap();
    }
    let mut report = Report::default();
    check(dir, &mut report).unwrap();
    assert!(report.is_sound(), "{archive}: {:?}", report.problems);
    dumped(dir);
}

#[test]
fn files_of_format_1_closed_in_order_open_with_the_right_rows() {
    opens("format-1-closed", 0);
}

#[test]
fn files_of_format_1_crashed_open_with_the_right_rows() {
    opens("format-1-crashed", 1);
}

#[test]
fn what_is_made_today_has_the_right_rows_too() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("database");
    content::make(&dir, || {});
    dumped(&dir);
}

/// Opening, checking and dumping must fail, and change nothing.
fn refused(what: &str, change: impl Fn(&mut Vec<(String, Vec<u8>)>)) {
    for archive in ["format-1-closed", "format-1-crashed"] {
        let mut files = golden(archive);
        change(&mut files);
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        archive::unpack(&files, dir);
        let error = Database::open(dir, options()).unwrap_err();
        let text = error.to_string();
        assert!(
            matches!(error, Error::Format { .. } | Error::Invalid(_)),
            "{what}: {text}"
        );
        assert!(
            text.contains("version") && text.contains("reads formats up to")
                || text.contains("knows"),
            "{what}: {text}"
        );
        let mut report = Report::default();
        assert!(check(dir, &mut report).is_err() || !report.is_sound());
        let left = Dump::open(dir).map(|dump| dump.missing().len());
        assert!(left.is_err() || left.unwrap() > 0, "{what}");
        assert!(archive::files(dir) == files, "{what}: files were changed");
    }
}

fn reseal(bytes: &mut [u8], at: usize, over: std::ops::Range<usize>) {
    let checksum = crc32c::crc32c(&bytes[over]);
    bytes[at..at + 4].copy_from_slice(&checksum.to_le_bytes());
}

fn u64_at(bytes: &[u8], at: usize) -> usize {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize
}

fn data(files: &mut [(String, Vec<u8>)]) -> &mut Vec<u8> {
    &mut files.iter_mut().find(|file| file.0 == "data").unwrap().1
}

#[test]
fn a_newer_data_file_is_refused_untouched() {
    refused("newer headers", |files| {
        let bytes = data(files);
        for slot in [0, 4096] {
            bytes[slot + 8] += 1;
            reseal(bytes, slot + 4092, slot..slot + 4092);
        }
    });
    refused("one newer header", |files| {
        let bytes = data(files);
        let newer = if u64_at(bytes, 32) > u64_at(bytes, 4096 + 32) {
            0
        } else {
            4096
        };
        bytes[newer + 8] += 1;
        reseal(bytes, newer + 4092, newer..newer + 4092);
    });
}

#[test]
fn a_newer_meta_is_refused_untouched() {
    refused("newer meta", |files| {
        let bytes = data(files);
        let slot = if u64_at(bytes, 32) > u64_at(bytes, 4096 + 32) {
            0
        } else {
            4096
        };
        let (at, len) = (u64_at(bytes, slot + 40) * 1024, u64_at(bytes, slot + 48));
        let meta = at + 48 + 8 * u64_at(bytes, at + 32);
        bytes[meta] = 200;
        reseal(bytes, at + 4, at + 8..at + len);
    });
}

#[test]
fn a_newer_log_is_refused_untouched() {
    refused("newer log", |files| {
        for (name, bytes) in files.iter_mut() {
            if name.starts_with("log/0") {
                bytes[8] += 1;
                reseal(bytes, 4092, 0..4092);
            }
        }
    });
}
