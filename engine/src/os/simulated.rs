//! A disk in memory that can lose, tear and refuse writes, for tests.
//!
//! Each file has its live bytes, which the process sees, and its durable bytes, which a crash
//! leaves. [`SimulatedOs::crash`] makes the disk that a machine would find after losing power: of
//! the writes since the last sync each 512-byte sector may or may not have reached the device;
//! of the directory changes since the last directory sync all or none have.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::{DirLock, File, LockMode, OpenMode, Os};
use crate::error::{Error, Result};

/// What a device writes whole or not at all.
const SECTOR: usize = 512;

/// The operations that an injected fault hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultOn {
    /// Writes, reservations and length changes.
    Write,
    /// File and directory syncs.
    Sync,
    /// Reads.
    Read,
    /// Any of them.
    Any,
}

/// An operating system whose disk is in memory. Clones share it.
#[derive(Clone, Debug)]
pub struct SimulatedOs {
    disk: Arc<Mutex<Disk>>,
    gate: Arc<Gate>,
    origin: Instant,
}

/// Where syncs wait while they are paused.
#[derive(Debug, Default)]
struct Gate {
    paused: Mutex<bool>,
    resumed: Condvar,
}

impl Gate {
    fn pass(&self) {
        let mut paused = self.paused.lock();
        while *paused {
            self.resumed.wait(&mut paused);
        }
    }
}

#[derive(Debug, Default)]
struct Disk {
    /// Names as the process sees them.
    live: BTreeMap<PathBuf, Arc<Mutex<Content>>>,
    /// Names as a crash leaves them.
    durable: BTreeMap<PathBuf, Arc<Mutex<Content>>>,
    dirs: BTreeSet<PathBuf>,
    locked: BTreeMap<PathBuf, (LockMode, usize)>,
    /// Bytes that all files together may have.
    capacity: Option<u64>,
    used: u64,
    fault: Option<Fault>,
    random: u64,
    syncs: u64,
}

#[derive(Debug)]
struct Fault {
    on: FaultOn,
    after: u64,
    kind: io::ErrorKind,
}

#[derive(Debug, Default)]
struct Content {
    live: Vec<u8>,
    durable: Vec<u8>,
    unsynced: Vec<Change>,
}

#[derive(Debug)]
enum Change {
    Write { offset: usize, data: Vec<u8> },
    Length(usize),
}

impl Change {
    fn apply(&self, to: &mut Vec<u8>) {
        match self {
            Change::Write { offset, data } => {
                if to.len() < offset + data.len() {
                    to.resize(offset + data.len(), 0);
                }
                to[*offset..offset + data.len()].copy_from_slice(data);
            }
            Change::Length(len) => to.resize(*len, 0),
        }
    }

    /// Applies what a crash lets through.
    fn apply_torn(&self, to: &mut Vec<u8>, random: &mut u64) {
        match (next(random) % 4, self) {
            (0, _) => {}
            (1, _) | (_, Change::Length(_)) => self.apply(to),
            (_, Change::Write { offset, data }) => {
                let mut at = 0;
                while at < data.len() {
                    let sector_end = (offset + at) / SECTOR * SECTOR + SECTOR - offset;
                    let end = sector_end.min(data.len());
                    if next(random) % 2 == 0 {
                        let sector = Change::Write {
                            offset: offset + at,
                            data: data[at..end].to_vec(),
                        };
                        sector.apply(to);
                    }
                    at = end;
                }
            }
        }
    }
}

/// SplitMix64 (Steele, Lea, Flood, 2014).
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

impl SimulatedOs {
    /// An empty disk. `seed` decides what [`Os::random`] gives.
    pub fn new(seed: u64) -> Self {
        SimulatedOs {
            disk: Arc::new(Mutex::new(Disk {
                random: seed,
                ..Disk::default()
            })),
            gate: Arc::default(),
            origin: Instant::now(),
        }
    }

