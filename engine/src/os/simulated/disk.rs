//! The disk's state: files and names, live and durable. Copies share content until it differs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::content::{Bytes, Change, Content};
use super::names::{FileId, NameChange, Names};

/// Files and names.
#[derive(Clone, Debug, Default)]
pub struct Disk {
    pub files: BTreeMap<FileId, Arc<Content>>,
    /// Names as the process sees them.
    pub live: Arc<Names>,
    /// Names that are certainly on the device.
    pub durable: Arc<Names>,
    /// Changes of names that are live and not yet durable, in order.
    pub pending: Arc<Vec<NameChange>>,
    pub next_file: FileId,
}

impl Disk {
    pub fn file(&self, path: &Path) -> Option<FileId> {
        self.live.files.get(path).copied()
    }

    pub fn content(&self, file: FileId) -> Option<&Content> {
        self.files.get(&file).map(|content| &**content)
    }

    pub fn live_bytes(&self, path: &Path) -> Option<&Bytes> {
        Some(&self.content(self.file(path)?)?.live)
    }

    pub fn content_mut(&mut self, file: FileId) -> &mut Content {
        Arc::make_mut(self.files.entry(file).or_default())
    }

    pub fn len(&self, file: FileId) -> u64 {
        self.content(file)
            .map_or(0, |content| content.live.len() as u64)
    }

    /// Bytes of all files that have a name.
    pub fn used(&self) -> u64 {
        self.live.files.values().map(|&file| self.len(file)).sum()
    }

    pub fn change(&mut self, file: FileId, change: Change) {
        self.content_mut(file).change(change);
    }

    pub fn change_name(&mut self, change: NameChange) {
        change.apply(Arc::make_mut(&mut self.live));
        Arc::make_mut(&mut self.pending).push(change);
    }

    pub fn create(&mut self, path: PathBuf) -> FileId {
        let file = self.next_file;
        self.next_file += 1;
        self.files.insert(file, Arc::default());
        self.change_name(NameChange::Create(path, file));
        file
    }

    pub fn sync_dir(&mut self, dir: &Path) {
        let durable = Arc::make_mut(&mut self.durable);
        Arc::make_mut(&mut self.pending).retain(|change| {
            let now = change.is_of(dir);
            if now {
                change.apply(durable);
            }
            !now
        });
    }

    /// Returns whether a crash loses nothing, whatever the kind of loss.
    pub fn is_synced(&self) -> bool {
        let synced =
            |content: &Arc<Content>| content.unsynced.is_empty() && !content.is_forgetful();
        self.pending.is_empty() && self.files.values().all(synced)
    }
}
