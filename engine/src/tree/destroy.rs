//! Giving a whole tree's pages back.

use super::Tree;
use crate::error::{Error, Result};
use crate::ids::PageId;
use crate::page::{self, Child, ExclusiveGuard, FrameId, PinnedPage, SharedGuard};
use crate::planted::{is_planted, PlantedFault};
use crate::sync::atomic::Ordering;

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
    /// the gate need not do it then. Nobody else may be changing the tree.
    pub fn save_images(&self) -> Result<()> {
        // Without its root in memory, nothing of the tree is there.
        let root = self.core.pin_resident(self.root);
        root.map_or(Ok(()), |root| self.save_from(root.frame()))
    }

    /// Saves the node in the frame, and those below it that are in memory.
    fn save_from(&self, frame: FrameId) -> Result<()> {
        self.core.save_early(frame)?;
        // Latched, so that no child can be evicted.
        let guard = SharedGuard::lock(&self.core, frame);
        let node = guard.node();
        if node.is_leaf() {
            return Ok(());
        }
        (0..=node.count()).try_for_each(|i| match page::child(node.child(i)) {
            Child::Frame(child) => self.save_from(child),
            Child::Page(_) => Ok(()),
        })
    }

    /// Frees every page, but those below an inner node that can't be read. Leaves that are not in memory are not read: their parents name them.
    /// Nobody else may be using the tree, now or later. Inside the gate, as any change.
    pub fn destroy(&self) -> Result<()> {
        let root = {
            let _finding = self.finding_root.lock();
            if self.destroyed.load(Ordering::Relaxed) {
                return Ok(());
            }
            let root = self.pin_inner(self.root)?;
            // Before its frame and its number can be another page's.
            self.destroyed.store(true, Ordering::Release);
            root
        };
        let freed = self.free_children(root.frame());
        drop(root);
        freed?;
        self.core.drop_unparented(self.root.0)?;
        self.core.store.free_page(self.root);
        Ok(())
    }

    /// Pins a node. A read that fails is tried once more: what is below is nobody's for ever otherwise.
    fn pin_inner(&self, id: PageId) -> Result<PinnedPage> {
        match self.core.pin_page(id) {
            Err(error) if cannot_be_read(&error) && !is_planted(PlantedFault::ReadOnceToFree) => {
                self.core.pin_page(id)
            }
            pinned => pinned,
        }
    }

    /// Frees everything below the node in the frame, which stays where it is meanwhile: it is
    /// pinned, or its parent is latched.
    fn free_children(&self, frame: FrameId) -> Result<()> {
        // Latched, so that no child can be evicted.
        let mut guard = ExclusiveGuard::lock(&self.core, frame);
        let node = guard.node();
        if node.is_leaf() {
            return Ok(());
        }
        // Its image names the children: it must be saved while they still have their frames.
        guard.prepare()?;
        for i in 0..=node.count() {
            match page::child(node.child(i)) {
                Child::Frame(child) => {
                    self.free_children(child)?;
                    let child = ExclusiveGuard::lock(&self.core, child);
                    self.core.free_latched(child)?;
                }
                Child::Page(id) => {
                    if node.level() > 1 {
                        match self.pin_inner(PageId(id)) {
                            Ok(child) => self.free_children(child.frame())?,
                            // What is below it can't be found: lost space.
                            Err(error) if cannot_be_read(&error) => tracing::warn!("{error}"),
                            Err(error) => return Err(error),
                        }
                    }
                    self.core.drop_unparented(id)?;
                    self.core.store.free_page(PageId(id));
                }
            }
        }
        // It names nobody any more: neither may a read that was asked for ahead find its way from here.
        guard.bytes_mut()[page::KIND] = 0;
        Ok(())
    }
}
