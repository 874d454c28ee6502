//! The real operating system.

use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{fs, io};

use rustix::fs::{AtFlags, FallocateFlags, FlockOperation, OFlags, StatxFlags};

use super::{DirLock, File, LockMode, OpenMode, Os, DIRECT_ALIGN};
use crate::error::{Error, Result};
use crate::fallible;
use crate::planted::{is_planted, PlantedFault};

/// Name of the file in a database directory whose `flock` is the directory's lock.
const LOCK_FILE: &str = "lock";
/// Bytes of one write when a file's space is taken by writing.
const PIECE: usize = 256 << 10;

/// The machine's own files, through the standard library and `rustix`.
#[derive(Debug)]
pub struct RealOs {
    origin: Instant,
    /// The directory of relative paths.
    base: PathBuf,
}

impl RealOs {
    /// The system, shared. Relative paths are relative to the directory that is current now: the program may change its
    /// current directory, and other files may have these names there.
    pub fn new() -> Arc<Self> {
        // If the directory can't be reached by its name, the system resolves relative paths.
        let base = std::env::current_dir().ok().filter(|dir| dir.is_dir());
        Arc::new(RealOs {
            origin: Instant::now(),
            base: base.unwrap_or_default(),
        })
    }

    /// The full path of `path`.
    fn at(&self, path: &Path) -> PathBuf {
        // An empty path names nothing.
        if path.as_os_str().is_empty() || is_planted(PlantedFault::FollowCurrentDirectory) {
            return path.to_owned();
        }
        self.base.join(path)
    }
}

#[derive(Debug)]
struct RealFile {
    path: PathBuf,
    file: fs::File,
}

/// Holds the lock file open; the lock ends with the descriptor, so also when the process dies.
#[derive(Debug)]
struct RealLock {
    _file: fs::File,
}

impl DirLock for RealLock {}

/// The lock of a directory to be read that lacks the lock file: no process has it open for changes.
#[derive(Debug)]
struct NoLock;

impl DirLock for NoLock {}

impl Os for RealOs {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn File>> {
        let mut options = fs::OpenOptions::new();
        options.read(true).write(mode != OpenMode::ReadOnly);
        if mode == OpenMode::CreateNew {
            options.create_new(true).mode(0o660);
        }
        let action = match mode {
            OpenMode::CreateNew => "create",
            _ => "open",
        };
        let file = options
            .open(self.at(path))
            .map_err(|source| Error::io(action, path, source))?;
        if mode == OpenMode::CreateNew {
            // The umask must not decide which members of the group can make a backup.
            file.set_permissions(fs::Permissions::from_mode(0o660))
                .map_err(|source| Error::io("set the permissions of", path, source))?;
        }
        Ok(Arc::new(RealFile {
            path: path.to_owned(),
            file,
        }))
    }

    fn open_direct(&self, path: &Path, piece: usize) -> Result<Option<Arc<dyn File>>> {
        let flags = OFlags::DIRECT.bits() as i32;
        let opened = fs::OpenOptions::new()
            .read(true)
            .custom_flags(flags)
            .open(self.at(path));
        let file = match opened {
            Ok(file) => file,
            // The answer of file systems without such reads.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => return Ok(None),
            Err(source) => return Err(Error::io("open", path, source)),
        };
        // Before Linux 6.1 the alignment is unknown; direct reads are not used then.
        let asked = rustix::fs::statx(&file, c"", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN)
            .map_err(|errno| Error::io("look at", path, errno.into()))?;
        let (memory, offset) = (asked.stx_dio_mem_align, asked.stx_dio_offset_align);
        let fits = |align: u32, whole: usize| align > 0 && whole % align as usize == 0;
        if !fits(memory, DIRECT_ALIGN) || !fits(offset, piece) {
            return Ok(None);
        }
        Ok(Some(Arc::new(RealFile {
            path: path.to_owned(),
            file,
        })))
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        self.at(path)
            .try_exists()
            .map_err(|source| Error::io("look up", path, source))
    }

