//! Splitting full nodes, from the leaf upwards as far as needed.

use super::descend::{Located, Route};
use super::Tree;
use crate::buffer::{BufferPool, Child, ExclusiveGuard};
use crate::error::{Error, Result};
use crate::ids::FrameId;
use crate::node::{Node, SplitPlan};
use crate::planted::{is_planted, PlantedFault};
use crate::sync::atomic::Ordering;
use crate::{buffer, node};

/// The content for which a node needs room.
#[derive(Clone, Copy)]
enum Need<'a> {
    /// A value of this many bytes under the key.
    Value(usize),
    /// A separator.
    Separator(&'a [u8]),
}

impl Need<'_> {
    fn is_met(self, node: Node<'_>, key: &[u8]) -> bool {
        match self {
            Need::Value(len) => {
                let (at, found) = node.lower_bound(key);
                node.fits(key, found.then_some(at), len)
            }
            Need::Separator(separator) => node.fits_separator(separator),
        }
    }

    fn plan(self, node: Node<'_>, key: &[u8]) -> Result<SplitPlan> {
        let plan = match self {
            Need::Value(_) => node::plan_leaf(node, key),
            Need::Separator(_) => node::plan_inner(node, key),
        };
        plan.ok_or_else(|| Error::Internal("a node with one record has no room".into()))
    }
}

/// The result of one attempt.
enum Attempt {
    /// There is room now, or the node does not exist any more.
    Done,
    /// The node was split; the caller must check whether there is room now.
    Split,
    /// Another thread has changed or latched a node meanwhile: try again.
    Again,
    /// The parent has no room for this separator.
    ParentFull(Vec<u8>),
}

impl Tree {
    /// Splits the key's leaf, unless it has room for `max_value` bytes under the key by now.
    pub(super) fn split_leaf(&self, key: &[u8], max_value: usize) -> Result<()> {
        self.split(key, 0, Need::Value(max_value))
    }

    fn split(&self, key: &[u8], level: u8, need: Need<'_>) -> Result<()> {
        loop {
            // Get new pages first: making a frame free may write a page, which must not be done under latches.
            let attempt = match self.locate(Route::Key(key), level)? {
                Located::NotResident { .. } | Located::Nowhere => Attempt::Done,
                Located::Root { .. } => {
                    let left = self.pool.new_page()?;
                    let right = match self.pool.new_page() {
                        Ok(right) => right,
                        Err(error) => {
                            self.pool.discard_new(left);
                            return Err(error);
                        }
                    };
                    self.split_root(key, level, need, left, right)?
                }
                Located::Child { place, frame } => {
                    // Save both images for a running checkpoint, before the nodes are latched exclusively.
                    if !is_planted(PlantedFault::UnsavedParent) {
                        self.pool.save_early(place.parent)?;
                    }
                    self.pool.save_early(frame)?;
                    let right = self.pool.new_page()?;
                    self.split_child(key, level, need, right)?
                }
            };
            match attempt {
                Attempt::Done => return Ok(()),
                Attempt::Split => {}
                Attempt::Again => crate::sync::spin_loop(),
                Attempt::ParentFull(separator) => {
                    self.split(key, level + 1, Need::Separator(&separator))?;
                }
            }
        }
    }

    /// Moves the right half of the key's node into `right`.
    fn split_child(
        &self,
        key: &[u8],
        level: u8,
        need: Need<'_>,
        mut right: ExclusiveGuard<'_>,
    ) -> Result<Attempt> {
        let attempt = self.try_split_child(key, level, need, &mut right);
        if !matches!(attempt, Ok(Attempt::Split)) {
            self.pool.discard_new(right);
        }
        attempt
    }

