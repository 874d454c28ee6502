//! A scan through the leaves of a range of keys in order, by way of the nodes above them.
//!
//! The scan copies the node above, with the version of its latch. As long as that version holds, the node's children
//! are the leaves that the copy names, and the scan needs no descent for each. If the node has changed, the scan
//! descends again to where the next leaf begins. If all that the scan wants of a leaf is known already ([`ZoneMap`]),
//! the scan does not even latch the leaf: the leaf's version shows that the zone map is of this leaf.

use crate::{buffer, leaf_cache};
use std::ops::Range;

use smallvec::SmallVec;

use super::descend::Route;
use super::leaf_image::LeafImage;
use super::mini_page::MiniPage;
use super::Tree;
use crate::buffer::{BufferPool, Child, ChildPlace, ScanExtent, SharedGuard};
use crate::error::Result;
use crate::ids::{FrameId, LatchVersion, PAGE_SIZE};
use crate::leaf_cache::{LeafZoneMaps, ZoneMap};
use crate::node::{Node, Page};
use crate::planted::{is_planted, PlantedFault};

/// The place of a leaf scan.
enum Place {
    /// Before the leaf that takes `from`; the scan must descend to it.
    Descend,
    /// Among the children of the copied node.
    Above,
    /// Behind the range.
    Ended,
}

/// A scan through the leaves of a range.
pub struct LeafScan<'t> {
    tree: &'t Tree,
    /// Where the rest of the range begins; exact in [`Place::Descend`].
    from: Vec<u8>,
    /// The key before which the range ends; `None`: it ends with the tree.
    to: Option<Vec<u8>>,
    /// The columns whose zone maps let the scan skip a leaf, if any.
    zone_map_columns: Option<SmallVec<[usize; 4]>>,
    /// The columns whose mini-pages let the scan skip a leaf, if any.
    mini_page_columns: Option<u64>,
    /// A mini-page's bytes.
    copy: Vec<u8>,
    place: Place,
    /// A copy of the node above the leaves.
    above: Box<Page>,
    /// The node's frame, and the version at which it was copied; only in [`Place::Above`].
    frame: FrameId,
    version: LatchVersion,
    /// The next child, and the first and last child of the range.
    next: usize,
    first: usize,
    last: usize,
    /// The number of leaves that have been read.
    passed: usize,
    /// Whether the first and the last child may have records outside the range.
    first_is_partial: bool,
    ends_within: bool,
}

/// A leaf that the scan may skip; it is not latched.
pub struct SkippableLeaf<'a>(Known<'a>);

enum Known<'a> {
    /// In memory, at this version of its latch.
    Here(&'a BufferPool, FrameId, LatchVersion),
    /// Not in memory: its zone maps from the eviction.
    Left(LeafZoneMaps),
    /// Not in memory: the records within the range from its mini-page.
    MiniPage(MiniPage<'a>),
}

/// A leaf, latched shared.
pub struct Leaf<'a> {
    pool: &'a BufferPool,
    node: Node<'a>,
    frame: FrameId,
    /// The latch's version, which stays the same while the leaf is latched.
    version: LatchVersion,
    /// The frame of the next leaf, if it is in memory under the same node.
    behind: Option<FrameId>,
    /// The records within the range.
    pub range: Range<usize>,
    /// Whether the whole leaf, by its fences, is within the range.
    pub whole: bool,
    /// Whether the leaf was not in memory when the scan came to it.
    pub was_not_resident: bool,
}

/// The result of a step.
#[derive(Debug, PartialEq, Eq)]
pub enum Step<R> {
    /// The leaf was skipped: what is known of it will do.
    Known,
    /// The leaf was read.
    Read(R),
    /// There is no further leaf.
    End,
}

impl SkippableLeaf<'_> {
    /// Returns the zone map of a column; without a column, one that tells the number of records.
    #[inline]
    pub fn zone_map(&self, column: Option<usize>) -> Option<ZoneMap> {
        match &self.0 {
            Known::Here(pool, frame, version) => pool.zone_maps.get(*frame, *version, column),
            Known::Left(zone_maps) => leaf_cache::of_column(zone_maps, column),
            Known::MiniPage(_) => None,
        }
    }

    /// Returns the leaf's records within the range, if they are known from a mini-page.
    pub fn mini_page(&self) -> Option<&MiniPage<'_>> {
        match &self.0 {
            Known::MiniPage(page) => Some(page),
            Known::Here(..) | Known::Left(_) => None,
        }
    }
}