    fn list(&self, dir: &Path) -> Result<Vec<String>> {
        let wrap = |source| Error::io("list", dir, source);
        let mut names = Vec::new();
        for entry in fs::read_dir(self.at(dir)).map_err(wrap)? {
            if let Ok(name) = entry.map_err(wrap)?.file_name().into_string() {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        fs::rename(self.at(from), self.at(to)).map_err(|source| Error::io("rename", from, source))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        fs::remove_file(self.at(path)).map_err(|source| Error::io("remove", path, source))
    }

    fn create_dir(&self, path: &Path) -> Result<()> {
        let at = self.at(path);
        match fs::DirBuilder::new().mode(0o700).create(&at) {
            Ok(()) => Ok(()),
            Err(source) if source.kind() == io::ErrorKind::AlreadyExists && at.is_dir() => Ok(()),
            Err(source) => Err(Error::io("create directory", path, source)),
        }
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        fs::File::open(self.at(path))
            .and_then(|dir| dir.sync_all())
            .map_err(|source| Error::io("sync directory", path, source))
    }

    fn lock_dir(&self, dir: &Path, mode: LockMode) -> Result<Box<dyn DirLock>> {
        let path = dir.join(LOCK_FILE);
        // A process that reads a directory it may not write to must still find out that the directory is in use.
        let file = match fs::OpenOptions::new()
            .read(true)
            .write(mode == LockMode::Exclusive)
            .create(mode == LockMode::Exclusive)
            .truncate(false)
            .mode(0o660)
            .open(self.at(&path))
        {
            Ok(file) => file,
            Err(source)
                if mode == LockMode::Shared
                    && source.kind() == io::ErrorKind::NotFound
                    && !is_planted(PlantedFault::NeedLockFile) =>
            {
                return Ok(Box::new(NoLock))
            }
            Err(source) => return Err(Error::io("open", path, source)),
        };
        let operation = match mode {
            LockMode::Shared => FlockOperation::NonBlockingLockShared,
            LockMode::Exclusive => FlockOperation::NonBlockingLockExclusive,
        };
        match rustix::fs::flock(&file, operation) {
            Ok(()) => Ok(Box::new(RealLock { _file: file })),
            Err(rustix::io::Errno::WOULDBLOCK) => Err(Error::InUse(dir.to_owned())),
            Err(errno) => Err(Error::io("lock", path, errno.into())),
        }
    }

    fn now(&self) -> Duration {
        self.origin.elapsed()
    }

    fn random(&self) -> u64 {
        let mut bytes = [0u8; 8];
        match rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()) {
            Ok(8) => u64::from_le_bytes(bytes),
            // This does not fail on any supported kernel; the hasher's seed is random too.
            _ => {
                use std::hash::{BuildHasher, Hasher};
                std::collections::hash_map::RandomState::new()
                    .build_hasher()
                    .finish()
            }
        }
    }
}

impl RealFile {
    /// Takes disk space for a part of the file by writing all of it: its present bytes, and zeros behind the end. No
    /// other thread may write there meanwhile.
    fn take_room_by_writing(&self, offset: u64, len: u64) -> Result<()> {
        let (mut at, end) = (offset, offset + len);
        if is_planted(PlantedFault::LongerIsReserved) {
            return self.set_len(end.max(self.len()?));
        }
        let mut piece = Vec::new();
        fallible::reserve(&mut piece, PIECE, "the room of a file")?;
        while at < end {
            piece.clear();
            piece.resize((end - at).min(PIECE as u64) as usize, 0);
            self.read_at(&mut piece, at)?;
            self.write_at(&piece, at)?;
            at += piece.len() as u64;
        }
        Ok(())
    }

