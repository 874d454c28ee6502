//! Merging underfull nodes with a neighbour. No merge is ever needed: any obstacle ends the attempt.

use super::descend::{Located, Route};
use super::split::{set_parent, ParentAndChild};
use super::Tree;
use crate::buffer::{Child, ExclusiveGuard, SharedGuard};
use crate::error::Result;
use crate::{buffer, knobs, node};

impl Tree {
    /// Merges the node of `level` that takes the key with a neighbour, if one of them is underfull and both fit into
    /// one.
    ///
    /// If the parent becomes underfull by this, the parent is next.
    pub(super) fn merge_around(&self, key: &[u8], level: u8) {
        for level in level.. {
            match self.merge_once(key, level) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    tracing::debug!(%error, "an underfull node stays as it is");
                    break;
                }
            }
        }
        if let Err(error) = self.lower_root() {
            tracing::debug!(%error, "a root with one child stays as it is");
        }
    }

    /// Tries a merge at one level, and returns whether the parent has become underfull by it.
    fn merge_once(&self, key: &[u8], level: u8) -> Result<bool> {
        if let Located::Child { place, frame } = self.locate(Route::Key(key), level)? {
            self.pool.save_early(place.parent)?;
            self.pool.save_early(frame)?;
        }
        let Some(ParentAndChild {
            mut parent,
            at,
            child,
        }) = self.latch_family(key, level)?
        else {
            return Ok(false);
        };
        let count = parent.node().count();
        let neighbours = [at.checked_sub(1), (at < count).then_some(at + 1)];
        for neighbour_at in neighbours.into_iter().flatten() {
            let Child::Frame(frame) = buffer::child(parent.node().child(neighbour_at)) else {
                continue;
            };
            let Some(neighbour) = ExclusiveGuard::try_lock(&self.pool, frame) else {
                continue;
            };
            if child.node().used() >= knobs::merge_below()
                && neighbour.node().used() >= knobs::merge_below()
            {
                continue;
            }
            let left_at = at.min(neighbour_at);
            let between = parent.node().key(left_at);
            let (left, right) = if left_at == at {
                (&child, &neighbour)
            } else {
                (&neighbour, &child)
            };
            let Some(joined) = node::merge(left.node(), right.node(), &between) else {
                continue;
            };
            parent.prepare()?;
            left.prepare()?;
            right.prepare()?;
            let (mut left, right) = if left_at == at {
                (child, neighbour)
            } else {
                (neighbour, child)
            };
            *left.bytes_mut() = *joined;
            left.mark_dirty();
            set_parent(&self.pool, &left);
            parent.node_mut().remove_separator(left_at);
            parent.mark_dirty();
            // No parent refers to the right node, and its image is saved.
            self.pool.free_latched(right)?;
            return Ok(parent.node().used() < knobs::merge_below());
        }
        Ok(false)
    }

    /// Moves the content of the root's only child up into the root, as long as the root has only one.
    fn lower_root(&self) -> Result<()> {
        loop {
            let (only, root_frame) = {
                let root: SharedGuard<'_> = self.latch_root()?;
                let node = root.node();
                if node.is_leaf() || node.count() > 0 {
                    return Ok(());
                }
                (node.child(0), root.frame())
            };
            let Child::Frame(frame) = buffer::child(only) else {
                return Ok(());
            };
            self.pool.save_early(root_frame)?;
            self.pool.save_early(frame)?;
            let mut root: ExclusiveGuard<'_> = self.latch_root()?;
            let node = root.node();
            if node.is_leaf() || node.count() > 0 || node.child(0) != only {
                return Ok(());
            }
            let child = ExclusiveGuard::lock(&self.pool, frame);
            root.prepare()?;
            child.prepare()?;
            node::collapse_root(child.node(), root.bytes_mut());
            root.mark_dirty();
            set_parent(&self.pool, &root);
            self.pool.free_latched(child)?;
        }
    }
}
