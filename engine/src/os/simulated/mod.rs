//! A disk in memory for tests; it can lose, tear, reorder and refuse writes.
//!
//! Each file has its live bytes, which the process sees, and its durable bytes, which survive a crash for certain;
//! directories likewise. A crash ([`SimulatedOs::crash`], [`Moment::crash`]) makes the disk that a machine would find
//! afterwards.
//!
//! | file | holds |
//! |---|---|
//! | `disk.rs`, `content.rs`, `names.rs` | files and names, live, durable, and the changes between |
//! | `loss.rs` | what a crash loses |
//! | `fault.rs` | calls that fail |
//! | `damage.rs` | damage by a device to bytes that it has confirmed |
//! | `recording.rs` | the disk at every moment of a run |
//!
//! Seeds alone decide what happens: the same calls give the same disk.

mod content;
mod damage;
mod disk;
mod fault;
mod loss;
mod names;
mod recording;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use self::content::Change;
use self::disk::Disk;
use self::fault::Fault;
pub use self::fault::{Call, FaultOn};
pub use self::loss::Loss;
use self::names::{FileId, NameChange};
pub use self::recording::{Event, Moment};
use super::{DirLock, File, LockMode, OpenMode, Os};
use crate::error::{Error, Result};
use crate::random;
use crate::sync::{pause, Condvar, Mutex, Pause};

/// An operating system whose disk is in memory. Clones share it.
#[derive(Clone, Debug)]
pub struct SimulatedOs {
    machine: Arc<Mutex<Machine>>,
    gate: Arc<Gate>,
    origin: Instant,
}

/// Where syncs wait while a test pauses them.
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

/// The time that a call takes, before its effect and after: a thread of a schedule may pause there. To be begun before
/// the machine is locked.
struct CallTime;

impl CallTime {
    fn begin() -> CallTime {
        pause(Pause::Call);
        CallTime
    }
}

impl Drop for CallTime {
    fn drop(&mut self) {
        pause(Pause::Call);
    }
}

/// The disk, and the state around it while it is in use.
#[derive(Debug, Default)]
struct Machine {
    disk: Disk,
    locked: BTreeMap<PathBuf, (LockMode, usize)>,
    /// Limit for the bytes of all files together.
    capacity: Option<u64>,
    /// Bytes whose reads fail, as in a bad sector.
    unreadable: Vec<(PathBuf, u64)>,
    used: u64,
    fault: Option<Fault>,
    /// Calls that a fault has made fail.
    struck: u64,
    random: u64,
    syncs: u64,
    /// Calls so far that could have failed, by kind.
    calls: [u64; Call::ALL.len()],
    growths: u64,
    note: u64,
    recording: Option<Vec<Moment>>,
}

impl SimulatedOs {
    /// An empty disk; `seed` decides the numbers of [`Os::random`].
    pub fn new(seed: u64) -> Self {
        SimulatedOs::of(Machine {
            random: seed,
            ..Machine::default()
        })
    }

    /// The disk as found after losing power now; the original goes on unchanged. `seed` decides which of the writes
    /// since the last syncs survive, whole or in sectors of 512 bytes.
    pub fn crash(&self, seed: u64) -> SimulatedOs {
        self.crash_with(Loss::TornSectors, seed)
    }

    /// Like [`SimulatedOs::crash`], with another kind of loss.
    pub fn crash_with(&self, loss: Loss, seed: u64) -> SimulatedOs {
        let capacity = self.machine.lock().capacity;
        let moment = self.machine.lock().moment(Event::Note);
        let after = moment.crash(loss, seed);
        after.set_capacity(capacity);
        after
    }

    /// Makes operation number `after` (from 0) of those in `on` fail, and all later ones, until [`SimulatedOs::heal`].
    /// A write that fails may write some of its bytes. A sync that fails loses some of the bytes that it was to make
    /// durable for good.
    pub fn fail(&self, on: FaultOn, after: u64, kind: io::ErrorKind) {
        self.plan(Fault {
            on,
            after,
            once: false,
            once_in: 1,
            kind,
        });
    }

