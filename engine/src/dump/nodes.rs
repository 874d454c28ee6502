//! The nodes of a tree, one by one from the file, past those that are damaged.
//!
//! A leaf that can't be read leaves a gap, whose keys its parent has. Below an inner node that can't be read, the
//! leaves still exist: every page has the number of its tree and its fence keys, so a search of all pages finds them.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::ids::{PageId, TreeId, PAGE_SIZE};
use crate::node::{get_u32, Node, Page, PageKind, KIND, TREE_ID};
use crate::planted::{is_planted, PlantedFault};
use crate::store::Store;

/// No tree has more levels, since every inner node has at least two children.
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
        self.lower <= other.lower && !self.ends_before(other)
    }

    fn ends_before(&self, other: &Range) -> bool {
        match (&self.upper, &other.upper) {
            (None, _) => false,
            (Some(_), None) => true,
            (Some(own), Some(other)) => own < other,
        }
    }
}

/// A leaf, with the range of its keys.
type Leaf = (Range, PageId);

/// A part of a tree, in key order.
pub(super) enum Part<'a> {
    /// A leaf.
    Leaf(Node<'a>),
    /// A range of keys whose leaf can't be read, and the error.
    Missing(Range, Error),
}

/// The function that [`Nodes::walk`] calls with each part of a tree.
pub(super) type PartVisitor<'a> = dyn FnMut(Part<'_>) -> Result<()> + 'a;

/// Reads nodes from the file.
pub(super) struct Nodes {
    store: Arc<Store>,
    /// The leaves of each tree, found among all pages, in key order; computed at first use.
    ///
    /// Two leaves with a common key, which a sound file never has, are both left out.
    leaves: OnceCell<HashMap<TreeId, Vec<Leaf>>>,
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

    /// Reads a page, and checks it so far that the node code can read it safely.
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

    /// Reads a node of a tree, and checks the order of its keys.
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

    /// Reads the node that its parent has for `range`, at `level` if that is known.
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

    /// Calls `visit` with all parts of a tree, in key order, without gaps.
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

    /// Visits the leaves of a range whose inner node can't be read, because of `error`.
    fn walk_orphans(
        &self,
        tree: TreeId,
        range: &Range,
        error: &Error,
        visit: &mut PartVisitor<'_>,
    ) -> Result<()> {
        let leaves = self.orphans(tree);
        let first = leaves.partition_point(|(leaf, _)| leaf.lower < range.lower);
        let within = leaves[first..]
            .iter()
            .take_while(|(leaf, _)| range.reaches(&leaf.lower))
            .filter(|(leaf, _)| range.contains(leaf));
        let mut lower = range.lower.clone();
        for (leaf, id) in within {
            if leaf.lower > lower {
                let upper = Some(leaf.lower.clone());
                visit(Part::Missing(Range { lower, upper }, error.clone()))?;
            }
            match self.child(tree, *id, leaf, Some(0)) {
                Ok(page) => visit(Part::Leaf(Node::new(&page)))?,
                Err(error) => visit(Part::Missing(leaf.clone(), error))?,
            }
            match &leaf.upper {
                Some(upper) => lower = upper.clone(),
                None => return Ok(()),
            }
        }
        if range.reaches(&lower) {
            let upper = range.upper.clone();
            visit(Part::Missing(Range { lower, upper }, error.clone()))?;
        }
        Ok(())
    }

    /// The leaves of a tree, found among all pages, in key order.
    fn orphans(&self, tree: TreeId) -> &[Leaf] {
        let found = self.leaves.get_or_init(|| self.look_at_all());
        found
            .get(&tree)
            .map(|leaves| &leaves[..])
            .unwrap_or_default()
    }

