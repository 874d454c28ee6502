//! The file of a quarantined table can't be read, or an opening finds the file after an earlier opening did not finish.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use peregrine::dump::Dump;
use peregrine::os::simulated::{Event, FaultOn, Loss, SimulatedOs};
use peregrine::os::{DirLock, File, LockMode, OpenMode, Os};
use peregrine::{Error, Isolation, Result, Value};

use crate::damage::reopened::{
    create, dumped, fill, killed, open, open_on, prepare, quarantining, renew, renewed, rows,
    to_be_recovered, xid, ROWS,
};

const ASIDE: &str = "/db/aside";

/// Returns the table's file; `None` when no table is quarantined.
fn file_of(os: &SimulatedOs) -> Option<PathBuf> {
    let names = os.list(Path::new(ASIDE)).unwrap();
    let name = names.iter().find(|name| name.parse::<u32>().is_ok())?;
    Some(Path::new(ASIDE).join(name))
}

fn bytes_of(os: &SimulatedOs, path: &Path) -> Vec<u8> {
    let file = os.open(path, OpenMode::ReadOnly).unwrap();
    os.bytes(path, 0, file.len().unwrap() as usize)
}

/// Returns all files of a database.
fn contents(os: &SimulatedOs) -> Vec<(PathBuf, Vec<u8>)> {
    let mut contents = Vec::new();
    for dir in ["/db", "/db/log", ASIDE].map(Path::new) {
        for name in os.list(dir).unwrap() {
            let path = dir.join(name);
            let bytes = bytes_of(os, &path);
            contents.push((path, bytes));
        }
    }
    contents
}

/// Returns a disk in the state after a kill: a table was quarantined and truncated, and has new rows since the last
/// checkpoint.
///
/// Its quarantine file is void.
fn with_void_file() -> SimulatedOs {
    let moments = quarantining(&killed(3));
    let os = moments.last().unwrap().crash(Loss::Nothing, 0);
    let db = open(&os).unwrap();
    db.truncate_table("damaged").unwrap();
    db.checkpoint().unwrap();
    let table = db.table("damaged").unwrap();
    let mut txn = db.begin(Isolation::ReadCommitted);
    for id in 0..ROWS {
        let row = [Value::from(id), Value::from(&b"new"[..])];
        txn.insert(&table, &row).unwrap();
    }
    txn.commit().unwrap();
    db.sync_log().unwrap();
    os.crash_with(Loss::Nothing, 0)
}

/// Without its content it is unknown whether the file is void.
///
/// The log must then keep everything.
#[test]
fn a_void_file_that_can_not_be_read_once_costs_no_rows() {
    let killed = with_void_file();
    let before = contents(&killed);
    let mut refused = 0;
    for read in 0.. {
        let disk = killed.crash_with(Loss::Nothing, 0);
        disk.fail_once(FaultOn::Read, read, ErrorKind::Other);
        let opened = open(&disk);
        let unhurt = disk.struck() == 0;
        disk.heal();
        match &opened {
            Err(Error::Io { path, .. }) if Some(path) == file_of(&disk).as_ref() => {
                refused += 1;
                assert!(contents(&disk) == before, "a refused opening has written");
            }
            _ => {}
        }
        drop(opened);
        let db = open(&disk).unwrap();
        let table = db.table("damaged").unwrap();
        assert_eq!(rows(&db, &table), ROWS, "read {read} failed");
        if unhurt {
            break;
        }
    }
    assert_eq!(refused, 1, "openings refused for the file");
}

#[test]
fn a_void_file_that_memory_can_not_hold_costs_no_rows() {
    let disk = with_void_file();
    let refused = open_on(Arc::new(Bad {
        os: disk.clone(),
        forgets: false,
        is_endless: true,
    }));
    let error = refused.expect_err("an error").to_string();
    let file = file_of(&disk).unwrap();
    assert!(error.contains(file.to_str().unwrap()), "{error}");
    let db = open(&disk).unwrap();
    assert_eq!(rows(&db, &db.table("damaged").unwrap()), ROWS);
}

