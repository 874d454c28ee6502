//! Giving a whole tree's pages back.
//!
//! A child's number may be wrong though its node's checksum is right, and may be that of another table's page. What is
//! freed by mistake is lost, what stays behind is only room: so where there is doubt a page stays.

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

/// So many leaves are read of a tree that has contradicted itself, before the others stay behind: nobody else
/// works meanwhile.
const MOST_LOOKED_AT: usize = 4_096;

/// Whether a page can't be read: for damage, or because the read has failed. It is no reason to keep a table
/// that is to go.
pub fn cannot_be_read(error: &Error) -> bool {
    match error {
        Error::Corrupt { .. } => true,
        // A write that fails is another thing: what is given up for it could be found.
        Error::Io { action, .. } => {
            (*action == "read" || is_planted(PlantedFault::LateTreeImages))
                && !is_planted(PlantedFault::LogBeforeRoots)
        }
        _ => false,
    }
}

impl Tree {
    /// Saves what a running checkpoint needs of the tree: this can fail, and [`Tree::destroy`] in the same stay in
    /// the barrier need not do it then. Nobody else may be changing the tree.
    pub fn save_images(&self) -> Result<()> {
        // Without its root in memory, nothing of the tree is there.
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

    /// Frees every page, but those below an inner node that can't be read, and those that are not what their parents say.
    /// Leaves that are not in memory are not read, unless the tree has contradicted itself: their parents name them.
    /// Nobody else may be using the tree, now or later. Inside the barrier, as any change.
    pub fn destroy(&self) -> Result<()> {
        let root = {
            let _finding = self.finding_root.lock();
            if self.destroyed.load(Ordering::Relaxed) {
                return Ok(());
            }
            let root = pin(&self.pool, self.root)?;
            check_root(&self.pool, &root.shared(), self.id, self.root)?;
            // Before its frame and its number can be another page's.
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

/// Pins a node. A read that fails is tried once more: what is below is nobody's for ever otherwise.
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
    /// The root, what is in memory below it, and what has been freed: no number of a page that is away is among these.
    met: PageSet,
    /// The tree has contradicted itself: what its nodes say of leaves is looked at, too.
    in_doubt: bool,
    /// At so many.
    looks_left: usize,
}

impl Freeing<'_> {
    /// Notes which pages below the node in the frame are in memory.
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

    /// Frees everything below the node in the frame, which stays where it is meanwhile: it is
    /// pinned, or its parent is latched.
    fn free_below(&mut self, frame: FrameId) -> Result<()> {
        // Latched, so that no child can be evicted.
        let mut guard = ExclusiveGuard::lock(self.pool, frame);
        let node = guard.node();
        if node.is_leaf() {
            return Ok(());
        }
        // Its image names the children: it must be saved while they still have their frames.
        guard.prepare()?;
        // Before the first of them is freed.
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
        // It names nobody any more: neither may a read that was asked for ahead find its way from here.
        guard.bytes_mut()[node::KIND] = 0;
        Ok(())
    }

    /// Frees a child that is not in memory, and what is below it.
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
            // A page that is in memory though no parent has it there may be another tree's root.
            false => self.pool.pin_resident(PageId(id)),
            true => match pin(self.pool, PageId(id)) {
                Ok(child) => Some(child),
                Err(error) if cannot_be_read(&error) => {
                    // What is below it can't be found: lost space.
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

    /// Whether a page that a node names can be one of this tree that is not in memory, and not yet free.
    fn may_be_freed(&self, id: u64) -> bool {
        is_planted(PlantedFault::FreeByName)
            || !self.met.has(id) && self.pool.store.has_place(PageId(id))
    }

    /// Whether a node names the same page twice, or one that can't be its child.
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

    /// A page stays behind, and what the tree says is doubted from now on.
    fn leave(&mut self, parent: &ExclusiveGuard<'_>, id: u64, what: &str) {
        self.in_doubt = true;
        let parent = parent.page();
        tracing::warn!("page {id}, which page {parent} of a tree that goes names, is left: {what}");
    }
}

/// A set of pages: a bit each. So it is small also for a tree of very many leaves.
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
