//! Where to split a full node in two, and how two underfull nodes become one.

use crate::ids::PAGE_SIZE;
use crate::knobs;
use crate::node::build::{Frame, Items};
use crate::node::header::*;
use crate::node::view::{separator, Node};
use crate::planted::{is_planted, PlantedFault};

/// How to split a node.
pub(crate) struct SplitPlan {
    /// In a leaf, the first record that goes right; in an inner node, the separator that goes up to the parent.
    pub at: usize,
    /// The separator that goes up to the parent.
    pub separator: Vec<u8>,
}

/// The sizes of a node's two halves, for every place of the split.
struct Halves<'a> {
    node: Node<'a>,
    /// The bytes of the records before each record; at the end, the bytes of all.
    before: Vec<usize>,
}

impl<'a> Halves<'a> {
    fn of(node: Node<'a>) -> Halves<'a> {
        let mut before = Vec::with_capacity(node.count() + 1);
        let mut sum = 0;
        before.push(0);
        for i in 0..node.count() {
            sum += node.record_size(i);
            before.push(sum);
        }
        Halves { node, before }
    }

    /// Returns whether records up to `left_to` and those from `right_from` on each fit into a node, with the
    /// separator as a fence.
    ///
    /// Both halves can keep the node's prefix, though they may have to store it.
    fn fit(&self, left_to: usize, right_from: usize, separator: usize) -> bool {
        let own = if self.node.has_loose_prefix() {
            self.node.prefix().len()
        } else {
            0
        };
        let base = HEADER_SIZE + own + separator;
        let lower = self.node.lower_fence().len();
        let upper = self.node.upper_fence().map_or(0, <[u8]>::len);
        let n = self.node.count();
        base + lower + self.before[left_to] <= PAGE_SIZE
            && base + upper + self.before[n] - self.before[right_from] <= PAGE_SIZE
    }

    /// Returns the first record that begins in the second half of the bytes; 1 at least.
    fn middle(&self) -> usize {
        let total = self.before[self.node.count()];
        self.before
            .partition_point(|sum| *sum < total / 2)
            .clamp(1, self.node.count() - 1)
    }
}

/// Returns where to split a full leaf into which `key` is to go.
///
/// `None` if the leaf is empty or holds `key` alone: any value fits then. Also `None` if a record is longer than
/// allowed.
pub(crate) fn plan_leaf(node: Node<'_>, key: &[u8]) -> Option<SplitPlan> {
    let n = node.count();
    let (at, equal) = node.lower_bound(key);
    if n == 0 || (n == 1 && equal) {
        return None;
    }
    let halves = Halves::of(node);
    let cut = |at: usize, separator: &[u8]| {
        halves.fit(at, at, separator.len()).then(|| SplitPlan {
            at,
            separator: separator.to_vec(),
        })
    };
    let run = get_u16(node.page, INSERT_RUN);
    let appends = run >= knobs::inserts_to_append() && get_u16(node.page, LAST_INSERT) + 1 == at;
    if at == n && (appends || node.upper_fence().is_none() || n == 1) {
        // Appends: the left leaf stays full, and the right one begins with the new key.
        if let Some(plan) = cut(n, separator(&node.key(n - 1), key)) {
            return Some(plan);
        }
    }
    if n == 1 {
        // A separator behind the record does not fit only if a damaged page has a record that is too long.
        if at == 1 && !is_planted(PlantedFault::CutBehindKey) {
            return None;
        }
        return cut(0, separator(key, &node.key(0)));
    }
    if appends && at >= n / 2 && at < n && !equal {
        if let Some(plan) = cut(at, separator(&node.key(at - 1), key)) {
            return Some(plan);
        }
    }
    // Near the middle by bytes, where the separator is shortest.
    let middle = halves.middle();
    let best = |low: usize, high: usize| {
        let mut best: Option<SplitPlan> = None;
        let mut before = node.key(low - 1);
        for at in low..=high {
            let here = node.key(at);
            let candidate = separator(&before, &here);
            let better = best.as_ref().is_none_or(|best| {
                (candidate.len(), at.abs_diff(middle))
                    < (best.separator.len(), best.at.abs_diff(middle))
            });
            if better {
                best = cut(at, candidate).or(best);
            }
            before = here;
        }
        best
    };
    let reach = n / knobs::split_reach();
    let (low, high) = (middle.saturating_sub(reach), middle + reach);
    // With keys and values of the greatest length, no place near the middle may fit; some place always does.
    best(low.max(1), high.min(n - 1)).or_else(|| best(1, n - 1))
}

/// Returns where to split an inner node into which a separator near `key` is to go.
///
/// `None` if it holds fewer than two separators: any separator fits then.
pub(crate) fn plan_inner(node: Node<'_>, key: &[u8]) -> Option<SplitPlan> {
    let n = node.count();
    if n < 2 {
        return None;
    }
    let halves = Halves::of(node);
    let cut = |at: usize| {
        halves.fit(at, at + 1, node.key_len(at)).then(|| SplitPlan {
            at,
            separator: node.key(at),
        })
    };
    if node.child_for(key) == n && node.upper_fence().is_none() {
        // Appends: the left node stays full.
        if let Some(plan) = cut(n - 1) {
            return Some(plan);
        }
    }
    let middle = halves.middle();
    (0..n)
        .flat_map(|far| [middle.checked_sub(far), Some(middle + far)])
        .flatten()
        .filter(|at| *at < n)
        .find_map(cut)
}

/// Writes the two halves of `node`, with the given page ids.
///
/// `left` may be the node's own page; `node` must then be a copy of it.
pub(crate) fn split(
    node: Node<'_>,
    plan: &SplitPlan,
    (left, left_id): (&mut Page, u64),
    (right, right_id): (&mut Page, u64),
) {
    let items = Items::of(node);
    let whole = Frame::of(node);
    let leaf = node.is_leaf();
    let left_frame = Frame {
        page_id: left_id,
        upper: Some(&plan.separator),
        upper_child: if leaf { 0 } else { node.child(plan.at) },
        ..whole
    };
    let right_frame = Frame {
        page_id: right_id,
        lower: &plan.separator,
        ..whole
    };
    let right_from = if leaf { plan.at } else { plan.at + 1 };
    let prefix = node.prefix().len();
    items.write(left, &left_frame, (0, plan.at), None, 0, prefix);
    items.write(
        right,
        &right_frame,
        (right_from, items.len()),
        None,
        0,
        prefix,
    );
    // The appends continue in the right node: so it takes over their count.
    if leaf && plan.at == items.len() {
        put_u16(right, INSERT_RUN, get_u16(node.page, INSERT_RUN));
    }
}

/// Merges `left` and `right`, neighbours under one parent with the separator `between`; `None` if the node would be
/// too full.
///
/// The merged node takes `left`'s place.
pub(crate) fn merge(left: Node<'_>, right: Node<'_>, between: &[u8]) -> Option<Box<Page>> {
    if left.used() + right.used() > PAGE_SIZE + knobs::most_of_merged_node() {
        return None;
    }
    let mut items = Items::of(left);
    if !left.is_leaf() {
        items.push_separator(between, left.child(left.count()));
    }
    items.append(right);
    let frame = Frame {
        upper: right.upper_fence(),
        upper_child: Frame::of(right).upper_child,
        max_txid: left.max_txid().max(right.max_txid()),
        ..Frame::of(left)
    };
    if items.plain_size(&frame) > knobs::most_of_merged_node() {
        return None;
    }
    let mut page: Box<Page> = Box::new([0; PAGE_SIZE]);
    items.write(&mut page, &frame, (0, items.len()), None, 0, 0);
    Some(page)
}

/// Writes a root whose content has moved into two children.
pub(crate) fn write_root(page: &mut Page, separator: &[u8], left: u64, right: u64) {
    let copy = *page;
    let old = Frame::of(Node::new(&copy));
    let frame = Frame {
        level: old.level + 1,
        upper_child: right,
        max_txid: 0,
        ..old
    };
    let mut items = Items::default();
    items.push_separator(separator, left);
    items.write(page, &frame, (0, 1), None, 0, 0);
}

/// Writes a root into which its only child's content moves up.
pub(crate) fn collapse_root(child: Node<'_>, root: &mut Page) {
    let frame = Frame {
        page_id: get_u64(root, PAGE_ID),
        ..Frame::of(child)
    };
    let items = Items::of(child);
    items.write(
        root,
        &frame,
        (0, items.len()),
        None,
        0,
        child.prefix().len(),
    );
}
