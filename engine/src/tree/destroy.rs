//! Freeing the pages of a whole tree.
//!
//! A child's number may be wrong though the checksum of its parent is right, and it may be the number of another
//! table's page. A page freed by mistake is lost; a page left behind only takes room. So a page in doubt is left
//! behind.

use crate::{buffer, node};
use std::sync::Arc;

use super::root::check_root;
use super::Tree;
use crate::buffer::{BufferPool, Child, ExclusiveGuard, PinnedPage, SharedGuard};
use crate::error::{Error, Result};
use crate::ids::{FrameId, PageId};
use crate::node::Node;
use crate::planted::{is_planted, PlantedFault};
use crate::sync::atomic::Ordering;

/// Leaves that are read of a tree that has contradicted itself; the leaves after these are left behind.
///
/// The limit exists because other operations wait meanwhile.
const MOST_LOOKED_AT: usize = 4_096;

/// Returns whether a page can't be read, because it is damaged or the read has failed.
///
/// This is no reason to keep a table that is to be dropped.
pub fn cannot_be_read(error: &Error) -> bool {
    match error {
        Error::Corrupt { .. } => true,
        // A failed write is different: the pages that would be left behind for it could be found.
        Error::Io { action, .. } => {
            (*action == "read" || is_planted(PlantedFault::LateTreeImages))
                && !is_planted(PlantedFault::LogBeforeRoots)
        }
        _ => false,
    }
}

impl Tree {
    /// Saves the images of the tree's pages that a running checkpoint needs.
    ///
    /// This can fail. [`Tree::destroy`] in the same stay in the barrier then has no image left to save. No other
    /// thread may be changing the tree.
    pub fn save_images(&self) -> Result<()> {
        // If the root is not in memory, no other page of the tree is.
        let root = self.pool.pin_resident(self.root);
        root.map_or(Ok(()), |root| self.save_from(root.frame()))
    }

    /// Saves the node in the frame, and those below it that are in memory.
    fn save_from(&self, frame: FrameId) -> Result<()> {
        self.pool.save_early(frame)?;
        // Latched, so that no child can be evicted.
        let guard = SharedGuard::lock(&self.pool, frame);
        let node = guard.node();
        if node.is_leaf() {
            return Ok(());
        }
        (0..=node.count()).try_for_each(|i| match buffer::child(node.child(i)) {
            Child::Frame(child) => self.save_from(child),
            Child::Page(_) => Ok(()),
        })
    }

    /// Frees every page, except those below an inner node that can't be read, and those that contradict their
    /// parents.
    ///
    /// It does not read leaves that are not in memory, unless the tree has contradicted itself: their parents name
    /// them. No other thread may be using the tree, now or later. The caller must be inside the barrier, as for any
    /// change.
    pub fn destroy(&self) -> Result<()> {
        let root = {
            let _finding = self.finding_root.lock();
            if self.destroyed.load(Ordering::Relaxed) {
                return Ok(());
            }
            let root = pin(&self.pool, self.root)?;
            check_root(&self.pool, &root.shared(), self.id, self.root)?;
            // Before another page can get the root's frame or number.
            self.destroyed.store(true, Ordering::Release);
            root
        };
        let mut freeing = Freeing {
            pool: &self.pool,
            met: PageSet::default(),
            in_doubt: self.contradicted.load(Ordering::Relaxed),
            looks_left: MOST_LOOKED_AT,
        };
        freeing.met.add(self.root.0);
        freeing.note_resident(root.frame());
        let freed = freeing.free_below(root.frame());
        drop(root);
        freed?;
        self.pool.drop_unparented(self.root.0)?;
        self.pool.store.free_page(self.root);
        Ok(())
    }
}

/// Pins a node, and tries a failed read once more: otherwise the pages below it would be lost for good.
fn pin(pool: &Arc<BufferPool>, id: PageId) -> Result<PinnedPage> {
    match pool.pin_page(id) {
        Err(error) if cannot_be_read(&error) && !is_planted(PlantedFault::ReadOnceToFree) => {
            pool.pin_page(id)
        }
        pinned => pinned,
    }
}

/// A tree whose pages are being freed.
struct Freeing<'a> {
    pool: &'a Arc<BufferPool>,
    /// The root, the pages in memory below it, and the freed pages; a page that is not in memory must not be among
    /// these.
    met: PageSet,
    /// Whether the tree has contradicted itself: then the leaves that its nodes name are read and checked, too.
    in_doubt: bool,
    /// The number of leaves that may still be read for this.
    looks_left: usize,
}