    /// Like [`SimulatedOs::fail`], but only that one operation fails.
    pub fn fail_once(&self, on: FaultOn, after: u64, kind: io::ErrorKind) {
        self.plan(Fault {
            on,
            after,
            once: true,
            once_in: 1,
            kind,
        });
    }

    /// Like [`SimulatedOs::fail`], but one in `once_in` of these operations fails, by chance.
    pub fn fail_now_and_then(&self, on: FaultOn, once_in: u64, kind: io::ErrorKind) {
        self.plan(Fault {
            on,
            after: 0,
            once: false,
            once_in,
            kind,
        });
    }

    fn plan(&self, fault: Fault) {
        let mut machine = self.machine.lock();
        machine.struck = 0;
        machine.fault = Some(fault);
    }

    /// Ends [`SimulatedOs::fail`].
    pub fn heal(&self) {
        self.machine.lock().fault = None;
    }

    /// The number of calls that have failed since a fault was last planned.
    pub fn struck(&self) -> u64 {
        self.machine.lock().struck
    }

    /// The number of calls of a kind so far.
    pub fn calls(&self, call: Call) -> u64 {
        self.machine.lock().calls[call as usize]
    }

    /// The number of calls so far that a full disk would have refused.
    pub fn growths(&self) -> u64 {
        self.machine.lock().growths
    }

    /// Limits the bytes of all files together; a call beyond the limit fails with "no space".
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.machine.lock().capacity = bytes;
    }

    /// Bytes of all files together.
    pub fn used(&self) -> u64 {
        self.machine.lock().used
    }

    /// Syncs of files and directories so far.
    pub fn syncs(&self) -> u64 {
        self.machine.lock().syncs
    }

    /// Makes file syncs wait, until called with `false`.
    pub fn pause_syncs(&self, paused: bool) {
        *self.gate.paused.lock() = paused;
        self.gate.resumed.notify_all();
    }
}

impl Machine {
    /// Counts a call, and fails it if the planned fault says so.
    fn strike(&mut self, call: Call, grows: bool, action: &'static str, path: &Path) -> Result<()> {
        self.calls[call as usize] += 1;
        self.growths += u64::from(grows);
        if call == Call::Sync {
            self.syncs += 1;
        }
        let Some(fault) = &mut self.fault else {
            return Ok(());
        };
        if !fault.strikes(call, grows, &mut self.random) {
            return Ok(());
        }
        self.struck += 1;
        let error = Error::io(action, path, io::Error::from(fault.kind));
        if fault.once {
            self.fault = None;
        }
        Err(error)
    }

    fn moment(&self, event: Event) -> Moment {
        Moment::new(event, self.note, &self.disk, self.random)
    }

    fn happened(&mut self, event: impl FnOnce() -> Event) {
        if let Some(mut moments) = self.recording.take() {
            moments.push(self.moment(event()));
            self.recording = Some(moments);
        }
    }

    fn change_name(&mut self, change: NameChange, event: &Path) {
        self.disk.change_name(change);
        self.happened(|| Event::Name(event.to_owned()));
    }
}

#[derive(Debug)]
struct SimulatedFile {
    path: PathBuf,
    file: FileId,
    machine: Arc<Mutex<Machine>>,
    gate: Arc<Gate>,
    writable: bool,
}