    /// The disk that is found after losing power now; `seed` decides which of the writes since
    /// the last syncs survived. The original goes on unchanged.
    pub fn crash(&self, seed: u64) -> SimulatedOs {
        let disk = self.disk.lock();
        let mut random = seed;
        let mut names: BTreeMap<PathBuf, Arc<Mutex<Content>>> = BTreeMap::new();
        let mut dirs: BTreeMap<PathBuf, bool> = BTreeMap::new();
        let all = disk.live.keys().chain(disk.durable.keys());
        for path in all.collect::<BTreeSet<_>>() {
            let dir = path.parent().unwrap_or(Path::new("")).to_owned();
            let as_live = *dirs
                .entry(dir)
                .or_insert_with(|| next(&mut random) % 2 == 0);
            let found = if as_live {
                disk.live.get(path)
            } else {
                disk.durable.get(path)
            };
            let Some(content) = found else { continue };
            let content = content.lock();
            let mut bytes = content.durable.clone();
            for change in &content.unsynced {
                change.apply_torn(&mut bytes, &mut random);
            }
            let content = Content {
                live: bytes.clone(),
                durable: bytes,
                unsynced: Vec::new(),
            };
            names.insert(path.clone(), Arc::new(Mutex::new(content)));
        }
        let used = names.values().map(|c| c.lock().live.len() as u64).sum();
        SimulatedOs {
            disk: Arc::new(Mutex::new(Disk {
                live: names.clone(),
                durable: names,
                dirs: disk.dirs.clone(),
                capacity: disk.capacity,
                used,
                random,
                ..Disk::default()
            })),
            gate: Arc::default(),
            origin: Instant::now(),
        }
    }

    /// Lets the operation number `after` (from 0) of those that `on` names fail, and all later
    /// ones, until [`SimulatedOs::heal`].
    pub fn fail(&self, on: FaultOn, after: u64, kind: io::ErrorKind) {
        self.disk.lock().fault = Some(Fault { on, after, kind });
    }

    /// Ends [`SimulatedOs::fail`].
    pub fn heal(&self) {
        self.disk.lock().fault = None;
    }

    /// Limits the bytes of all files together; beyond it is "no space".
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.disk.lock().capacity = bytes;
    }

    /// Bytes of all files together.
    pub fn used(&self) -> u64 {
        self.disk.lock().used
    }

    /// Syncs of files and directories since the start.
    pub fn syncs(&self) -> u64 {
        self.disk.lock().syncs
    }

    /// Lets file syncs wait, until called with `false`.
    pub fn pause_syncs(&self, paused: bool) {
        *self.gate.paused.lock() = paused;
        self.gate.resumed.notify_all();
    }

    /// Changes bytes of a file as a failing device does, durable and live.
    pub fn damage(&self, path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
        if let Some(content) = self.disk.lock().live.get(path) {
            let mut content = content.lock();
            change(&mut content.live);
            content.durable = content.live.clone();
            content.unsynced.clear();
        }
    }
}

impl Disk {
    fn strike(&mut self, on: FaultOn, action: &'static str, path: &Path) -> Result<()> {
        if on == FaultOn::Sync {
            self.syncs += 1;
        }
        let Some(fault) = &mut self.fault else {
            return Ok(());
        };
        if fault.on != on && fault.on != FaultOn::Any {
            return Ok(());
        }
        if fault.after > 0 {
            fault.after -= 1;
            return Ok(());
        }
        Err(Error::io(action, path, io::Error::from(fault.kind)))
    }
}

#[derive(Debug)]
struct SimulatedFile {
    path: PathBuf,
    content: Arc<Mutex<Content>>,
    disk: Arc<Mutex<Disk>>,
    gate: Arc<Gate>,
    writable: bool,
}

impl SimulatedFile {
    fn change(&self, action: &'static str, change: Change, grows_to: u64) -> Result<()> {
        let mut disk = self.disk.lock();
        disk.strike(FaultOn::Write, action, &self.path)?;
        if !self.writable {
            let denied = io::Error::from(io::ErrorKind::PermissionDenied);
            return Err(Error::io(action, &self.path, denied));
        }
        let mut content = self.content.lock();
        let before = content.live.len() as u64;
        let used = disk.used + grows_to.saturating_sub(before);
        if used > disk.used && disk.capacity.is_some_and(|capacity| used > capacity) {
            let full = io::Error::from(io::ErrorKind::StorageFull);
            return Err(Error::io(action, &self.path, full));
        }
        change.apply(&mut content.live);
        content.unsynced.push(change);
        disk.used = disk.used - before + content.live.len() as u64;
        Ok(())
    }
}