#[test]
fn a_file_that_can_not_be_understood_is_kept_and_its_table_quarantined_anew() {
    let disk = with_void_file();
    let file = file_of(&disk).unwrap();
    let kept = |number: u32| PathBuf::from(format!("{}.damaged-{number}", file.display()));
    disk.damage(&file, |bytes| bytes[30] ^= 1);
    let first = bytes_of(&disk, &file);
    disk.record();
    let db = open(&disk).unwrap();
    let moments = disk.recorded();
    let error = db.table("damaged").expect_err("a quarantined table");
    assert!(error.to_string().contains("damaged-0"), "{error}");
    db.close().unwrap();
    assert_eq!(renewed(&dumped(&disk, "damaged")), ROWS);
    assert!(bytes_of(&disk, &kept(0)) == first);

    // The file must exist at every moment: without it, the table would count as sound.
    for (n, moment) in moments.iter().enumerate() {
        for loss in [Loss::Nothing, Loss::Everything] {
            let killed = moment.crash(loss, 0);
            let again = open(&killed).unwrap();
            assert!(again.table("damaged").is_err(), "{loss:?} at moment {n}");
            again.close().unwrap();
            let rows = dumped(&killed, "damaged");
            assert_eq!(renewed(&rows), ROWS, "{loss:?} at moment {n}");
            assert!(bytes_of(&killed, &kept(0)) == first);
            assert!(!killed.exists(&kept(1)).unwrap());
        }
    }

    // A file that was kept before is not overwritten.
    let other = quarantining(&killed(4));
    let other = other.last().unwrap().crash(Loss::Nothing, 0);
    let foreign = bytes_of(&other, &file_of(&other).unwrap());
    for (number, bytes) in [(1, Vec::new()), (2, foreign)] {
        disk.damage(&file, |damaged| damaged.clone_from(&bytes));
        let db = open(&disk).unwrap();
        assert!(db.table("damaged").is_err());
        db.close().unwrap();
        assert!(bytes_of(&disk, &kept(0)) == first && bytes_of(&disk, &kept(number)) == bytes);
        let dump = Dump::open_on(Arc::new(disk.clone()), "/db").unwrap();
        let mut missing = dump.missing().iter().map(|missing| &missing.what);
        assert!(missing.any(|what| what == "earlier changes of table damaged"));
    }

    let db = open(&disk).unwrap();
    db.truncate_table("damaged").unwrap();
    db.close().unwrap();
    let db = open(&disk).unwrap();
    assert!(db.table("damaged").is_ok() && file_of(&disk).is_none());
    assert!(disk.exists(&kept(0)).unwrap());
}

#[test]
fn a_file_that_can_not_be_read_once_costs_no_prepared_change() {
    let os = SimulatedOs::new(3);
    let db = to_be_recovered(&os, 0..ROWS);
    prepare(&db, "damaged");
    let moments = quarantining(&os.crash_with(Loss::Nothing, 0));
    // The log no longer has the change.
    let quarantined = moments.last().unwrap();
    for read in 0.. {
        let disk = quarantined.crash(Loss::Nothing, 0);
        disk.fail_once(FaultOn::Read, read, ErrorKind::Other);
        let opened = open(&disk);
        let unhurt = disk.struck() == 0;
        disk.heal();
        let db = opened.or_else(|_| open(&disk)).unwrap();
        assert!(db.table("damaged").is_err(), "read {read} failed");
        db.commit_prepared(&xid()).unwrap();
        db.close().unwrap();
        let rows = dumped(&disk, "damaged");
        assert!(rows[&0] == b"prepared", "read {read} failed");
        assert_eq!(renewed(&rows), ROWS - 1, "read {read} failed");
        if unhurt {
            break;
        }
    }
}

/// A faulty disk.
#[derive(Debug)]
struct Bad {
    os: SimulatedOs,
    /// Reads of the data file return wrong bytes for all places written since the start of this object.
    forgets: bool,
    /// Files of quarantined tables claim more bytes than any memory has.
    is_endless: bool,
}

#[derive(Debug)]
struct BadFile {
    file: Arc<dyn File>,
    is_endless: bool,
    written: Mutex<BTreeSet<(u64, u64)>>,
}

impl Os for Bad {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn File>> {
        let file = self.os.open(path, mode)?;
        let is_endless = self.is_endless && path.starts_with(ASIDE);
        let forgets = self.forgets && path == Path::new("/db/data");
        match is_endless || forgets {
            false => Ok(file),
            true => Ok(Arc::new(BadFile {
                file,
                is_endless,
                written: Mutex::default(),
            })),
        }
    }
    fn exists(&self, path: &Path) -> Result<bool> {
        self.os.exists(path)
    }
    fn list(&self, dir: &Path) -> Result<Vec<String>> {
        self.os.list(dir)
    }
    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.os.rename(from, to)
    }
    fn remove(&self, path: &Path) -> Result<()> {
        self.os.remove(path)
    }
    fn create_dir(&self, path: &Path) -> Result<()> {
        self.os.create_dir(path)
    }
    fn sync_dir(&self, path: &Path) -> Result<()> {
        self.os.sync_dir(path)
    }
    fn lock_dir(&self, dir: &Path, mode: LockMode) -> Result<Box<dyn DirLock>> {
        self.os.lock_dir(dir, mode)
    }
    fn now(&self) -> Duration {
        self.os.now()
    }
    fn random(&self) -> u64 {
        self.os.random()
    }
}

