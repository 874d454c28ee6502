//! The nodes of a tree, one by one from the file, past those that are damaged.
//!
//! A leaf that can't be read leaves a gap, of which its parent knows the keys. Below an inner node
//! that can't be read the leaves are still there: every page says to which tree it belongs and
//! between which keys, so they are found by looking at all pages.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::ids::{PageId, TreeId, PAGE_SIZE};
use crate::page::{get_u32, Node, Page, PageKind, KIND, TREE_ID};
use crate::store::Store;

/// Levels that a tree can't exceed: every inner node has two children or more.
const MOST_LEVELS: u8 = 64;

/// The keys `lower <= key < upper`; without `upper` all from `lower` on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub lower: Vec<u8>,
    pub upper: Option<Vec<u8>>,
}

impl Range {
    pub fn all() -> Range {
        Range {
            lower: Vec::new(),
            upper: None,
        }
    }

    /// Whether `key` is below the range's end.
    fn reaches(&self, key: &[u8]) -> bool {
        self.upper.as_ref().is_none_or(|upper| key < &upper[..])
    }

    fn contains(&self, other: &Range) -> bool {
        self.lower <= other.lower
            && match (&self.upper, &other.upper) {
                (None, _) => true,
                (Some(_), None) => false,
                (Some(own), Some(other)) => other <= own,
            }
    }
}

/// A part of a tree, in key order.
pub(super) enum Part<'a> {
    /// A leaf.
    Leaf(Node<'a>),
    /// Keys whose leaf can't be read, and why.
    Missing(Range, Error),
}

/// What [`Nodes::walk`] shows the parts of a tree to.
pub(super) type PartVisitor<'a> = dyn FnMut(Part<'_>) -> Result<()> + 'a;

/// Reads nodes from the file.
pub(super) struct Nodes {
    store: Arc<Store>,
    /// The leaves of each tree, from a look at all pages; made when it is needed.
    leaves: OnceCell<HashMap<TreeId, Vec<(Range, PageId)>>>,
}

fn range_of(node: Node<'_>) -> Range {
    Range {
        lower: node.lower_fence().to_vec(),
        upper: node.upper_fence().map(<[u8]>::to_vec),
    }
}

impl Nodes {
    pub fn new(store: Arc<Store>) -> Nodes {
        Nodes {
            store,
            leaves: OnceCell::new(),
        }
    }

    /// A page, checked so far that no byte of it can lead the node code astray.
    pub fn page(&self, id: PageId) -> Result<Box<Page>> {
        let mut page: Box<Page> = Box::new([0; PAGE_SIZE]);
        self.store.read_page(id, &mut page[..])?;
        let wrong = |what| self.store.corrupt(id, what);
        let found = Node::new(&page).page_id();
        if found != id.0 {
            return Err(wrong(format!("the page says that it is page {found}")));
        }
        if page[KIND] != PageKind::Undo as u8 {
            Node::new(&page).validate().map_err(wrong)?;
        }
        Ok(page)
    }

    /// A node of a tree, with ordered keys.
    fn node(&self, tree: TreeId, id: PageId) -> Result<Box<Page>> {
        let page = self.page(id)?;
        let wrong = |what| Err(self.store.corrupt(id, what));
        let found = get_u32(&page[..], TREE_ID);
        if page[KIND] == PageKind::Undo as u8 || found != tree.0 {
            return wrong(format!(
                "expected a node of tree {tree}, found tree {found}"
            ));
        }
        match Node::new(&page).validate_order() {
            Ok(()) => Ok(page),
            Err(what) => wrong(what),
        }
    }

    /// The node that its parent has for `range`, at `level` where that is known.
    fn child(
        &self,
        tree: TreeId,
        id: PageId,
        range: &Range,
        level: Option<u8>,
    ) -> Result<Box<Page>> {
        let page = self.node(tree, id)?;
        let node = Node::new(&page);
        let level_is_right = level.map_or(node.level() < MOST_LEVELS, |l| l == node.level());
        if !level_is_right || range_of(node) != *range {
            return Err(self.store.corrupt(
                id,
                format!(
                    "expected level {level:?} and the keys from {:02x?} to {:02x?}, found level {} and {:02x?} to {:02x?}",
                    range.lower,
                    range.upper,
                    node.level(),
                    node.lower_fence(),
                    node.upper_fence()
                ),
            ));
        }
        Ok(page)
    }

    /// Shows all of a tree, in key order, without gaps between the parts.
    ///
    /// # Errors
    /// Those of `visit`.
    pub fn walk(&self, tree: TreeId, root: PageId, visit: &mut PartVisitor<'_>) -> Result<()> {
        self.walk_below(tree, root, &Range::all(), None, visit)
    }

