//! A disk in memory; tests can change its bytes without the engine.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use peregrine::os::{DirLock, File, LockMode, OpenMode, Os};
use peregrine::{Error, Result};

/// A disk in memory; clones share its content, and [`Disk::copy`] makes another disk.
#[derive(Clone, Debug)]
pub struct Disk {
    files: Arc<Mutex<BTreeMap<PathBuf, Arc<Content>>>>,
    random: Arc<AtomicU64>,
    since: Instant,
}

#[derive(Debug)]
struct Content {
    bytes: RwLock<Vec<u8>>,
}

impl Content {
    fn with<R>(&self, look: impl FnOnce(&[u8]) -> R) -> R {
        look(&self.bytes.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn change<R>(&self, change: impl FnOnce(&mut Vec<u8>) -> R) -> R {
        change(&mut self.bytes.write().unwrap_or_else(PoisonError::into_inner))
    }
}

#[derive(Debug)]
struct Open {
    path: PathBuf,
    content: Arc<Content>,
}

#[derive(Debug)]
struct Lock;

impl DirLock for Lock {}

impl Disk {
    /// Creates an empty disk; `seed` determines its random numbers.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Disk {
            files: Arc::default(),
            random: Arc::new(AtomicU64::new(seed)),
            since: Instant::now(),
        }
    }

    fn files(&self) -> MutexGuard<'_, BTreeMap<PathBuf, Arc<Content>>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn content(&self, path: &Path) -> Result<Arc<Content>> {
        let found = self.files().get(path).cloned();
        found.ok_or_else(|| missing("open", path))
    }

    /// Returns the disk as an operating system.
    #[must_use]
    pub fn os(&self) -> Arc<dyn Os> {
        Arc::new(self.clone())
    }

    /// Returns another disk with the bytes that this one has at the call.
    #[must_use]
    pub fn copy(&self) -> Disk {
        let files = self.files();
        let copies = files.iter().map(|(path, content)| {
            let bytes = RwLock::new(content.with(<[u8]>::to_vec));
            (path.clone(), Arc::new(Content { bytes }))
        });
        Disk {
            files: Arc::new(Mutex::new(copies.collect())),
            random: Arc::new(AtomicU64::new(self.random.load(Ordering::Relaxed))),
            since: self.since,
        }
    }

    /// Returns up to `len` bytes from `offset` on; fewer at the file's end, none if the file is missing.
    #[must_use]
    pub fn read(&self, path: &Path, offset: u64, len: u64) -> Vec<u8> {
        let Ok(content) = self.content(path) else {
            return Vec::new();
        };
        content.with(|bytes| {
            let begin = bytes.len().min(offset as usize);
            let end = bytes.len().min((offset + len) as usize);
            bytes[begin..end].to_vec()
        })
    }

    /// Overwrites bytes of a file; does nothing if the file is too short.
    pub fn overwrite(&self, path: &Path, offset: u64, data: &[u8]) {
        if let Ok(content) = self.content(path) {
            content.change(|bytes| {
                if let Some(place) = bytes.get_mut(offset as usize..offset as usize + data.len()) {
                    place.copy_from_slice(data);
                }
            });
        }
    }

    /// Flips a bit of a file.
    pub fn flip(&self, path: &Path, bit: u64) {
        if let Ok(content) = self.content(path) {
            content.change(|bytes| {
                if let Some(byte) = bytes.get_mut((bit / 8) as usize) {
                    *byte ^= 1 << (bit % 8);
                }
            });
        }
    }
}

fn missing(action: &'static str, path: &Path) -> Error {
    Error::io(action, path, io::ErrorKind::NotFound.into())
}

impl Os for Disk {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn File>> {
        let content = if mode == OpenMode::CreateNew {
            let mut files = self.files();
            if files.contains_key(path) {
                return Err(Error::io(
                    "create",
                    path,
                    io::ErrorKind::AlreadyExists.into(),
                ));
            }
            let content = Arc::new(Content {
                bytes: RwLock::default(),
            });
            files.insert(path.to_owned(), Arc::clone(&content));
            content
        } else {
            self.content(path)?
        };
        Ok(Arc::new(Open {
            path: path.to_owned(),
            content,
        }))
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        let files = self.files();
        let mut names = files.keys();
        Ok(names.any(|name| name.starts_with(path)))
    }

    fn list(&self, dir: &Path) -> Result<Vec<String>> {
        let names = self.files();
        let names = names.keys().filter(|path| path.parent() == Some(dir));
        Ok(names
            .filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()))
            .collect())
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        let mut files = self.files();
        let content = files.remove(from).ok_or_else(|| missing("rename", from))?;
        files.insert(to.to_owned(), content);
        Ok(())
    }

    fn remove(&self, path: &Path) -> Result<()> {
        let gone = self.files().remove(path);
        gone.map(|_| ()).ok_or_else(|| missing("remove", path))
    }

    fn create_dir(&self, _path: &Path) -> Result<()> {
        Ok(())
    }

    fn sync_dir(&self, _path: &Path) -> Result<()> {
        Ok(())
    }

    fn lock_dir(&self, _dir: &Path, _mode: LockMode) -> Result<Box<dyn DirLock>> {
        Ok(Box::new(Lock))
    }

    fn now(&self) -> Duration {
        self.since.elapsed()
    }

    fn random(&self) -> u64 {
        // SplitMix64 (Steele, Lea, Flood, 2014).
        let step = 0x9E37_79B9_7F4A_7C15;
        let mut z = self.random.fetch_add(step, Ordering::Relaxed);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}

impl File for Open {
    fn path(&self) -> &Path {
        &self.path
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        Ok(self.content.with(|bytes| {
            let from = bytes.get(offset as usize..).unwrap_or_default();
            let len = from.len().min(buf.len());
            buf[..len].copy_from_slice(&from[..len]);
            len
        }))
    }

    fn write_at(&self, data: &[u8], offset: u64) -> Result<()> {
        self.content.change(|bytes| {
            let (begin, end) = (offset as usize, offset as usize + data.len());
            if bytes.len() < end {
                bytes.resize(end, 0);
            }
            bytes[begin..end].copy_from_slice(data);
        });
        Ok(())
    }

    fn sync_data(&self) -> Result<()> {
        Ok(())
    }

    fn len(&self) -> Result<u64> {
        Ok(self.content.with(|bytes| bytes.len() as u64))
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.content.change(|bytes| bytes.resize(len as usize, 0));
        Ok(())
    }

    fn allocate(&self, offset: u64, len: u64) -> Result<()> {
        self.content.change(|bytes| {
            let end = (offset + len) as usize;
            if bytes.len() < end {
                bytes.resize(end, 0);
            }
        });
        Ok(())
    }
}