impl File for BadFile {
    fn path(&self) -> &Path {
        self.file.path()
    }
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        let read = self.file.read_at(buf, offset)?;
        for &(begin, end) in self.written.lock().unwrap().iter() {
            let (begin, end) = (begin.max(offset), end.min(offset + read as u64));
            if begin < end {
                buf[((begin + end) / 2 - offset) as usize] ^= 0x5a;
            }
        }
        Ok(read)
    }
    fn write_at(&self, data: &[u8], offset: u64) -> Result<()> {
        // An opening reads the headers again, so they stay correct.
        if offset >= 8 * 1024 {
            let end = offset + data.len() as u64;
            self.written.lock().unwrap().insert((offset, end));
        }
        self.file.write_at(data, offset)
    }
    fn sync_data(&self) -> Result<()> {
        self.file.sync_data()
    }
    fn len(&self) -> Result<u64> {
        match self.is_endless {
            false => self.file.len(),
            true => Ok(u64::MAX),
        }
    }
    fn set_len(&self, len: u64) -> Result<()> {
        self.file.set_len(len)
    }
    fn allocate(&self, offset: u64, len: u64) -> Result<()> {
        self.file.allocate(offset, len)
    }
}

/// The log has all of a table's trees; an opening has quarantined the table, and did not reach its checkpoint.
fn quarantined_when_young(truncated: bool) {
    // More rows than memory holds, so that recovery reads pages that it has written.
    let most = 3 * 8 * ROWS;
    let os = SimulatedOs::new(3);
    let db = open(&os).unwrap();
    create(&db, "kept");
    fill(&db, "kept", ROWS);
    if truncated {
        create(&db, "young");
        fill(&db, "young", ROWS);
    }
    db.checkpoint().unwrap();
    match truncated {
        true => db.truncate_table("young").unwrap(),
        false => create(&db, "young"),
    }
    fill(&db, "young", most);
    renew(&db, "young", 0..most);
    prepare(&db, "young");
    let disk = os.crash_with(Loss::Nothing, 0);
    disk.record();
    let opened = open_on(Arc::new(Bad {
        os: disk.clone(),
        forgets: true,
        is_endless: false,
    }));
    let moments = disk.recorded();
    drop(opened);

    let named = |event: &Event| matches!(event, Event::Name(_) | Event::Sync(_));
    let mut quarantined = 0;
    for (n, moment) in moments
        .iter()
        .enumerate()
        .filter(|(_, moment)| named(&moment.event))
    {
        let killed = moment.crash(Loss::Nothing, 0);
        let has_file = file_of(&killed).is_some();
        let db = open(&killed).unwrap();
        assert_eq!(db.table("young").is_err(), has_file, "moment {n}");
        quarantined += u32::from(has_file);
        if quarantined == 1 {
            drop(db);
            rows_come_from_the_log(&moment.crash(Loss::Nothing, 0), truncated, most);
            continue;
        }
        db.commit_prepared(&xid()).unwrap();
        db.close().unwrap();
        let rows = dumped(&killed, "young");
        assert!(rows[&0] == b"prepared", "moment {n}");
        assert_eq!(renewed(&rows), most - 1, "moment {n}");
    }
    assert!(quarantined > 0, "no table was quarantined");
}

/// The same when the file of that opening is unreadable, unless the table was truncated: then the file is void.
fn rows_come_from_the_log(disk: &SimulatedOs, truncated: bool, most: u32) {
    disk.damage(&file_of(disk).unwrap(), |bytes| bytes[30] ^= 1);
    let db = open(disk).unwrap();
    assert_eq!(db.table("young").is_ok(), truncated);
    let kept = disk.list(Path::new(ASIDE)).unwrap();
    assert!(
        kept.iter().any(|name| name.contains(".damaged-")),
        "{kept:?}"
    );
    db.close().unwrap();
    assert_eq!(renewed(&dumped(disk, "young")), most);
}

#[test]
fn a_table_that_the_log_makes_stays_quarantined() {
    quarantined_when_young(false);
}

/// The checkpoint's catalog has the old trees, of which the file says nothing.
#[test]
fn a_table_that_the_log_truncates_stays_quarantined() {
    quarantined_when_young(true);
}