impl SimulatedFile {
    fn change(
        &self,
        call: Call,
        action: &'static str,
        change: Change,
        grows_to: u64,
    ) -> Result<()> {
        let _time = CallTime::begin();
        let machine = &mut *self.machine.lock();
        let before = machine.disk.len(self.file);
        if let Err(error) = machine.strike(call, grows_to > before, action, &self.path) {
            if let Change::Write { offset, data } = change {
                // On a full disk, nothing is written beyond the file's end.
                let most = match &error {
                    Error::NoSpace { .. } => {
                        data.len().min((before as usize).saturating_sub(offset))
                    }
                    _ => data.len(),
                };
                let n = fault::written_in_vain(most, &mut machine.random);
                let data = data[..n].into();
                machine
                    .disk
                    .change(self.file, Change::Write { offset, data });
                machine.used = (machine.used + machine.disk.len(self.file)).saturating_sub(before);
            }
            return Err(error);
        }
        if !self.writable {
            let denied = io::Error::from(io::ErrorKind::PermissionDenied);
            return Err(Error::io(action, &self.path, denied));
        }
        let used = machine.used + grows_to.saturating_sub(before);
        if used > machine.used && machine.capacity.is_some_and(|capacity| used > capacity) {
            let full = io::Error::from(io::ErrorKind::StorageFull);
            return Err(Error::io(action, &self.path, full));
        }
        let event = match &change {
            Change::Write { offset, data } => (*offset as u64, Some(data.len() as u64)),
            Change::Length(len) => (*len as u64, None),
        };
        machine.disk.change(self.file, change);
        machine.used = (machine.used + machine.disk.len(self.file)).saturating_sub(before);
        machine.happened(|| match event {
            (offset, Some(len)) => Event::Write(self.path.clone(), offset, len),
            (len, None) => Event::Length(self.path.clone(), len),
        });
        Ok(())
    }
}

impl File for SimulatedFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        let _time = CallTime::begin();
        let mut machine = self.machine.lock();
        machine.strike(Call::Read, false, "read", &self.path)?;
        let read = offset..offset + buf.len() as u64;
        let is_bad = |(path, at): &(PathBuf, u64)| *path == self.path && read.contains(at);
        if machine.unreadable.iter().any(is_bad) {
            let source = io::Error::from(io::ErrorKind::Other);
            return Err(Error::io("read", &self.path, source));
        }
        let content = machine.disk.content(self.file);
        Ok(content.map_or(0, |content| content.live.read(offset as usize, buf)))
    }

    fn write_at(&self, data: &[u8], offset: u64) -> Result<()> {
        let change = Change::Write {
            offset: offset as usize,
            data: data.into(),
        };
        self.change(Call::Write, "write", change, offset + data.len() as u64)
    }

    fn sync_data(&self) -> Result<()> {
        let _time = CallTime::begin();
        self.gate.pass();
        let machine = &mut *self.machine.lock();
        if let Err(error) = machine.strike(Call::Sync, false, "sync", &self.path) {
            let content = machine.disk.content_mut(self.file);
            content.fail_sync(&mut machine.random);
            return Err(error);
        }
        machine.disk.content_mut(self.file).sync();
        machine.happened(|| Event::Sync(self.path.clone()));
        Ok(())
    }

    fn len(&self) -> Result<u64> {
        Ok(self.machine.lock().disk.len(self.file))
    }

    fn set_len(&self, len: u64) -> Result<()> {
        let change = Change::Length(len as usize);
        self.change(Call::Truncate, "set the length of", change, len)
    }

    fn allocate(&self, offset: u64, len: u64) -> Result<()> {
        let end = (offset + len).max(self.len()?);
        let change = Change::Length(end as usize);
        self.change(Call::Allocate, "reserve space in", change, end)
    }
}

#[derive(Debug)]
struct SimulatedLock {
    dir: PathBuf,
    machine: Arc<Mutex<Machine>>,
}

impl DirLock for SimulatedLock {}

impl Drop for SimulatedLock {
    fn drop(&mut self) {
        let mut machine = self.machine.lock();
        if let Some((_, holders)) = machine.locked.get_mut(&self.dir) {
            *holders -= 1;
            if *holders == 0 {
                machine.locked.remove(&self.dir);
            }
        }
    }
}