impl<'a> Leaf<'a> {
    /// Returns the newest transaction that changed a record of the leaf.
    pub fn max_txid(&self) -> u64 {
        self.node.max_txid()
    }

    /// Returns record `i`'s value.
    #[inline]
    pub fn value(&self, i: usize) -> &'a [u8] {
        self.node.value(i)
    }

    /// Puts record `i`'s key into `key`, which is cleared first.
    pub fn key(&self, i: usize, key: &mut Vec<u8>) {
        key.clear();
        self.node.append_key(i, key);
    }

    /// Fills `out` with record `i`'s key from byte `from` on; false if the key is too short.
    pub fn copy_key(&self, i: usize, from: usize, out: &mut [u8]) -> bool {
        self.node.copy_key(i, from, out)
    }

    /// Prefetches the `part`th of `parts` parts of the next leaf, without waiting for it.
    ///
    /// This is for a reader that asks for one part with each record, and will read all of that leaf.
    #[inline]
    pub fn prefetch_next(&self, part: usize, parts: usize) {
        if let Some(behind) = self.behind {
            self.pool.frames.prefetch_part(behind, part, parts);
        }
    }

    /// Length of record `i`'s key.
    #[inline]
    pub fn key_len(&self, i: usize) -> usize {
        self.node.key_len(i)
    }

    /// A byte of record `i`'s key; `at` must be below `key_len(i)`.
    #[inline]
    pub fn key_byte(&self, i: usize, at: usize) -> u8 {
        self.node.key_byte(i, at)
    }

    /// Copies the leaf, so that the caller can read it without the latch.
    pub fn copy_to(&self, image: &mut LeafImage) {
        image.copy(self.node);
    }

    /// Returns whether the column's place has no zone map of the leaf as it is.
    pub fn has_room(&self, column: usize) -> bool {
        let zone_maps = &self.pool.zone_maps;
        zone_maps.has_room(self.frame, self.version, column)
    }

    /// Keeps a zone map of all records of the leaf, for [`SkippableLeaf::zone_map`].
    pub fn keep(&self, column: Option<usize>, zone_map: &ZoneMap) {
        let zone_maps = &self.pool.zone_maps;
        zone_maps.put(self.frame, self.version, column, zone_map);
    }
}

impl Tree {
    /// Returns a scan of the leaves with keys from `from` up to, not including, `to` (`None`: to the end).
    pub fn leaves(&self, from: Vec<u8>, to: Option<Vec<u8>>) -> LeafScan<'_> {
        let empty = to.as_ref().is_some_and(|to| *to <= from);
        LeafScan {
            tree: self,
            from,
            to,
            zone_map_columns: None,
            mini_page_columns: None,
            copy: Vec::new(),
            place: if empty { Place::Ended } else { Place::Descend },
            above: Box::new([0; PAGE_SIZE]),
            frame: FrameId::default(),
            version: LatchVersion::default(),
            next: 0,
            first: 0,
            last: 0,
            passed: 0,
            first_is_partial: false,
            ends_within: false,
        }
    }
}

impl<'t> LeafScan<'t> {
    /// Lets the scan skip leaves that have zone maps of all these columns.
    pub fn skip_with_zone_maps(&mut self, columns: impl Iterator<Item = usize>) {
        self.zone_map_columns = Some(columns.collect());
    }

    /// Lets the scan read mini-pages with these columns instead of leaves that are not in memory.
    pub fn skip_with_mini_pages(&mut self, columns: u64) {
        self.mini_page_columns = Some(columns);
    }

