//! Directories: names of files, for the process and after a crash.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The number of a file, which stays the same under any name.
pub type FileId = u64;

/// All names of a disk.
#[derive(Clone, Debug, Default)]
pub struct Names {
    pub files: BTreeMap<PathBuf, FileId>,
    pub dirs: BTreeSet<PathBuf>,
}

/// A change of a directory.
#[derive(Clone, Debug)]
pub enum NameChange {
    Create(PathBuf, FileId),
    Rename(PathBuf, PathBuf),
    Remove(PathBuf),
    Directory(PathBuf),
}

impl NameChange {
    /// Returns whether syncing `dir` makes the change durable. A new directory is durable once it or its parent is
    /// synced.
    pub fn is_of(&self, dir: &Path) -> bool {
        match self {
            NameChange::Create(path, _) | NameChange::Remove(path) => path.parent() == Some(dir),
            NameChange::Rename(from, to) => from.parent() == Some(dir) || to.parent() == Some(dir),
            NameChange::Directory(path) => path == dir || path.parent() == Some(dir),
        }
    }

    /// The directory of the change.
    pub fn dir(&self) -> &Path {
        let path = match self {
            NameChange::Create(path, _) | NameChange::Remove(path) => path,
            NameChange::Rename(from, _) => from,
            NameChange::Directory(path) => return path,
        };
        path.parent().unwrap_or(Path::new(""))
    }

    /// Applies the change. A change of a name that is missing, because an earlier change was lost, does nothing.
    pub fn apply(&self, names: &mut Names) {
        match self {
            NameChange::Create(path, file) => {
                names.files.insert(path.clone(), *file);
            }
            NameChange::Rename(from, to) => {
                if let Some(file) = names.files.remove(from) {
                    names.files.insert(to.clone(), file);
                }
            }
            NameChange::Remove(path) => {
                names.files.remove(path);
            }
            NameChange::Directory(path) => {
                names.dirs.insert(path.clone());
            }
        }
    }
}
