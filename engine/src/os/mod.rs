//! The interface to the operating system: files, directories, a clock, random numbers.
//!
//! Everything below the buffer pool reaches the machine through [`Os`] and [`File`]. So a test can use [`simulated`]
//! instead, and lose, tear or refuse any write.
#![forbid(unsafe_code)]

mod real;
pub mod simulated;
mod stop;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub use real::RealOs;
pub use stop::StopFlag;

use crate::error::{Error, Result};

/// The directory of a file or directory; the current one for a bare name.
pub(crate) fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(above) if above.as_os_str().is_empty() => Path::new("."),
        Some(above) => above,
        None => path,
    }
}

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// An existing file, for reading only.
    ReadOnly,
    /// An existing file, for reading and writing.
    ReadWrite,
    /// A file that must not exist yet, for reading and writing; mode 0660.
    CreateNew,
}

/// Whether other processes may hold a directory's lock at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockMode {
    /// Other processes may read too; none may write.
    Shared,
    /// No other process.
    Exclusive,
}

/// Alignment of the memory into which files are read past the page cache; it suits every device.
pub const DIRECT_ALIGN: usize = 4096;

/// An operating system: the real one, or a simulated one in tests.
///
/// Errors are [`Error::Io`] and [`Error::NoSpace`] with the path; nothing panics.
pub trait Os: Send + Sync + std::fmt::Debug {
    /// Opens a file.
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn File>>;
    /// Opens an existing file once more, for reads past the system's page cache: of whole pieces of `piece` bytes, into
    /// memory that begins at a multiple of [`DIRECT_ALIGN`]. Returns `None` if the file system has no such reads, or
    /// none so small.
    fn open_direct(&self, _path: &Path, _piece: usize) -> Result<Option<Arc<dyn File>>> {
        Ok(None)
    }
    /// Returns whether a file or directory of that name exists.
    fn exists(&self, path: &Path) -> Result<bool>;
    /// The names of the files in a directory, sorted. Names that are not UTF-8 are left out.
    fn list(&self, dir: &Path) -> Result<Vec<String>>;
    /// Renames a file, replacing the target. Durable after [`Os::sync_dir`].
    fn rename(&self, from: &Path, to: &Path) -> Result<()>;
    /// Removes a file. Durable after [`Os::sync_dir`].
    fn remove(&self, path: &Path) -> Result<()>;
    /// Creates a directory with mode 0700, and nothing above it; no error when it exists.
    fn create_dir(&self, path: &Path) -> Result<()>;
    /// Makes the directory's entries (creations, renames, removals) durable.
    fn sync_dir(&self, path: &Path) -> Result<()>;
    /// Locks a directory against other processes until the returned value is dropped.
    ///
    /// # Errors
    /// [`Error::InUse`] at once when another process holds it.
    fn lock_dir(&self, dir: &Path, mode: LockMode) -> Result<Box<dyn DirLock>>;
    /// Time since some fixed moment; never decreases.
    fn now(&self) -> Duration;
    /// An unpredictable number.
    fn random(&self) -> u64;
}

/// A held directory lock; dropping it releases the lock.
pub trait DirLock: Send + Sync + std::fmt::Debug {}

/// An open file. All methods may be called from many threads at once.
pub trait File: Send + Sync + std::fmt::Debug {
    /// The path with which it was opened.
    fn path(&self) -> &Path;
    /// Reads at `offset` until `buf` is full or the file ends; returns the bytes read.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize>;
    /// Writes all of `data` at `offset`, extending the file as needed.
    fn write_at(&self, data: &[u8], offset: u64) -> Result<()>;
    /// Makes written bytes and the file's length durable (`fdatasync`).
    fn sync_data(&self) -> Result<()>;
    /// Length in bytes.
    fn len(&self) -> Result<u64>;
    /// Returns whether it has no bytes.
    fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }
    /// Cuts or extends (with zeros) to `len` bytes.
    fn set_len(&self, len: u64) -> Result<()>;
    /// Reserves space for `offset..offset + len`, extending the file; the new bytes read as zeros.
    /// No other thread may write there meanwhile.
    fn allocate(&self, offset: u64, len: u64) -> Result<()>;

    /// Fills `buf` from `offset`.
    ///
    /// # Errors
    /// [`Error::Io`] of kind `UnexpectedEof` when the file ends before.
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> Result<()> {
        if self.read_at(buf, offset)? == buf.len() {
            return Ok(());
        }
        Err(Error::io(
            "read beyond the end of",
            self.path(),
            std::io::Error::from(std::io::ErrorKind::UnexpectedEof),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_alone_stands_in_the_current_directory() {
        let of = |path: &'static str| directory_of(Path::new(path));
        assert_eq!(of("db"), Path::new("."));
        assert_eq!(of("a/db"), Path::new("a"));
        assert_eq!(of("/db"), Path::new("/"));
        assert_eq!(of("/"), Path::new("/"));
    }
}
