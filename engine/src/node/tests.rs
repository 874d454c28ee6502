//! Nodes compared with a `BTreeMap`, with keys and values of every size that a tree takes.

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::buffer::optimistic::OptimisticNode;
use crate::ids::{MAX_KEY, MAX_VALUE, PAGE_SIZE};
use crate::node::build::{write_empty, Frame};
use crate::node::edit::NodeMut;
use crate::node::header::*;
use crate::node::search_key::SearchKey;
use crate::node::split::{collapse_root, merge, plan_inner, plan_leaf, split, write_root};
use crate::node::view::{separator, Node};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// Cases of a property; few and small under Miri, which takes a second for what takes a millisecond otherwise.
const CASES: u32 = if cfg!(miri) { 4 } else { 300 };
/// Operations on a node, at most.
const OPS: usize = if cfg!(miri) { 12 } else { 120 };
/// Separators of an inner node, at most.
const SEPARATORS: usize = if cfg!(miri) { 12 } else { 80 };
/// Keys that are searched for.
const PROBES: usize = if cfg!(miri) { 4 } else { 20 };

#[repr(align(16384))]
struct Aligned(Page);

fn empty(level: u8, lower: &[u8], upper: Option<&[u8]>) -> Box<Page> {
    let mut page = Box::new([0xee; PAGE_SIZE]);
    let frame = Frame {
        page_id: 7,
        tree_id: 3,
        level,
        lower,
        upper,
        max_txid: 0,
        upper_child: if level > 0 { 1 } else { 0 },
    };
    write_empty(&mut page, &frame);
    page
}

fn check(page: &Page, model: &Model) {
    let node = Node::new(page);
    node.validate().unwrap();
    node.validate_order().unwrap();
    assert_eq!(node.count(), model.len());
    for (i, (key, value)) in model.iter().enumerate() {
        assert_eq!(&node.key(i), key);
        assert_eq!(node.value(i), value);
        assert_eq!(node.lower_bound(key), (i, true));
        check_pieces(&node, i, key);
    }
}

/// Checks that every way to read a piece of a key gives that piece.
fn check_pieces(node: &Node<'_>, i: usize, key: &[u8]) {
    let prefix = node.prefix().len();
    let begins = [0, prefix / 2, prefix, prefix + 1, prefix + 5, key.len()];
    for from in begins {
        let rest = key.len().saturating_sub(from);
        for n in [0, 1, 3, 4, 5, 8, 16, rest, rest + 1] {
            let piece = key.get(from..from + n);
            let mut out = vec![0; n];
            let copied = node.copy_key(i, from, &mut out);
            assert_eq!(copied.then_some(&out[..]), piece);
            let word = node.key_word(i, from, n).filter(|_| n <= 16);
            if let Some(word) = word {
                assert_eq!(Some(&word.to_le_bytes()[..n]), piece);
            }
            if (1..=8).contains(&n) {
                if let Some(number) = node.key_number(i, from, n) {
                    assert_eq!(Some(&number.to_be_bytes()[8 - n..]), piece);
                }
            }
        }
    }
}

/// Keys that make prefixes and heads hard: few distinct bytes, shared beginnings, zero bytes.
fn hard_key() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![3 => Just(0u8), 2 => Just(1u8), 1 => Just(255u8), 1 => any::<u8>()];
    let short = prop::collection::vec(byte.clone(), 0..10);
    let fronted = (0usize..4, prop::collection::vec(byte, 0..6)).prop_map(|(front, tail)| {
        let mut key = vec![b'p'; [0, 3, 60, 200][front]];
        key.extend(tail);
        key
    });
    let long = (1usize..=MAX_KEY, any::<u16>()).prop_map(|(len, tail)| {
        let mut key = vec![b'q'; len];
        for (place, byte) in key.iter_mut().rev().zip(tail.to_le_bytes()) {
            *place = byte;
        }
        key
    });
    prop_oneof![6 => short, 4 => fronted, 1 => long]
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    let len = prop_oneof![8 => 0usize..60, 2 => 0usize..600, 1 => 0usize..=MAX_VALUE];
    (len, any::<u8>()).prop_map(|(len, byte)| vec![byte; len])
}

#[derive(Clone, Debug)]
enum Op {
    Put(Vec<u8>, Vec<u8>),
    Remove(usize),
    Compact,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        6 => (hard_key(), value()).prop_map(|(key, value)| Op::Put(key, value)),
        2 => any::<usize>().prop_map(Op::Remove),
        1 => Just(Op::Compact),
    ];
    prop::collection::vec(op, 0..OPS)
}