impl File for SimulatedFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        self.disk.lock().strike(FaultOn::Read, "read", &self.path)?;
        let content = self.content.lock();
        let start = (offset as usize).min(content.live.len());
        let n = buf.len().min(content.live.len() - start);
        buf[..n].copy_from_slice(&content.live[start..start + n]);
        Ok(n)
    }

    fn write_at(&self, data: &[u8], offset: u64) -> Result<()> {
        let change = Change::Write {
            offset: offset as usize,
            data: data.to_vec(),
        };
        self.change("write", change, offset + data.len() as u64)
    }

    fn sync_data(&self) -> Result<()> {
        self.gate.pass();
        self.disk.lock().strike(FaultOn::Sync, "sync", &self.path)?;
        let content = &mut *self.content.lock();
        for change in content.unsynced.drain(..) {
            change.apply(&mut content.durable);
        }
        Ok(())
    }

    fn len(&self) -> Result<u64> {
        Ok(self.content.lock().live.len() as u64)
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.change("set the length of", Change::Length(len as usize), len)
    }

    fn allocate(&self, offset: u64, len: u64) -> Result<()> {
        let end = (offset + len).max(self.len()?);
        self.change("reserve space in", Change::Length(end as usize), end)
    }
}

#[derive(Debug)]
struct SimulatedLock {
    dir: PathBuf,
    disk: Arc<Mutex<Disk>>,
}

impl DirLock for SimulatedLock {}

impl Drop for SimulatedLock {
    fn drop(&mut self) {
        let mut disk = self.disk.lock();
        if let Some((_, holders)) = disk.locked.get_mut(&self.dir) {
            *holders -= 1;
            if *holders == 0 {
                disk.locked.remove(&self.dir);
            }
        }
    }
}

impl Os for SimulatedOs {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn File>> {
        let mut disk = self.disk.lock();
        let failed = |kind| Err(Error::io("open", path, io::Error::from(kind)));
        let content = match (mode, disk.live.get(path)) {
            (OpenMode::CreateNew, Some(_)) => return failed(io::ErrorKind::AlreadyExists),
            (OpenMode::CreateNew, None) => {
                disk.strike(FaultOn::Write, "create", path)?;
                let dir = path.parent().unwrap_or(Path::new(""));
                if !disk.dirs.contains(dir) {
                    return failed(io::ErrorKind::NotFound);
                }
                let content = Arc::default();
                disk.live.insert(path.to_owned(), Arc::clone(&content));
                content
            }
            (_, None) => return failed(io::ErrorKind::NotFound),
            (_, Some(content)) => Arc::clone(content),
        };
        Ok(Arc::new(SimulatedFile {
            path: path.to_owned(),
            content,
            disk: Arc::clone(&self.disk),
            gate: Arc::clone(&self.gate),
            writable: mode != OpenMode::ReadOnly,
        }))
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        let disk = self.disk.lock();
        Ok(disk.live.contains_key(path) || disk.dirs.contains(path))
    }

