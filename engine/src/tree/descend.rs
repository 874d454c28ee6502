//! The descent from the root to a node: it takes no latch on the way, and one at the end.

use crate::buffer;
use crate::buffer::{
    Child, ChildPlace, FrameState, Frames, Latched, LeafRead, OptimisticNode, ScanExtent,
};
use crate::error::{Error, Result};
use crate::ids::{FrameId, LatchVersion, PageId};
use crate::knobs;
use crate::node::{LeafLayoutHint, SearchKey, ValueCopy};

use super::root::RootSeen;
use super::Tree;
use crate::planted::{is_planted, PlantedFault};
use crate::sync::atomic::Ordering;

/// The target of a descent.
#[derive(Clone, Copy, Debug)]
pub(super) enum Route<'a> {
    /// The node that takes the key.
    Key(&'a [u8]),
    /// The node that takes the keys right below the key.
    Below(&'a [u8]),
    /// Like [`Route::Key`], but does not load a leaf from disk; returns [`Located::NotResident`].
    ///
    /// It has the layout hint of the leaves read before.
    InMemory(&'a [u8], &'a LeafLayoutHint),
    /// The last node.
    Last,
    /// Like [`Route::Key`], for a cursor that will also need the leaves behind.
    Forward(&'a [u8], ScanExtent<'a>),
    /// Like [`Route::Below`], for a cursor that will also need the leaves before.
    Backward(&'a [u8], ScanExtent<'a>),
}

impl Route<'_> {
    /// Returns the key; empty for the last node.
    #[inline]
    fn key(&self) -> &[u8] {
        match self {
            Route::Key(key)
            | Route::Below(key)
            | Route::InMemory(key, _)
            | Route::Forward(key, _)
            | Route::Backward(key, _) => key,
            Route::Last => &[],
        }
    }

    /// Returns the extent of the cursor's scan, if the route is a cursor's.
    fn extent(&self) -> Option<ScanExtent<'_>> {
        match self {
            Route::Forward(_, extent) | Route::Backward(_, extent) => Some(*extent),
            Route::Key(_) | Route::Below(_) | Route::InMemory(..) | Route::Last => None,
        }
    }
}

/// A node that a descent has found but not latched: it is this node only while the place's version holds.
#[derive(Clone, Copy, Debug)]
pub(super) enum Located {
    /// The root, which may have left the frame since: [`Tree::latch_root_in`] checks this.
    Root {
        /// The root's frame.
        frame: FrameId,
    },
    /// A child.
    Child {
        /// Where its parent refers to it.
        place: ChildPlace,
        /// The child's frame.
        frame: FrameId,
    },
    /// A leaf that is not in memory; only for [`Route::InMemory`].
    NotResident {
        /// Where its parent refers to it.
        place: ChildPlace,
        /// The leaf's page.
        id: u64,
    },
    /// The tree is not that high.
    Nowhere,
}

/// Nodes that a descent has loaded; it pins none of them, so they may evict one another.
#[derive(Default)]
struct Brought {
    /// Nodes loaded since the descent began, or since it last made frames free for its whole path.
    nodes: usize,
    /// Waits that are left until it gives up; `None` as long as it has made no frames free.
    waits_left: Option<u64>,
}

impl Brought {
    /// Returns whether the descent has loaded so many more nodes than its path has that it must make frames free for
    /// all at once.
    fn is_in_vain(&self, way: usize) -> bool {
        self.nodes >= way + knobs::brought_in_vain() && !is_planted(PlantedFault::BringEachForOther)
    }

    /// Returns whether the descent has made frames free for its path, and only for it: then it reads nothing ahead.
    fn has_made_free(&self) -> bool {
        self.waits_left.is_some()
    }
}

/// A node on a descent, read without a latch: what was read counts only while its version holds.
struct Visit<'a> {
    frame: FrameId,
    state: &'a FrameState,
    version: LatchVersion,
    node: OptimisticNode<'a>,
    level: u8,
    /// The share of the node's records that most likely come before the key, by its parent, in 65,536ths.
    before: Option<usize>,
}

/// The way from a node to its child on a route.
enum Step {
    /// The child is in memory, and is the node visited now.
    Down,
    /// The child is of the level at which the descent ends; it is not visited.
    Found(ChildPlace, FrameId),
    /// The child is not in memory.
    NotResident(ChildPlace, u64),
    /// A node was changing, so what was read of it does not count.
    Changed,
}