/// Puts a record if there is room, as a tree does.
fn put(page: &mut Page, key: &[u8], value: &[u8]) -> bool {
    let node = Node::new(page);
    let (at, found) = node.lower_bound(key);
    if !node.fits(key, found.then_some(at), value.len()) {
        return false;
    }
    let mut node = NodeMut::new(page);
    if found {
        node.set_value(at, value);
    } else {
        node.insert(at, key, value);
    }
    true
}

fn run(page: &mut Page, ops: Vec<Op>, allowed: impl Fn(&[u8]) -> bool) -> Model {
    let mut model = Model::new();
    for op in ops {
        match op {
            Op::Put(key, value) => {
                if allowed(&key) && put(page, &key, &value) {
                    model.insert(key, value);
                }
            }
            Op::Remove(which) => {
                if let Some(key) = model.keys().nth(which % model.len().max(1)).cloned() {
                    let (at, found) = Node::new(page).lower_bound(&key);
                    assert!(found);
                    NodeMut::new(page).remove(at);
                    model.remove(&key);
                }
            }
            Op::Compact => NodeMut::new(page).compact(None, 0),
        }
        Node::new(page).validate().unwrap();
    }
    model
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, ..ProptestConfig::default() })]

    #[test]
    fn leaf_keeps_what_a_map_keeps(ops in ops(), probes in prop::collection::vec(hard_key(), PROBES)) {
        let mut page = empty(0, &[], None);
        let model = run(&mut page, ops, |_| true);
        check(&page, &model);
        for probe in probes {
            let at = model.range(..probe.clone()).count();
            prop_assert_eq!(
                Node::new(&page).lower_bound(&probe),
                (at, model.contains_key(&probe))
            );
        }
        // Closing gaps changes only the room.
        NodeMut::new(&mut page).compact(None, 0);
        check(&page, &model);
    }

    #[test]
    fn leaf_between_fences(a in hard_key(), b in hard_key(), ops in ops()) {
        prop_assume!(a != b);
        let (lower, upper) = if a < b { (a, b) } else { (b, a) };
        let mut page = empty(0, &lower, Some(&upper));
        let model = run(&mut page, ops, |key| *key >= lower[..] && *key < upper[..]);
        check(&page, &model);
        prop_assert_eq!(Node::new(&page).lower_fence(), &lower[..]);
        prop_assert_eq!(Node::new(&page).upper_fence(), Some(&upper[..]));
    }

    #[test]
    fn splits_make_room_and_merges_undo_them(ops in ops(), key in hard_key(), new in value()) {
        let mut page = empty(0, &[], None);
        let model = run(&mut page, ops, |_| true);
        // Split until the record fits, following the key.
        let mut pieces = vec![page];
        let mut here = 0;
        loop {
            let node = Node::new(&pieces[here]);
            let (at, found) = node.lower_bound(&key);
            if node.fits(&key, found.then_some(at), new.len()) {
                break;
            }
            let plan = plan_leaf(node, &key).expect("a leaf without room can be split");
            let copy = pieces[here].clone();
            let mut right = Box::new([0; PAGE_SIZE]);
            split(Node::new(&copy), &plan, (&mut pieces[here], 7), (&mut right, 8));
            prop_assert_eq!(Node::new(&pieces[here]).upper_fence(), Some(&plan.separator[..]));
            prop_assert_eq!(Node::new(&right).lower_fence(), &plan.separator[..]);
            pieces.insert(here + 1, right);
            if key >= plan.separator {
                here += 1;
            }
        }
        prop_assert!(put(&mut pieces[here], &key, &new));
        let mut model = model;
        model.insert(key, new);
        let mut seen = Model::new();
        for piece in &pieces {
            let node = Node::new(piece);
            node.validate().unwrap();
            node.validate_order().unwrap();
            for i in 0..node.count() {
                seen.insert(node.key(i), node.value(i).to_vec());
            }
        }
        prop_assert_eq!(&seen, &model);
        // Neighbours that fit become one node again.
        for pair in pieces.windows(2) {
            let (left, right) = (Node::new(&pair[0]), Node::new(&pair[1]));
            let between = right.lower_fence().to_vec();
            if let Some(joined) = merge(left, right, &between) {
                let both: Model = (0..left.count())
                    .map(|i| (left.key(i), left.value(i).to_vec()))
                    .chain((0..right.count()).map(|i| (right.key(i), right.value(i).to_vec())))
                    .collect();
                check(&joined, &both);
                prop_assert_eq!(Node::new(&joined).lower_fence(), left.lower_fence());
                prop_assert_eq!(Node::new(&joined).upper_fence(), right.upper_fence());
            }
        }
    }

    #[test]
    fn inner_nodes_route_as_a_map_does(
        keys in prop::collection::btree_set(hard_key().prop_filter("not empty", |k| !k.is_empty()), 0..SEPARATORS),
        order in any::<u64>(),
        probes in prop::collection::vec(hard_key(), PROBES),
    ) {
        // Child 1 takes all; each separator splits a child and gives the right half a new id.
        let mut page = empty(1, &[], None);
        let mut model: BTreeMap<Vec<u8>, u64> = BTreeMap::from([(Vec::new(), 1)]);
        let mut keys: Vec<_> = keys.into_iter().collect();
        let n = keys.len().max(1);
        keys.rotate_left(order as usize % n);
        if order % 2 == 1 {
            keys.reverse();
        }
        for (id, key) in (2..).zip(keys) {
            if !Node::new(&page).fits_separator(&key) {
                continue;
            }
            let at = Node::new(&page).child_for(&key);
            NodeMut::new(&mut page).insert_separator(at, &key, id);
            model.insert(key, id);
            Node::new(&page).validate().unwrap();
        }
        let node = Node::new(&page);
        node.validate_order().unwrap();
        let aligned = Box::new(Aligned(*page));
        // SAFETY: an aligned page that outlives the reader.
        let optimistic = unsafe { OptimisticNode::new(aligned.0.as_ptr()) };
        for key in probes.iter().chain(model.keys()) {
            let want = *model.range(..=key.clone()).next_back().unwrap().1;
            let at = node.child_for(key);
            prop_assert_eq!(node.child(at), want);
            // Whatever place is expected.
            let guess = (order >> 48) as usize;
            for before in [None, Some(guess), Some(guess / 16), Some(0xffff)] {
                let seen = optimistic.child_for(SearchKey::new(key), before);
                prop_assert_eq!((seen.at, seen.word), (at, want));
            }
            let below = node.child_below(key);
            let seen = optimistic.child_below(SearchKey::new(key));
            prop_assert_eq!((seen.at, seen.word), (below, node.child(below)));
            if let Some((_, want)) = model.range(..key.clone()).next_back() {
                prop_assert_eq!(node.child(below), *want);
            }
        }
        // A split keeps every child, and a merge brings them together again.
        if let Some(plan) = plan_inner(node, probes.first().unwrap()) {
            let copy = page.clone();
            let mut right = Box::new([0; PAGE_SIZE]);
            split(Node::new(&copy), &plan, (&mut page, 7), (&mut right, 8));
            let children = |page: &Page| {
                let node = Node::new(page);
                node.validate().unwrap();
                node.validate_order().unwrap();
                (0..=node.count()).map(|i| node.child(i)).collect::<Vec<_>>()
            };
            let mut both = children(&page);
            both.extend(children(&right));
            prop_assert_eq!(&both, &children(&copy));
            if let Some(joined) = merge(Node::new(&page), Node::new(&right), &plan.separator) {
                prop_assert_eq!(&children(&joined), &both);
            }
        }
    }

    #[test]
    fn removing_separators_keeps_the_left_child(n in 1usize..40, which in any::<prop::sample::Index>()) {
        let mut page = empty(1, &[], None);
        for i in 0..n {
            let key = (i as u32 + 1).to_be_bytes();
            NodeMut::new(&mut page).insert_separator(i, &key, i as u64 + 2);
        }
        let at = which.index(n);
        NodeMut::new(&mut page).remove_separator(at);
        let node = Node::new(&page);
        node.validate().unwrap();
        let children: Vec<u64> = (0..=node.count()).map(|i| node.child(i)).collect();
        let want: Vec<u64> = (1..=n as u64 + 1).filter(|c| *c != at as u64 + 2).collect();
        prop_assert_eq!(children, want);
    }

    #[test]
    fn separators_separate(a in hard_key(), b in hard_key()) {
        prop_assume!(a < b);
        let s = separator(&a, &b);
        prop_assert!(*s > a[..] && *s <= b[..]);
    }

    /// Whatever the bytes of a page are, a node that passes the check can be read and changed.
    #[test]
    fn damaged_pages_are_found_or_harmless(
        ops in ops(),
        damage in prop::collection::vec((0usize..200, any::<u8>()), 1..6),
        key in hard_key(),
    ) {
        let mut page = empty(0, &[], None);
        run(&mut page, ops, |_| true);
        for (at, byte) in damage {
            page[at] = byte;
        }
        if Node::new(&page).validate().is_ok() {
            let node = Node::new(&page);
            let _ = node.validate_order();
            let n = node.count();
            if node.upper_fence().is_none() {
                let _ = node.lower_bound(&key);
            }
            for i in 0..n {
                let _ = (node.key(i), (node.is_leaf()).then(|| node.value(i)));
            }
            NodeMut::new(&mut page).compact(None, 0);
            Node::new(&page).validate().unwrap();
        }
    }
}