    fn failed(&self, action: &'static str) -> impl Fn(io::Error) -> Error + '_ {
        move |source| Error::io(action, &self.path, source)
    }
}

impl File for RealFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        let mut done = 0;
        while done < buf.len() {
            match self.file.read_at(&mut buf[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(n) => done += n,
                Err(source) if source.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(self.failed("read")(source)),
            }
        }
        Ok(done)
    }

    fn write_at(&self, data: &[u8], offset: u64) -> Result<()> {
        self.file
            .write_all_at(data, offset)
            .map_err(self.failed("write"))
    }

    fn sync_data(&self) -> Result<()> {
        self.file.sync_data().map_err(self.failed("sync"))
    }

    fn len(&self) -> Result<u64> {
        let metadata = self
            .file
            .metadata()
            .map_err(self.failed("find the length of"))?;
        Ok(metadata.len())
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.file
            .set_len(len)
            .map_err(self.failed("set the length of"))
    }

    fn allocate(&self, offset: u64, len: u64) -> Result<()> {
        use rustix::io::Errno;
        loop {
            return match rustix::fs::fallocate(&self.file, FallocateFlags::empty(), offset, len) {
                Ok(()) => Ok(()),
                Err(Errno::INTR) => continue,
                // Some file systems can't reserve space. A file that is only extended would find out later that the
                // disk is full.
                Err(Errno::OPNOTSUPP | Errno::NOSYS) => self.take_room_by_writing(offset, len),
                Err(errno) => Err(self.failed("reserve space in")(errno.into())),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_keep_what_was_written_and_have_the_promised_mode() {
        let dir = tempfile::tempdir().unwrap();
        let os = RealOs::new();
        let sub = dir.path().join("db");
        os.create_dir(&sub).unwrap();
        os.create_dir(&sub).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&sub), 0o700);
        let path = sub.join("data");
        let file = os.open(&path, OpenMode::CreateNew).unwrap();
        assert_eq!(mode(&path), 0o660);
        assert!(os.open(&path, OpenMode::CreateNew).is_err());
        file.write_at(b"hello", 3).unwrap();
        file.allocate(0, 100).unwrap();
        file.sync_data().unwrap();
        assert_eq!(file.len().unwrap(), 100);
        let mut buf = [1u8; 8];
        assert_eq!(file.read_at(&mut buf, 0).unwrap(), 8);
        assert_eq!(&buf, b"\0\0\0hello");
        assert_eq!(file.read_at(&mut buf, 96).unwrap(), 4);
        assert!(file.read_exact_at(&mut buf, 96).is_err());
        os.rename(&path, &sub.join("other")).unwrap();
        os.sync_dir(&sub).unwrap();
        assert_eq!(os.list(&sub).unwrap(), ["other"]);
        assert!(os.open(&path, OpenMode::ReadWrite).is_err());
    }

    #[test]
    fn where_the_file_system_reserves_no_room_it_is_taken_by_writing() {
        use std::os::unix::fs::MetadataExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("data");
        let mut options = fs::File::options();
        let options = options.read(true).write(true).create_new(true);
        let file = RealFile {
            file: options.open(&path).unwrap(),
            path: path.clone(),
        };
        let (hole, end) = (3 * PIECE as u64, 5 * PIECE as u64 + 777);
        file.write_at(b"hello", hole - 5).unwrap();
        file.set_len(hole + 100).unwrap();
        file.take_room_by_writing(DIRECT_ALIGN as u64, end - DIRECT_ALIGN as u64)
            .unwrap();
        assert_eq!(file.len().unwrap(), end);
        let blocks = fs::metadata(&path).unwrap().blocks();
        assert!(blocks * 512 >= end - DIRECT_ALIGN as u64, "{blocks} blocks");
        let mut bytes = vec![1; end as usize];
        file.read_exact_at(&mut bytes, 0).unwrap();
        let at = hole as usize - 5;
        assert_eq!(&bytes[at..at + 5], b"hello");
        bytes[at..at + 5].fill(0);
        assert!(bytes.iter().all(|&byte| byte == 0));
        // Existing bytes stay as long as they are.
        file.take_room_by_writing(0, 10).unwrap();
        assert_eq!(file.len().unwrap(), end);
    }

    #[test]
    fn relative_paths_stay_where_they_were() {
        let dir = tempfile::tempdir().unwrap();
        let os = RealOs {
            origin: Instant::now(),
            base: dir.path().to_owned(),
        };
        let within = |name: &str| dir.path().join(name);
        fs::create_dir(within("kept")).unwrap();
        fs::write(within("kept/data"), b"hello").unwrap();

        let (kept, data) = (Path::new("kept"), Path::new("kept/data"));
        assert!(os.exists(data).unwrap());
        let file = os.open(data, OpenMode::ReadWrite).unwrap();
        assert_eq!((file.path(), file.len().unwrap()), (data, 5));
        assert!(os.open_direct(data, DIRECT_ALIGN).is_ok());
        assert_eq!(os.list(kept).unwrap(), ["data"]);
        os.rename(data, Path::new("kept/other")).unwrap();
        os.create_dir(Path::new("kept/log")).unwrap();
        os.sync_dir(kept).unwrap();
        let _lock = os.lock_dir(kept, LockMode::Exclusive).unwrap();
        assert_eq!(os.list(&within("kept")).unwrap(), ["lock", "log", "other"]);
        os.remove(Path::new("kept/other")).unwrap();
        assert!(!within("kept/other").exists());
        assert!(os.exists(Path::new("")).is_ok_and(|there| !there));

        let now = std::env::current_dir().unwrap();
        assert_eq!(RealOs::new().base, now);
    }

    #[test]
    fn reads_past_the_page_cache_find_what_was_written() {
        let dir = tempfile::tempdir().unwrap();
        let os = RealOs::new();
        let path = dir.path().join("data");
        let file = os.open(&path, OpenMode::CreateNew).unwrap();
        let data: Vec<u8> = (0..64 * 1024u32).map(|n| (n / 7) as u8).collect();
        file.write_at(&data, 0).unwrap();
        assert!(
            os.open_direct(&path, 1).unwrap().is_none(),
            "no device has bytes for sectors"
        );
        // Some file systems have no such reads.
        let Some(direct) = os.open_direct(&path, DIRECT_ALIGN).unwrap() else {
            return;
        };
        let mut memory = vec![0; 3 * DIRECT_ALIGN];
        let start = memory.as_ptr().align_offset(DIRECT_ALIGN);
        let buf = &mut memory[start..start + DIRECT_ALIGN];
        assert_eq!(
            direct.read_at(buf, 5 * DIRECT_ALIGN as u64).unwrap(),
            DIRECT_ALIGN
        );
        assert_eq!(buf, &data[5 * DIRECT_ALIGN..6 * DIRECT_ALIGN]);
        file.write_at(&[7; DIRECT_ALIGN], 5 * DIRECT_ALIGN as u64)
            .unwrap();
        direct.read_exact_at(buf, 5 * DIRECT_ALIGN as u64).unwrap();
        assert_eq!(buf, [7; DIRECT_ALIGN]);
    }

    #[test]
    fn a_directory_is_locked_once() {
        let dir = tempfile::tempdir().unwrap();
        let os = RealOs::new();
        let lock = os.lock_dir(dir.path(), LockMode::Exclusive).unwrap();
        assert!(matches!(
            os.lock_dir(dir.path(), LockMode::Exclusive),
            Err(Error::InUse(_))
        ));
        assert!(matches!(
            os.lock_dir(dir.path(), LockMode::Shared),
            Err(Error::InUse(_))
        ));
        drop(lock);
        let one = os.lock_dir(dir.path(), LockMode::Shared).unwrap();
        let two = os.lock_dir(dir.path(), LockMode::Shared).unwrap();
        drop((one, two));
        os.lock_dir(dir.path(), LockMode::Exclusive).unwrap();
    }
}