impl<'a> Visit<'a> {
    /// Visits the root.
    #[inline(always)]
    fn root(frames: &'a Frames, root: &RootSeen<'a>) -> Visit<'a> {
        let node = frames.optimistic(root.frame);
        Visit {
            frame: root.frame,
            state: root.state,
            version: root.version,
            level: node.level(),
            node,
            before: None,
        }
    }

    /// Returns whether nothing has changed the node since it was visited.
    #[inline(always)]
    fn holds(&self) -> bool {
        self.state.latch.still(self.version)
    }

    /// Goes to the child on the route, but not to a node of level `end`.
    ///
    /// Of a leaf it prefetches what a search in it reads first.
    #[inline(always)]
    fn step(
        &mut self,
        frames: &'a Frames,
        route: Route<'_>,
        key: SearchKey<'_>,
        end: Option<u8>,
    ) -> Step {
        let seen = match route {
            Route::Key(_) | Route::InMemory(..) | Route::Forward(..) => {
                self.node.child_for(key, self.before)
            }
            Route::Below(_) | Route::Backward(..) => self.node.child_below(key),
            Route::Last => self.node.last_child(),
        };
        // Only a search for a record uses it.
        if let Route::InMemory(..) = route {
            self.before = self.node.part_within(&seen);
        }
        let place = ChildPlace {
            parent: self.frame,
            version: self.version,
            at: seen.at,
        };
        let child = match buffer::child(seen.word) {
            Child::Frame(child) => child,
            Child::Page(id) => {
                return match self.holds() {
                    true => Step::NotResident(place, id),
                    false => Step::Changed,
                }
            }
        };
        if self.level == 1 {
            match (route, self.before) {
                // The record itself is wanted, so its bytes are prefetched, too.
                (Route::InMemory(_, shape), Some(before)) => {
                    frames.prefetch_record(child, before, shape);
                }
                _ => frames.prefetch(child),
            }
        }
        let below = self.level.checked_sub(1);
        if below == end {
            return match self.holds() {
                true => Step::Found(place, child),
                false => Step::Changed,
            };
        }
        let state = frames.state(child);
        let version = match state.latch.try_optimistic() {
            Some(version) => version,
            // If the parent has changed, the reference may name any frame, and this thread may hold its latch.
            None if !self.holds() => return Step::Changed,
            None => state.latch.optimistic(),
        };
        // The parent still refers to the child: so the child's version is of the right page.
        if !self.holds() {
            return Step::Changed;
        }
        state.note_use();
        self.frame = child;
        self.state = state;
        self.version = version;
        self.node = frames.optimistic(child);
        match below {
            Some(level) if self.node.level() == level => {
                self.level = level;
                Step::Down
            }
            // The level read is torn, or the page is being changed.
            _ => Step::Changed,
        }
    }
}