#[test]
fn largest_records_and_fences_fit() {
    let lower = vec![b'a'; MAX_KEY];
    let upper = vec![b'c'; MAX_KEY];
    let mut page = empty(0, &lower, Some(&upper));
    let mut key = vec![b'b'; MAX_KEY];
    key[MAX_KEY - 1] = b'x';
    assert!(put(&mut page, &key, &vec![1; MAX_VALUE]));
    // An inner node has room for two separators of any length.
    let mut inner = empty(1, &lower, Some(&upper));
    for (i, byte) in [(0, b'k'), (1, b'l')] {
        let mut key = vec![b'b'; MAX_KEY];
        key[0] = byte;
        let key = [&b"b"[..], &key[1..]].concat();
        let mut key = key;
        key[1] = byte;
        assert!(Node::new(&inner).fits_separator(&key));
        NodeMut::new(&mut inner).insert_separator(i, &key, 9);
    }
    Node::new(&inner).validate().unwrap();
}

#[test]
fn appends_leave_full_nodes_behind() {
    let mut page = empty(0, &[], None);
    let mut i = 0u64;
    loop {
        let key = i.to_be_bytes();
        if !put(&mut page, &key, &[7; 100]) {
            break;
        }
        i += 1;
    }
    let plan = plan_leaf(Node::new(&page), &i.to_be_bytes()).unwrap();
    assert_eq!(plan.at, Node::new(&page).count());
}