    fn walk_below(
        &self,
        tree: TreeId,
        id: PageId,
        range: &Range,
        level: Option<u8>,
        visit: &mut PartVisitor<'_>,
    ) -> Result<()> {
        let page = match self.child(tree, id, range, level) {
            Ok(page) => page,
            Err(error) if level == Some(0) => return visit(Part::Missing(range.clone(), error)),
            Err(error) => return self.walk_orphans(tree, range, &error, visit),
        };
        let node = Node::new(&page);
        if node.is_leaf() {
            return visit(Part::Leaf(node));
        }
        for (child, range) in children(node, range) {
            self.walk_below(tree, child, &range, Some(node.level() - 1), visit)?;
        }
        Ok(())
    }

    /// Shows the leaves of a range whose inner node can't be read, because of `error`.
    fn walk_orphans(
        &self,
        tree: TreeId,
        range: &Range,
        error: &Error,
        visit: &mut PartVisitor<'_>,
    ) -> Result<()> {
        let mut lower = range.lower.clone();
        for (leaf, id) in self.orphans(tree, range) {
            if leaf.lower > lower {
                let upper = Some(leaf.lower.clone());
                visit(Part::Missing(Range { lower, upper }, error.clone()))?;
            }
            match self.child(tree, id, &leaf, Some(0)) {
                Ok(page) => visit(Part::Leaf(Node::new(&page)))?,
                Err(error) => visit(Part::Missing(leaf.clone(), error))?,
            }
            match leaf.upper {
                Some(upper) => lower = upper,
                None => return Ok(()),
            }
        }
        if range.reaches(&lower) {
            let upper = range.upper.clone();
            visit(Part::Missing(Range { lower, upper }, error.clone()))?;
        }
        Ok(())
    }

    /// The leaves of a tree within a range, in key order. Where two claim the same keys, which
    /// never happens in a sound file, neither is given.
    fn orphans(&self, tree: TreeId, range: &Range) -> Vec<(Range, PageId)> {
        let found = self.leaves.get_or_init(|| self.look_at_all());
        let mut leaves: Vec<(Range, PageId)> = found
            .get(&tree)
            .into_iter()
            .flatten()
            .filter(|(leaf, _)| range.contains(leaf))
            .cloned()
            .collect();
        leaves.sort_by(|a, b| a.0.lower.cmp(&b.0.lower));
        let overlaps = |a: &Range, b: &Range| a.reaches(&b.lower);
        let doubtful: Vec<bool> = (0..leaves.len())
            .map(|i| {
                let own = &leaves[i].0;
                leaves[..i].iter().any(|(before, _)| overlaps(before, own))
                    || leaves[i + 1..]
                        .iter()
                        .any(|(after, _)| overlaps(own, after))
            })
            .collect();
        let mut doubtful = doubtful.into_iter();
        leaves.retain(|_| !doubtful.next().unwrap_or(true));
        leaves
    }

    fn look_at_all(&self) -> HashMap<TreeId, Vec<(Range, PageId)>> {
        let mut leaves: HashMap<TreeId, Vec<(Range, PageId)>> = HashMap::new();
        for id in self.store.pages() {
            // What can't be read is told by whoever walks over it.
            let Ok(page) = self.page(id) else { continue };
            let node = Node::new(&page);
            if page[KIND] == PageKind::Leaf as u8 {
                let tree = TreeId(get_u32(&page[..], TREE_ID));
                leaves.entry(tree).or_default().push((range_of(node), id));
            }
        }
        leaves
    }

    /// The value of a key.
    ///
    /// # Errors
    /// When the leaf that would have it can't be read.
    pub fn find(&self, tree: TreeId, root: PageId, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let mut at = (root, Range::all(), None);
        loop {
            let (id, range, level) = at;
            let page = match self.child(tree, id, &range, level) {
                Ok(page) => page,
                Err(error) if level == Some(0) => return Err(error),
                Err(error) => self.orphan_with(tree, &range, key, error)?,
            };
            let node = Node::new(&page);
            if node.is_leaf() {
                let (i, found) = node.lower_bound(key);
                return Ok(found.then(|| node.value(i).to_vec()));
            }
            let child = children(node, &range_of(node)).nth(node.child_for(key));
            let Some((child, range)) = child else {
                return Err(self.store.corrupt(id, "a child that is not there".into()));
            };
            at = (child, range, Some(node.level() - 1));
        }
    }

    fn orphan_with(
        &self,
        tree: TreeId,
        range: &Range,
        key: &[u8],
        error: Error,
    ) -> Result<Box<Page>> {
        let leaves = self.orphans(tree, range);
        let leaf = leaves
            .iter()
            .find(|(leaf, _)| leaf.lower[..] <= *key && leaf.reaches(key));
        match leaf {
            Some((leaf, id)) => self.child(tree, *id, leaf, Some(0)),
            None => Err(error),
        }
    }
}

/// The children of an inner node, and the keys of each.
fn children<'a>(node: Node<'a>, range: &'a Range) -> impl Iterator<Item = (PageId, Range)> + 'a {
    (0..=node.count()).map(move |i| {
        let lower = match i.checked_sub(1) {
            None => range.lower.clone(),
            Some(before) => node.key(before),
        };
        let upper = if i == node.count() {
            range.upper.clone()
        } else {
            Some(node.key(i))
        };
        (PageId(node.child(i)), Range { lower, upper })
    })
}