    fn try_split_child(
        &self,
        key: &[u8],
        level: u8,
        need: Need<'_>,
        right: &mut ExclusiveGuard<'_>,
    ) -> Result<Attempt> {
        let Some(ParentAndChild {
            mut parent,
            at,
            mut child,
        }) = self.latch_family(key, level)?
        else {
            return Ok(Attempt::Again);
        };
        if need.is_met(child.node(), key) {
            return Ok(Attempt::Done);
        }
        let plan = need.plan(child.node(), key)?;
        if !parent.node().fits_separator(&plan.separator) {
            return Ok(Attempt::ParentFull(plan.separator));
        }
        if !is_planted(PlantedFault::UnsavedParent) {
            parent.prepare()?;
        }
        child.prepare()?;
        let copy = *child.bytes();
        let (left_id, right_id) = (child.page().0, right.page().0);
        node::split(
            Node::new(&copy),
            &plan,
            (child.bytes_mut(), left_id),
            (right.bytes_mut(), right_id),
        );
        child.mark_dirty();
        set_parent(&self.pool, right);
        let state = right.state();
        state.parent.store(parent.frame(), Ordering::Relaxed);
        let word = buffer::resident(right.frame());
        parent
            .node_mut()
            .insert_separator(at, &plan.separator, word);
        parent.mark_dirty();
        Ok(Attempt::Split)
    }

    /// Moves the root's content down into two children: the root keeps its page.
    fn split_root(
        &self,
        key: &[u8],
        level: u8,
        need: Need<'_>,
        mut left: ExclusiveGuard<'_>,
        mut right: ExclusiveGuard<'_>,
    ) -> Result<Attempt> {
        let mut root: ExclusiveGuard<'_> = match self.latch_root() {
            Ok(root) => root,
            Err(error) => {
                self.pool.discard_new(left);
                self.pool.discard_new(right);
                return Err(error);
            }
        };
        let plan = if root.node().level() != level {
            Ok(Err(Attempt::Again))
        } else if need.is_met(root.node(), key) {
            Ok(Err(Attempt::Done))
        } else {
            root.prepare()
                .and_then(|()| need.plan(root.node(), key))
                .map(Ok)
        };
        let plan = match plan {
            Ok(Ok(plan)) => plan,
            other => {
                drop(root);
                self.pool.discard_new(left);
                self.pool.discard_new(right);
                return other.map(|attempt| attempt.err().unwrap_or(Attempt::Again));
            }
        };
        let (left_id, right_id) = (left.page().0, right.page().0);
        node::split(
            root.node(),
            &plan,
            (left.bytes_mut(), left_id),
            (right.bytes_mut(), right_id),
        );
        for half in [&left, &right] {
            set_parent(&self.pool, half);
            let state = half.state();
            state.parent.store(root.frame(), Ordering::Relaxed);
        }
        let (left_word, right_word) = (
            buffer::resident(left.frame()),
            buffer::resident(right.frame()),
        );
        node::write_root(root.bytes_mut(), &plan.separator, left_word, right_word);
        root.mark_dirty();
        Ok(Attempt::Split)
    }

    /// Latches the node of `level` that takes the key, and its parent.
    ///
    /// `None` if the node is the root, or another thread has latched or changed the parent.
    pub(super) fn latch_family(&self, key: &[u8], level: u8) -> Result<Option<ParentAndChild<'_>>> {
        let Located::Child { place, frame } = self.locate(Route::Key(key), level)? else {
            return Ok(None);
        };
        let Some(parent) = ExclusiveGuard::try_upgrade(&self.pool, place.parent, place.version)
        else {
            return Ok(None);
        };
        // Waiting downwards is safe: a thread that has the child latched waits for no latch above it.
        let child = ExclusiveGuard::lock(&self.pool, frame);
        Ok(Some(ParentAndChild {
            parent,
            at: place.at,
            child,
        }))
    }
}

/// A node and its parent, latched.
pub(super) struct ParentAndChild<'a> {
    pub parent: ExclusiveGuard<'a>,
    /// The number of the child in the parent.
    pub at: usize,
    pub child: ExclusiveGuard<'a>,
}

/// Makes the node the parent of its children in memory; their old parent is latched.
pub(super) fn set_parent(pool: &BufferPool, guard: &ExclusiveGuard<'_>) {
    for frame in resident_children(guard.node()) {
        let state = pool.frames.state(frame);
        state.parent.store(guard.frame(), Ordering::Relaxed);
    }
}

/// Returns the frames of a node's children that are in memory.
fn resident_children<'a>(node: Node<'a>) -> impl Iterator<Item = FrameId> + 'a {
    let children = if node.is_leaf() { 0 } else { node.count() + 1 };
    (0..children).filter_map(move |i| match buffer::child(node.child(i)) {
        Child::Frame(frame) => Some(frame),
        Child::Page(_) => None,
    })
}