impl Freeing<'_> {
    /// Adds the pages in memory below the node in the frame to `met`.
    fn note_resident(&mut self, frame: FrameId) {
        // Latched, so that no child can be evicted.
        let guard = SharedGuard::lock(self.pool, frame);
        let node = guard.node();
        if node.is_leaf() {
            return;
        }
        for i in 0..=node.count() {
            if let Child::Frame(child) = buffer::child(node.child(i)) {
                let state = self.pool.frames.state(child);
                self.met.add(state.page.load(Ordering::Relaxed));
                if node.level() > 1 {
                    self.note_resident(child);
                }
            }
        }
    }

    /// Frees everything below the node in the frame.
    ///
    /// The node stays in the frame meanwhile: it is pinned, or its parent is latched.
    fn free_below(&mut self, frame: FrameId) -> Result<()> {
        // Latched, so that no child can be evicted.
        let mut guard = ExclusiveGuard::lock(self.pool, frame);
        let node = guard.node();
        if node.is_leaf() {
            return Ok(());
        }
        // The node's image names the children: it must be saved while they still have their frames.
        guard.prepare()?;
        // Checked before the first child is freed.
        self.in_doubt |= self.is_contradicted(node);
        for i in 0..=node.count() {
            match buffer::child(node.child(i)) {
                Child::Frame(child) => {
                    self.free_below(child)?;
                    let child = ExclusiveGuard::lock(self.pool, child);
                    self.pool.free_latched(child)?;
                }
                Child::Page(id) => self.free_away(&guard, i, id)?,
            }
        }
        // The references are void: with this kind, a read-ahead does not follow them either.
        guard.bytes_mut()[node::KIND] = 0;
        Ok(())
    }

    /// Frees a child that is not in memory, and the pages below it.
    fn free_away(&mut self, parent: &ExclusiveGuard<'_>, at: usize, id: u64) -> Result<()> {
        if !self.may_be_freed(id) {
            self.leave(parent, id, "it is another's, or there is none");
            return Ok(());
        }
        let is_inner = parent.node().level() > 1;
        if self.in_doubt && !is_inner {
            let Some(left) = self.looks_left.checked_sub(1) else {
                self.leave(parent, id, "too many are in doubt");
                return Ok(());
            };
            self.looks_left = left;
        }
        let child = match is_inner || self.in_doubt {
            // A page that is in memory without a reference from its parent may be another tree's root.
            false => self.pool.pin_resident(PageId(id)),
            true => match pin(self.pool, PageId(id)) {
                Ok(child) => Some(child),
                Err(error) if cannot_be_read(&error) => {
                    // The pages below it can't be found: their space is lost.
                    tracing::warn!("{error}");
                    if self.in_doubt && !is_planted(PlantedFault::FreeByName) {
                        return Ok(());
                    }
                    None
                }
                Err(error) => return Err(error),
            },
        };
        if let Some(child) = child {
            let what = buffer::mismatch(parent.bytes(), at, child.shared().bytes());
            if let Some(what) = what.filter(|_| !is_planted(PlantedFault::FreeByName)) {
                self.leave(parent, id, &what);
                return Ok(());
            }
            self.met.add(id);
            self.free_below(child.frame())?;
        }
        self.met.add(id);
        self.pool.drop_unparented(id)?;
        self.pool.store.free_page(PageId(id));
        Ok(())
    }

    /// Returns whether a page that a node names can be a page of this tree that is neither in memory nor free.
    fn may_be_freed(&self, id: u64) -> bool {
        is_planted(PlantedFault::FreeByName)
            || !self.met.has(id) && self.pool.store.has_place(PageId(id))
    }

    /// Returns whether a node names the same page twice, or a page that can't be its child.
    fn is_contradicted(&self, node: Node<'_>) -> bool {
        let away = |i| match buffer::child(node.child(i)) {
            Child::Page(id) => Some(id),
            Child::Frame(_) => None,
        };
        let mut ids: Vec<u64> = (0..=node.count()).filter_map(away).collect();
        ids.sort_unstable();
        ids.windows(2).any(|pair| pair[0] == pair[1])
            || ids.iter().any(|id| !self.may_be_freed(*id))
    }

    /// Leaves a page behind, and puts the rest of the tree in doubt.
    fn leave(&mut self, parent: &ExclusiveGuard<'_>, id: u64, what: &str) {
        self.in_doubt = true;
        let parent = parent.page();
        tracing::warn!("page {id}, which page {parent} of a tree that goes names, is left: {what}");
    }
}

/// A set of pages, one bit each, so that it is small even for a tree of very many leaves.
#[derive(Default)]
struct PageSet(Vec<u64>);

impl PageSet {
    fn add(&mut self, id: u64) {
        let word = id as usize / 64;
        if word >= self.0.len() {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (id % 64);
    }

    fn has(&self, id: u64) -> bool {
        let word = self.0.get(id as usize / 64);
        word.is_some_and(|word| word >> (id % 64) & 1 == 1)
    }
}