impl Tree {
    /// Finds the node of `level` on the route, and loads the missing nodes on the way.
    #[inline]
    pub(super) fn locate(&self, route: Route<'_>, level: u8) -> Result<Located> {
        let frames = &self.pool.frames;
        let key = SearchKey::new(route.key());
        let mut brought = Brought::default();
        'restart: loop {
            let mut visit = Visit::root(frames, &self.seen_root()?);
            let height = visit.level;
            if height <= level {
                if !visit.holds() {
                    continue 'restart;
                }
                return Ok(if height == level {
                    Located::Root { frame: visit.frame }
                } else {
                    Located::Nowhere
                });
            }
            loop {
                match visit.step(frames, route, key, Some(level)) {
                    Step::Down => {}
                    Step::Found(place, frame) => return Ok(Located::Child { place, frame }),
                    Step::NotResident(place, id)
                        if visit.level == 1 && matches!(route, Route::InMemory(..)) =>
                    {
                        return Ok(Located::NotResident { place, id });
                    }
                    Step::NotResident(place, id) => {
                        let way = usize::from(height - level)
                            + usize::from(!matches!(route, Route::InMemory(..)));
                        self.load(route, way, visit.level, (place, id), &mut brought)?;
                        continue 'restart;
                    }
                    Step::Changed => continue 'restart,
                }
            }
        }
    }

    /// Loads a node on a route whose path has `way` nodes, or makes frames free for all of them.
    fn load(
        &self,
        route: Route<'_>,
        way: usize,
        parent_level: u8,
        (place, id): (ChildPlace, u64),
        brought: &mut Brought,
    ) -> Result<()> {
        if brought.is_in_vain(way) && !self.pool.is_brought(id) {
            self.pool.make_free(way, &mut brought.waits_left)?;
            brought.nodes = 0;
            return Ok(());
        }
        brought.nodes += 1;
        let extent = route
            .extent()
            .filter(|_| parent_level == 1 && !brought.has_made_free());
        if let Some(extent) = extent {
            let forward = matches!(route, Route::Forward(..));
            self.pool.read_ahead(place, id, extent, forward);
        }
        let passing = extent.is_some_and(ScanExtent::is_long);
        let made = self.pool.make_resident(place, id, passing);
        made.inspect_err(|error| self.note_contradiction(id, error))
    }

    /// Notes that parent and child contradict each other, if a child was refused for this.
    ///
    /// The child is in memory then, because it could be read.
    #[cold]
    fn note_contradiction(&self, id: u64, error: &Error) {
        let is_whole = || self.pool.pin_resident(PageId(id)).is_some();
        if matches!(error, Error::Corrupt { .. }) && is_whole() {
            self.contradicted.store(true, Ordering::Relaxed);
        }
    }

    /// Copies a key's value, or its prefix, without any latch; `None` if a node was changing or is not in memory.
    #[inline(always)]
    pub(super) fn copy_unlatched(
        &self,
        key: &[u8],
        out: &mut impl ValueCopy,
        shape: &mut LeafLayoutHint,
    ) -> Option<LeafRead> {
        let frames = &self.pool.frames;
        let search = SearchKey::new(key);
        let mut visit = Visit::root(frames, &self.root_in_memory()?);
        while visit.level > 0 {
            let Step::Down = visit.step(frames, Route::InMemory(key, shape), search, None) else {
                return None;
            };
        }
        let read = visit.node.copy_value(search, visit.before, out);
        visit.node.note_shape(shape);
        visit.holds().then_some(read)
    }

    /// Latches a child that [`Tree::locate`] has found, if its parent has not changed since.
    #[inline]
    pub(super) fn latch_found<'a, G: Latched<'a>>(&'a self, found: Located) -> Option<G> {
        let Located::Child { place, frame } = found else {
            return None;
        };
        let guard = G::latch(&self.pool, frame);
        let parent = self.pool.frames.state(place.parent);
        if !parent.latch.still(place.version) {
            return None;
        }
        self.pool.frames.state(frame).note_use();
        Some(guard)
    }

    /// Latches the node of `level` on the route; `None` if the tree is not that high.
    #[inline]
    pub(super) fn latch_node<'a, G: Latched<'a>>(
        &'a self,
        route: Route<'_>,
        level: u8,
    ) -> Result<Option<G>> {
        loop {
            match self.locate(route, level)? {
                Located::Child { place, frame } => {
                    let guard = G::latch(&self.pool, frame);
                    // The parent hasn't changed since: so this is the right node, and stays so while it is latched.
                    if self
                        .pool
                        .frames
                        .state(place.parent)
                        .latch
                        .still(place.version)
                        || is_planted(PlantedFault::UncheckedChild)
                    {
                        match route.extent().filter(|_| level == 0) {
                            Some(extent) => self.pool.note_pass(frame, extent),
                            None => self.pool.frames.state(frame).note_use(),
                        }
                        return Ok(Some(guard));
                    }
                }
                Located::Root { frame } => {
                    if let Some(guard) = self.latch_root_in::<G>(frame) {
                        if guard.node().level() == level {
                            return Ok(Some(guard));
                        }
                    }
                }
                // The routes that latch load a missing leaf.
                Located::NotResident { .. } | Located::Nowhere => return Ok(None),
            }
        }
    }

    /// Latches the leaf on the route.
    #[inline]
    pub(super) fn latch_leaf<'a, G: Latched<'a>>(&'a self, route: Route<'_>) -> Result<G> {
        loop {
            // Every tree has leaves: `None` can't come.
            if let Some(guard) = self.latch_node(route, 0)? {
                return Ok(guard);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;
    use crate::buffer::ExclusiveGuard;
    use crate::tree::tests::{put, Bench};

    /// A reference read from a node that has changed since may name any frame, also one that this thread has latched.
    #[test]
    fn a_descent_waits_for_no_latch_that_a_changed_node_names() {
        let bench = Bench::new(64);
        let tree = bench.tree(1);
        for key in 0..400_u32 {
            put(&tree, &key.to_be_bytes(), &[7; 100]);
        }
        let (told, step) = mpsc::channel();
        // Where it waits, it waits forever, and the thread stays.
        std::thread::spawn(move || {
            let frames = &tree.pool.frames;
            let mut visit = Visit::root(frames, &tree.seen_root().unwrap());
            assert_eq!(visit.level, 1);
            let key = 7_u32.to_be_bytes();
            let leaf = match tree.locate(Route::Key(&key), 0).unwrap() {
                Located::Child { frame, .. } => frame,
                other => panic!("{other:?}"),
            };
            drop(ExclusiveGuard::lock(&tree.pool, visit.frame));
            let _own = ExclusiveGuard::lock(&tree.pool, leaf);
            let step = visit.step(frames, Route::Key(&key), SearchKey::new(&key), None);
            told.send(matches!(step, Step::Changed)).unwrap();
        });
        // Ended: something is wrong with what it needs; time over: it waits for its own latch.
        assert_eq!(step.recv_timeout(Duration::from_secs(60)), Ok(true));
    }
}
