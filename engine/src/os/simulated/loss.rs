//! Losses in a crash: which of the writes and names since the last syncs reach the device.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::content::{Change, Content};
use super::disk::Disk;
use super::names::NameChange;
use crate::random::{below, next, one_of};

/// Bytes that a device writes whole or not at all: a sector of old disks, and of new ones.
const SECTOR: usize = 512;
const LARGE_SECTOR: usize = 4096;

/// The fate of changes that were not synced.
///
/// All synced changes stay. Of a directory's changes of names, all from some moment on are lost, as in a file system
/// with a journal; some kinds differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// All changes stay: the process died, but not the machine. Changes that were not synced are still unsynced: the
    /// next loss can take them.
    Nothing,
    /// All changes are lost.
    Everything,
    /// Of each file and directory, the first changes stay, up to some moment.
    Later,
    /// Each write and each change of a name stays or is lost: they were reordered.
    Some,
    /// Each write stays, is lost, or is torn between sectors of 512 bytes.
    TornSectors,
    /// Each write stays, is lost, or is torn between sectors of 4 KiB.
    TornBlocks,
}

impl Loss {
    /// All kinds.
    pub const ALL: [Loss; 6] = [
        Loss::Nothing,
        Loss::Everything,
        Loss::Later,
        Loss::Some,
        Loss::TornSectors,
        Loss::TornBlocks,
    ];

    /// The kind's name in reports and on command lines.
    pub fn name(self) -> &'static str {
        match self {
            Loss::Nothing => "process-killed",
            Loss::Everything => "all-lost",
            Loss::Later => "later-lost",
            Loss::Some => "reordered",
            Loss::TornSectors => "torn-512",
            Loss::TornBlocks => "torn-4096",
        }
    }

    fn content(self, content: &Content, state: &mut u64) -> Content {
        let mut bytes = content.durable.clone();
        let changes = &content.unsynced;
        match self {
            Loss::Nothing => return content.clone(),
            Loss::Everything => {}
            Loss::Later => {
                let kept = below(state, changes.len() + 1);
                for (n, change) in changes.iter().take(kept).enumerate() {
                    match n + 1 < kept {
                        true => change.apply(&mut bytes),
                        // The last change may be torn.
                        false => first_part(change, state).apply(&mut bytes),
                    }
                }
            }
            Loss::Some => {
                for change in changes {
                    if one_of(state, 2) {
                        change.apply(&mut bytes);
                    }
                }
            }
            Loss::TornSectors | Loss::TornBlocks => {
                let unit = match self {
                    Loss::TornSectors => SECTOR,
                    _ => LARGE_SECTOR,
                };
                for change in changes {
                    match next(state) % 4 {
                        0 => {}
                        1 => change.apply(&mut bytes),
                        _ => change.apply_parts(&mut bytes, unit, || one_of(state, 2)),
                    }
                }
            }
        }
        Content::synced(bytes)
    }

    /// Returns whether a change of a name stays.
    fn keeps(
        self,
        change: &NameChange,
        left: &mut BTreeMap<PathBuf, usize>,
        state: &mut u64,
    ) -> bool {
        match self {
            Loss::Nothing => true,
            Loss::Everything => false,
            Loss::Some => one_of(state, 2),
            Loss::Later | Loss::TornSectors | Loss::TornBlocks => {
                let left = left.entry(change.dir().to_owned()).or_default();
                *left = left.saturating_sub(1);
                *left > 0
            }
        }
    }

    /// The disk after a crash with this kind of loss, chosen by `seed`.
    pub(super) fn strike(self, disk: &Disk, seed: u64) -> Disk {
        if self == Loss::Nothing {
            return disk.clone();
        }
        let mut state = seed;
        let mut names = (*disk.durable).clone();
        // One more than the number of changes of each directory that stay.
        let mut left: BTreeMap<PathBuf, usize> = BTreeMap::new();
        for change in disk.pending.iter() {
            *left.entry(change.dir().to_owned()).or_default() += 1;
        }
        for count in left.values_mut() {
            *count = 1 + below(&mut state, *count + 1);
        }
        for change in disk.pending.iter() {
            if self.keeps(change, &mut left, &mut state) {
                change.apply(&mut names);
            }
        }
        let dirs = std::mem::take(&mut names.dirs);
        names
            .files
            .retain(|path, _| path.parent().is_some_and(|dir| dirs.contains(dir)));
        names.dirs = dirs;
        let mut files = BTreeMap::new();
        for &file in names.files.values() {
            let Some(content) = disk.files.get(&file) else {
                continue;
            };
            let content = match content.unsynced.is_empty() && !content.is_forgetful() {
                true => Arc::clone(content),
                false => Arc::new(self.content(content, &mut state)),
            };
            files.insert(file, content);
        }
        let names = Arc::new(names);
        Disk {
            files,
            live: Arc::clone(&names),
            durable: names,
            pending: Arc::default(),
            next_file: disk.next_file,
        }
    }
}

/// A change cut off behind some sector.
fn first_part(change: &Change, state: &mut u64) -> Change {
    match change {
        Change::Write { offset, data } if !one_of(state, 2) => {
            let sectors = (offset % SECTOR + data.len()).div_ceil(SECTOR);
            let end = (below(state, sectors + 1) * SECTOR).saturating_sub(offset % SECTOR);
            Change::Write {
                offset: *offset,
                data: data[..end.min(data.len())].into(),
            }
        }
        other => other.clone(),
    }
}