    fn look_at_all(&self) -> HashMap<TreeId, Vec<Leaf>> {
        let mut leaves: HashMap<TreeId, Vec<Leaf>> = HashMap::new();
        for id in self.store.pages() {
            // A walk that needs an unreadable page reports it.
            let Ok(page) = self.page(id) else { continue };
            let node = Node::new(&page);
            if page[KIND] == PageKind::Leaf as u8 {
                let tree = TreeId(get_u32(&page[..], TREE_ID));
                leaves.entry(tree).or_default().push((range_of(node), id));
            }
        }
        for leaves in leaves.values_mut() {
            sort(leaves, &mut Range::reaches);
        }
        leaves
    }

    /// The value of a key.
    ///
    /// # Errors
    /// An error if the leaf of the key can't be read.
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
        let leaves = self.orphans(tree);
        let behind = leaves.partition_point(|(leaf, _)| leaf.lower[..] <= *key);
        let leaf = leaves[..behind]
            .last()
            .filter(|(leaf, _)| range.contains(leaf) && leaf.reaches(key));
        match leaf {
            Some((leaf, id)) => self.child(tree, *id, leaf, Some(0)),
            None => Err(error),
        }
    }
}

/// Sorts leaves by key, and removes those that have a key in common with another.
///
/// `reaches` returns whether a key is below the end of a range. A file may have very many leaves, so it is called only
/// a few times for each.
fn sort(leaves: &mut Vec<Leaf>, reaches: &mut dyn FnMut(&Range, &[u8]) -> bool) {
    leaves.sort_by(|a, b| a.0.lower.cmp(&b.0.lower));
    let mut doubtful = vec![false; leaves.len()];
    // Of the leaves so far, the one whose range ends last.
    let mut furthest = 0;
    for next in 1..leaves.len() {
        let from = match is_planted(PlantedFault::CompareAllLeaves) {
            false => next - 1,
            true => 0,
        };
        for before in (from..next).chain([furthest]) {
            if reaches(&leaves[before].0, &leaves[next].0.lower) {
                doubtful[before] = true;
                doubtful[next] = true;
            }
        }
        if leaves[furthest].0.ends_before(&leaves[next].0) {
            furthest = next;
        }
    }
    let mut doubtful = doubtful.into_iter();
    leaves.retain(|_| !doubtful.next().unwrap_or(true));
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

#[cfg(test)]
mod tests {
    use super::*;

    fn leaf(lower: u32, upper: Option<u32>) -> Leaf {
        let key = |number: u32| number.to_be_bytes().to_vec();
        let range = Range {
            lower: key(lower),
            upper: upper.map(key),
        };
        (range, PageId(u64::from(lower) + 1))
    }

    #[test]
    fn leaves_that_claim_the_same_keys_are_left_out() {
        let sorted = |mut leaves: Vec<Leaf>| {
            sort(&mut leaves, &mut Range::reaches);
            leaves.into_iter().map(|(_, id)| id.0).collect::<Vec<_>>()
        };
        let one = |lower, upper| leaf(lower, Some(upper));
        assert!(sorted(vec![]).is_empty());
        assert_eq!(
            sorted(vec![leaf(20, None), one(0, 10), one(10, 20)]),
            [1, 11, 21]
        );
        // One range covers others that do not overlap each other.
        let wide = vec![one(0, 3), one(3, 8), one(4, 5), one(6, 7), one(8, 9)];
        assert_eq!(sorted(wide), [1, 9]);
        assert_eq!(sorted(vec![one(0, 5), one(0, 5), one(5, 6)]), [6]);
        assert_eq!(sorted(vec![leaf(3, None), one(0, 3), one(7, 8)]), [1]);
    }

    /// Below a damaged root, these are all leaves of the table.
    #[test]
    fn leaves_are_put_in_order_with_few_comparisons() {
        let mut leaves: Vec<Leaf> = (0..2_000).rev().map(|n| leaf(n, Some(n + 1))).collect();
        let mut asked = 0;
        sort(&mut leaves, &mut |range, key| {
            asked += 1;
            range.reaches(key)
        });
        assert_eq!(leaves.len(), 2_000);
        assert!(leaves.is_sorted_by(|a, b| a.1 < b.1));
        assert!(asked < 3 * 2_000, "{asked} comparisons");
    }
}