impl Os for SimulatedOs {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn File>> {
        let machine = &mut *self.machine.lock();
        let failed = |kind| Err(Error::io("open", path, io::Error::from(kind)));
        let file = match (mode, machine.disk.file(path)) {
            (OpenMode::CreateNew, Some(_)) => return failed(io::ErrorKind::AlreadyExists),
            (OpenMode::CreateNew, None) => {
                machine.strike(Call::Name, true, "create", path)?;
                let dir = path.parent().unwrap_or(Path::new(""));
                if !machine.disk.live.dirs.contains(dir) {
                    return failed(io::ErrorKind::NotFound);
                }
                let file = machine.disk.create(path.to_owned());
                machine.happened(|| Event::Name(path.to_owned()));
                file
            }
            (_, None) => return failed(io::ErrorKind::NotFound),
            (_, Some(file)) => file,
        };
        Ok(Arc::new(SimulatedFile {
            path: path.to_owned(),
            file,
            machine: Arc::clone(&self.machine),
            gate: Arc::clone(&self.gate),
            writable: mode != OpenMode::ReadOnly,
        }))
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        let names = &self.machine.lock().disk.live;
        Ok(names.files.contains_key(path) || names.dirs.contains(path))
    }

    fn list(&self, dir: &Path) -> Result<Vec<String>> {
        let names = &self.machine.lock().disk.live;
        let inside = names.files.keys().filter(|path| path.parent() == Some(dir));
        Ok(inside
            .filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()))
            .collect())
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        let _time = CallTime::begin();
        let mut machine = self.machine.lock();
        machine.strike(Call::Name, false, "rename", from)?;
        let Some(file) = machine.disk.file(from) else {
            let missing = io::Error::from(io::ErrorKind::NotFound);
            return Err(Error::io("rename", from, missing));
        };
        if let Some(replaced) = machine.disk.file(to).filter(|&replaced| replaced != file) {
            machine.used = machine.used.saturating_sub(machine.disk.len(replaced));
        }
        machine.change_name(NameChange::Rename(from.to_owned(), to.to_owned()), from);
        Ok(())
    }

    fn remove(&self, path: &Path) -> Result<()> {
        let _time = CallTime::begin();
        let mut machine = self.machine.lock();
        machine.strike(Call::Name, false, "remove", path)?;
        let Some(file) = machine.disk.file(path) else {
            let missing = io::Error::from(io::ErrorKind::NotFound);
            return Err(Error::io("remove", path, missing));
        };
        machine.used = machine.used.saturating_sub(machine.disk.len(file));
        machine.change_name(NameChange::Remove(path.to_owned()), path);
        Ok(())
    }

    fn create_dir(&self, path: &Path) -> Result<()> {
        let mut machine = self.machine.lock();
        if !machine.disk.live.dirs.contains(path) {
            machine.strike(Call::Name, true, "create directory", path)?;
            machine.change_name(NameChange::Directory(path.to_owned()), path);
        }
        Ok(())
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        let _time = CallTime::begin();
        let mut machine = self.machine.lock();
        machine.strike(Call::Sync, false, "sync directory", path)?;
        machine.disk.sync_dir(path);
        machine.happened(|| Event::Sync(path.to_owned()));
        Ok(())
    }

    fn lock_dir(&self, dir: &Path, mode: LockMode) -> Result<Box<dyn DirLock>> {
        let mut machine = self.machine.lock();
        let held = machine.locked.entry(dir.to_owned()).or_insert((mode, 0));
        if held.1 > 0 && (held.0 == LockMode::Exclusive || mode == LockMode::Exclusive) {
            return Err(Error::InUse(dir.to_owned()));
        }
        *held = (mode, held.1 + 1);
        Ok(Box::new(SimulatedLock {
            dir: dir.to_owned(),
            machine: Arc::clone(&self.machine),
        }))
    }

    fn now(&self) -> Duration {
        crate::sync::since(self.origin)
    }

    fn random(&self) -> u64 {
        random::next(&mut self.machine.lock().random)
    }
}