/// Only a damaged page has a record of this length.
#[test]
fn a_leaf_of_one_record_that_is_too_long_is_not_cut_before_it_for_a_key_behind() {
    let mut page = empty(0, &[b'a'; 3_000], None);
    let mut key = vec![b'b'; 900];
    NodeMut::new(&mut page).insert(0, &key, &[7; 11_800]);
    Node::new(&page).validate().unwrap();
    key[899] = b'c';
    assert!(plan_leaf(Node::new(&page), &key).is_none());
}

#[test]
fn a_root_pushes_down_and_lifts_up() {
    let mut page = empty(0, &[], None);
    for i in 0..50u64 {
        assert!(put(&mut page, &i.to_be_bytes(), &[1; 10]));
    }
    let before = page.clone();
    write_root(&mut page, &[1], 21, 22);
    let root = Node::new(&page);
    root.validate().unwrap();
    assert_eq!((root.level(), root.count()), (1, 1));
    assert_eq!((root.child(0), root.child(1)), (21, 22));
    collapse_root(Node::new(&before), &mut page);
    let root = Node::new(&page);
    root.validate().unwrap();
    assert_eq!((root.level(), root.count(), root.page_id()), (0, 50, 7));
}

#[test]
fn short_pieces_of_keys_are_had_at_once_but_at_the_pages_end() {
    let mut page = empty(0, b"", None);
    for i in 0..50_u8 {
        assert!(put(&mut page, &[1, 2, i, 4, 5, 6, 7], &[9; 20]));
    }
    let node = Node::new(&page);
    for i in 0..50_u8 {
        for from in 0..7 {
            let word = node.key_word(usize::from(i), from, 7 - from);
            let word = word.expect("a value stands behind the key").to_le_bytes();
            assert_eq!(word[..7 - from], [1, 2, i, 4, 5, 6, 7][from..]);
            let number = node.key_number(usize::from(i), from, 7 - from);
            let number = number.expect("so is a number").to_be_bytes();
            assert_eq!(number[1 + from..], [1, 2, i, 4, 5, 6, 7][from..]);
        }
    }
}