    fn list(&self, dir: &Path) -> Result<Vec<String>> {
        let disk = self.disk.lock();
        let names = disk.live.keys().filter(|path| path.parent() == Some(dir));
        Ok(names
            .filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()))
            .collect())
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        let mut disk = self.disk.lock();
        disk.strike(FaultOn::Write, "rename", from)?;
        let Some(content) = disk.live.remove(from) else {
            let missing = io::Error::from(io::ErrorKind::NotFound);
            return Err(Error::io("rename", from, missing));
        };
        if let Some(replaced) = disk.live.insert(to.to_owned(), content) {
            disk.used -= replaced.lock().live.len() as u64;
        }
        Ok(())
    }

    fn remove(&self, path: &Path) -> Result<()> {
        let mut disk = self.disk.lock();
        disk.strike(FaultOn::Write, "remove", path)?;
        match disk.live.remove(path) {
            Some(content) => {
                disk.used -= content.lock().live.len() as u64;
                Ok(())
            }
            None => {
                let missing = io::Error::from(io::ErrorKind::NotFound);
                Err(Error::io("remove", path, missing))
            }
        }
    }

    fn create_dir(&self, path: &Path) -> Result<()> {
        self.disk.lock().dirs.insert(path.to_owned());
        Ok(())
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        let disk = &mut *self.disk.lock();
        disk.strike(FaultOn::Sync, "sync directory", path)?;
        disk.durable.retain(|name, _| name.parent() != Some(path));
        for (name, content) in &disk.live {
            if name.parent() == Some(path) {
                disk.durable.insert(name.clone(), Arc::clone(content));
            }
        }
        Ok(())
    }

    fn lock_dir(&self, dir: &Path, mode: LockMode) -> Result<Box<dyn DirLock>> {
        let mut disk = self.disk.lock();
        let held = disk.locked.entry(dir.to_owned()).or_insert((mode, 0));
        if held.1 > 0 && (held.0 == LockMode::Exclusive || mode == LockMode::Exclusive) {
            return Err(Error::InUse(dir.to_owned()));
        }
        *held = (mode, held.1 + 1);
        Ok(Box::new(SimulatedLock {
            dir: dir.to_owned(),
            disk: Arc::clone(&self.disk),
        }))
    }

    fn now(&self) -> Duration {
        self.origin.elapsed()
    }

    fn random(&self) -> u64 {
        next(&mut self.disk.lock().random)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crash_keeps_what_was_synced_and_only_sectors_of_the_rest() {
        let dir = Path::new("/db");
        let mut outcomes = BTreeSet::new();
        let os = SimulatedOs::new(1);
        os.create_dir(dir).unwrap();
        let file = os.open(&dir.join("a"), OpenMode::CreateNew).unwrap();
        file.write_at(&[1; 2048], 0).unwrap();
        file.sync_data().unwrap();
        os.sync_dir(dir).unwrap();
        file.write_at(&[2; 1024], 512).unwrap();
        for seed in 0..64 {
            let after = os.crash(seed);
            let file = after.open(&dir.join("a"), OpenMode::ReadWrite).unwrap();
            let mut bytes = vec![0; 2048];
            file.read_exact_at(&mut bytes, 0).unwrap();
            for sector in bytes.chunks(SECTOR) {
                assert!(sector.iter().all(|byte| byte == &sector[0]));
            }
            assert_eq!((bytes[0], bytes[1536]), (1, 1));
            outcomes.insert((bytes[512], bytes[1024]));
        }
        assert_eq!(outcomes.len(), 4, "each sector is lost or kept");
    }

    #[test]
    fn names_are_durable_after_the_directory_is_synced() {
        let dir = Path::new("/db");
        let os = SimulatedOs::new(1);
        os.create_dir(dir).unwrap();
        let _ = os.open(&dir.join("a"), OpenMode::CreateNew).unwrap();
        let lost = |os: &SimulatedOs| {
            (0..64)
                .filter(|&seed| os.crash(seed).list(dir).unwrap().is_empty())
                .count()
        };
        assert!(lost(&os) > 0);
        os.sync_dir(dir).unwrap();
        assert_eq!(lost(&os), 0);
    }

    #[test]
    fn faults_and_a_full_disk_are_errors() {
        let dir = Path::new("/db");
        let os = SimulatedOs::new(1);
        os.create_dir(dir).unwrap();
        let file = os.open(&dir.join("a"), OpenMode::CreateNew).unwrap();
        os.set_capacity(Some(1000));
        file.write_at(&[1; 900], 0).unwrap();
        let full = file.write_at(&[1; 900], 500);
        assert!(matches!(full, Err(Error::NoSpace { .. })));
        os.set_capacity(None);
        os.fail(FaultOn::Sync, 1, io::ErrorKind::Other);
        file.sync_data().unwrap();
        assert!(file.sync_data().is_err());
        os.heal();
        file.sync_data().unwrap();
        assert_eq!(os.used(), 900);
    }
}