    /// The tree.
    pub fn tree(&self) -> &'t Tree {
        self.tree
    }

    /// Returns where the rest of the range begins; `None` if nothing is left.
    pub fn rest(&mut self) -> Option<Vec<u8>> {
        match self.place {
            Place::Above if self.next > self.last => self.leave(),
            Place::Above => self.descend_to_next(),
            Place::Descend | Place::Ended => {}
        }
        match self.place {
            Place::Ended if is_planted(PlantedFault::RestOfEndedScan) => {
                Some(self.to.clone().unwrap_or_else(|| self.from.clone()))
            }
            Place::Ended => None,
            Place::Above | Place::Descend => Some(self.from.clone()),
        }
    }

    /// Goes to the next leaf, and loads the pages that are missing on the way.
    ///
    /// `known` is called first if the whole leaf is within the range, or it has a mini-page. It returns whether the
    /// scan can skip the leaf. Otherwise `read` is called under the leaf's shared latch: it must be short and wait for
    /// nothing.
    ///
    /// # Errors
    /// Those of reading pages.
    pub fn next<R>(
        &mut self,
        mut known: impl FnMut(&SkippableLeaf<'_>) -> bool,
        read: impl FnOnce(&Leaf<'_>) -> R,
    ) -> Result<Step<R>> {
        let tree = self.tree;
        let pool = &*tree.pool;
        loop {
            match self.place {
                Place::Ended => return Ok(Step::End),
                Place::Descend => {
                    if !self.copy_above()? {
                        return self.read_one(false, read).map(Step::Read);
                    }
                }
                Place::Above if self.next > self.last => {
                    self.leave();
                    continue;
                }
                Place::Above => {}
            }
            let node = Node::new(&self.above);
            let above = &pool.frames.state(self.frame).latch;
            let whole = !(self.first_is_partial && self.next == self.first
                || self.ends_within && self.next == self.last);
            let frame = match buffer::child(node.child(self.next)) {
                Child::Frame(frame) => frame,
                Child::Page(id) => {
                    if self.is_known_not_resident(id, whole, &mut known) {
                        self.next += 1;
                        return Ok(Step::Known);
                    }
                    self.descend_to_next();
                    return self.read_one(true, read).map(Step::Read);
                }
            };
            if whole {
                let version = pool.frames.state(frame).latch.optimistic();
                let leaf = SkippableLeaf(Known::Here(pool, frame, version));
                // The version is of this child only if the node above has not changed up to here.
                if above.still(self.version) && known(&leaf) {
                    self.next += 1;
                    return Ok(Step::Known);
                }
            }
            let guard = SharedGuard::lock(pool, frame);
            if !above.still(self.version) {
                drop(guard);
                self.descend_to_next();
                continue;
            }
            pool.note_pass(frame, self.extent());
            self.passed += 1;
            let mut behind = None;
            if self.next < self.last {
                if let Child::Frame(frame) = buffer::child(node.child(self.next + 1)) {
                    pool.frames.prefetch(frame);
                    behind = Some(frame);
                }
            }
            self.next += 1;
            let range = within(guard.node(), &self.from, self.to.as_deref());
            let leaf = Leaf {
                pool,
                node: guard.node(),
                frame: guard.frame(),
                version: guard.version(),
                behind,
                range,
                whole,
                was_not_resident: false,
            };
            return Ok(Step::Read(read(&leaf)));
        }
    }

    /// Returns whether the scan can skip the next leaf, which is not in memory.
    fn is_known_not_resident(
        &mut self,
        id: u64,
        whole: bool,
        known: &mut impl FnMut(&SkippableLeaf<'_>) -> bool,
    ) -> bool {
        let pool = &*self.tree.pool;
        let above = &pool.frames.state(self.frame).latch;
        let tree = self.tree.id.0;
        let left = whole.then(|| pool.evicted_zone_maps.of(id, tree)).flatten();
        // The zone maps hold if the leaf has not been loaded since the node was copied.
        if let Some(left) = left.filter(|_| above.still(self.version)) {
            if known(&SkippableLeaf(Known::Left(left))) {
                return true;
            }
        }
        let Some(columns) = self.mini_page_columns else {
            return false;
        };
        let place = ChildPlace {
            parent: self.frame,
            version: self.version,
            at: self.next,
        };
        let bytes = &mut self.copy;
        let copied = pool.read_mini_page(place, (id, tree), columns, |copy, columns| {
            bytes.clear();
            bytes.extend_from_slice(copy);
            columns
        });
        let (from, to) = (&self.from, self.to.as_deref());
        copied
            .and_then(|columns| MiniPage::new(bytes, columns, from, to))
            .is_some_and(|leaf| known(&SkippableLeaf(Known::MiniPage(leaf))))
    }

    /// Copies the node above the leaf that takes `from`; false if the root is a leaf.
    fn copy_above(&mut self) -> Result<bool> {
        let route = Route::Forward(&self.from, self.extent());
        let guard: Option<SharedGuard<'_>> = self.tree.latch_node(route, 1)?;
        let Some(guard) = guard else {
            return Ok(false);
        };
        let node = guard.node();
        node.copy_to(&mut self.above);
        self.frame = guard.frame();
        self.version = guard.version();
        drop(guard);

        let node = Node::new(&self.above);
        let count = node.count();
        self.first = node.child_for(&self.from);
        let lower = match self.first.checked_sub(1) {
            None => self.from[..] == *node.lower_fence(),
            Some(before) => self.from == node.key(before),
        };
        self.first_is_partial = !lower;
        // The range ends with its last child, unless this is the node's last child.
        self.last = match &self.to {
            Some(to) if node.upper_fence().is_none_or(|upper| &to[..] < upper) => {
                node.lower_bound(to).0
            }
            _ => count,
        };
        self.ends_within = match &self.to {
            None => false,
            Some(to) if self.last == count => node.upper_fence().is_none_or(|upper| upper > to),
            Some(to) => node.key(self.last) > *to,
        };
        self.next = self.first;
        self.place = Place::Above;
        Ok(true)
    }

    fn extent(&self) -> ScanExtent<'_> {
        ScanExtent {
            passed: self.passed,
            whole: true,
            until: self.to.as_deref(),
            zone_map_columns: self.zone_map_columns.as_deref(),
            mini_page_columns: self.mini_page_columns,
        }
    }

    /// Continues behind the copied node.
    fn leave(&mut self) {
        let node = Node::new(&self.above);
        let upper = node.upper_fence().filter(|upper| {
            self.last == node.count() && self.to.as_ref().is_none_or(|to| upper < &&to[..])
        });
        match upper {
            None => self.place = Place::Ended,
            Some(upper) => {
                self.from.clear();
                self.from.extend_from_slice(upper);
                self.place = Place::Descend;
            }
        }
    }

    /// Makes the scan descend to the next leaf, because the copied node does not lead to it.
    fn descend_to_next(&mut self) {
        if self.next > self.first {
            self.from.clear();
            Node::new(&self.above).append_key(self.next - 1, &mut self.from);
        }
        self.place = Place::Descend;
    }

    /// Reads the leaf that takes `from`, which it finds by a descent.
    fn read_one<R>(
        &mut self,
        was_not_resident: bool,
        read: impl FnOnce(&Leaf<'_>) -> R,
    ) -> Result<R> {
        let route = Route::Forward(&self.from, self.extent());
        let guard: SharedGuard<'_> = self.tree.latch_leaf(route)?;
        self.passed += 1;
        let node = guard.node();
        let (lower, upper) = (node.lower_fence(), node.upper_fence());
        let beyond = |to: &Vec<u8>| upper.is_none_or(|upper| upper > &to[..]);
        let leaf = Leaf {
            pool: &self.tree.pool,
            node,
            frame: guard.frame(),
            version: guard.version(),
            behind: None,
            range: within(node, &self.from, self.to.as_deref()),
            whole: &self.from[..] <= lower && !self.to.as_ref().is_some_and(beyond),
            was_not_resident,
        };
        let result = read(&leaf);
        match upper {
            Some(upper) if self.to.as_ref().is_none_or(|to| upper < &to[..]) => {
                self.from.clear();
                self.from.extend_from_slice(upper);
                self.place = Place::Descend;
            }
            _ => self.place = Place::Ended,
        }
        Ok(result)
    }
}

/// The records of a leaf with keys from `from` up to, not including, `to`.
fn within(leaf: Node<'_>, from: &[u8], to: Option<&[u8]>) -> Range<usize> {
    let bound = |key: &[u8]| {
        if key <= leaf.lower_fence() {
            0
        } else if leaf.upper_fence().is_some_and(|upper| key >= upper) {
            leaf.count()
        } else {
            leaf.lower_bound(key).0
        }
    };
    let end = to.map_or(leaf.count(), bound);
    bound(from).min(end)..end
}
