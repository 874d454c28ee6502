//! The descent from the root to a node: it takes no latch on the way, and one at the end.

use crate::buffer;
use crate::buffer::{Child, ChildPlace, Latched, LeafRead, ScanExtent};
use crate::error::{Error, Result};
use crate::ids::{FrameId, PageId};
use crate::knobs;
use crate::node::{LeafLayoutHint, SearchKey, ValueCopy};

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

impl Tree {
    /// Finds the node of `level` on the route, and loads the missing nodes on the way.
    #[inline]
    pub(super) fn locate(&self, route: Route<'_>, level: u8) -> Result<Located> {
        let frames = &self.pool.frames;
        let key = SearchKey::new(route.key());
        let mut brought = Brought::default();
        'restart: loop {
            let root = self.seen_root()?;
            let (mut frame, mut state, mut version) = (root.frame, root.state, root.version);
            let mut node = frames.optimistic(frame);
            let mut node_level = node.level();
            let height = node_level;
            if node_level <= level {
                if !state.latch.still(version) {
                    continue 'restart;
                }
                return Ok(if node_level == level {
                    Located::Root { frame }
                } else {
                    Located::Nowhere
                });
            }
            loop {
                let seen = match route {
                    Route::Key(_) | Route::InMemory(..) | Route::Forward(..) => {
                        node.child_for(key, None)
                    }
                    Route::Below(_) | Route::Backward(..) => node.child_below(key),
                    Route::Last => node.last_child(),
                };
                if let (Child::Frame(child), 1) = (buffer::child(seen.word), node_level) {
                    // If the record itself is wanted, prefetch its bytes, too.
                    let record = match route {
                        Route::InMemory(_, shape) => {
                            node.part_within(&seen).map(|before| (before, shape))
                        }
                        _ => None,
                    };
                    match record {
                        Some((before, shape)) => frames.prefetch_record(child, before, shape),
                        None => frames.prefetch(child),
                    }
                }
                if !state.latch.still(version) {
                    continue 'restart;
                }
                let place = ChildPlace {
                    parent: frame,
                    version,
                    at: seen.at,
                };
                // The version holds: all that was read is of one state of the node.
                match buffer::child(seen.word) {
                    Child::Page(id) if node_level == 1 && matches!(route, Route::InMemory(..)) => {
                        return Ok(Located::NotResident { place, id });
                    }
                    Child::Page(id) => {
                        let leaf = usize::from(!matches!(route, Route::InMemory(..)));
                        let way = usize::from(height - level) + leaf;
                        if brought.is_in_vain(way) && !self.pool.is_brought(id) {
                            self.pool.make_free(way, &mut brought.waits_left)?;
                            brought.nodes = 0;
                            continue 'restart;
                        }
                        brought.nodes += 1;
                        let extent = route
                            .extent()
                            .filter(|_| node_level == 1 && !brought.has_made_free());
                        if let Some(extent) = extent {
                            let forward = matches!(route, Route::Forward(..));
                            self.pool.read_ahead(place, id, extent, forward);
                        }
                        let passing = extent.is_some_and(ScanExtent::is_long);
                        let made = self.pool.make_resident(place, id, passing);
                        made.inspect_err(|error| self.note_contradiction(id, error))?;
                        continue 'restart;
                    }
                    Child::Frame(child) if node_level == level + 1 => {
                        return Ok(Located::Child {
                            place,
                            frame: child,
                        });
                    }
                    Child::Frame(child) => {
                        let child_state = frames.state(child);
                        let child_version = child_state.latch.optimistic();
                        // The parent still refers to the child: so the child's version is of the right page.
                        if !state.latch.still(version) {
                            continue 'restart;
                        }
                        child_state.note_use();
                        frame = child;
                        state = child_state;
                        version = child_version;
                        node = frames.optimistic(frame);
                        let below = node.level();
                        if below.checked_add(1) != Some(node_level) {
                            // The level read is torn, or the page is being changed.
                            continue 'restart;
                        }
                        node_level = below;
                    }
                }
            }
        }
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
        let key = SearchKey::new(key);
        let root = self.root_in_memory()?;
        let (mut state, mut version) = (root.state, root.version);
        let mut node = frames.optimistic(root.frame);
        let mut level = node.level();
        let mut before = None;
        while level > 0 {
            let seen = node.child_for(key, before);
            let Child::Frame(child) = buffer::child(seen.word) else {
                return None;
            };
            before = node.part_within(&seen);
            if level == 1 {
                match before {
                    Some(before) => frames.prefetch_record(child, before, shape),
                    None => frames.prefetch(child),
                }
            }
            let child_state = frames.state(child);
            let child_version = child_state.latch.optimistic();
            // The parent still refers to the child: so the child's version is of the right page.
            if !state.latch.still(version) {
                return None;
            }
            child_state.note_use();
            (state, version) = (child_state, child_version);
            node = frames.optimistic(child);
            level -= 1;
            if node.level() != level {
                return None;
            }
        }
        let read = node.copy_value(key, before, out);
        node.note_shape(shape);
        state.latch.still(version).then_some(read)
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
