//! Whole trees: checks and figures.

use super::descend::Route;
use super::Tree;
use crate::buffer::SharedGuard;
use crate::error::{beginning_of_key, Result};
use crate::node;
use crate::node::{Node, Page};

/// Size and shape of a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TreeStats {
    /// Levels, leaves included.
    pub height: u32,
    /// Inner nodes.
    pub inner_pages: u64,
    /// Leaves.
    pub leaf_pages: u64,
}

/// The counts that [`Tree::verify`] returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TreeCounts {
    /// Records in all leaves.
    pub records: u64,
    /// Bytes of keys and values.
    pub bytes: u64,
    /// Inner nodes.
    pub inner_pages: u64,
    /// Leaves.
    pub leaf_pages: u64,
}

/// A function to which [`Tree::verify`] passes the key and value of every record.
pub type RecordVisitor<'a> = dyn FnMut(&[u8], &[u8]) -> Result<()> + 'a;

/// The properties that a child must have by its parent.
struct Expected {
    level: u8,
    lower: Vec<u8>,
    upper: Option<Vec<u8>>,
}

impl Tree {
    /// Walks the whole tree and checks its structure: levels, fences, order of keys.
    ///
    /// `record` gets every record in key order, and may end the walk by an error. No thread may change the tree
    /// meanwhile: a change in progress may look like damage.
    pub fn verify(&self, record: &mut RecordVisitor<'_>) -> Result<TreeCounts> {
        let mut counts = TreeCounts::default();
        let root = Expected {
            level: self.root_level()?,
            lower: Vec::new(),
            upper: None,
        };
        self.verify_below(&root, &mut counts, record)?;
        Ok(counts)
    }

    /// Checks each node by itself, level by level, and that it takes the keys behind those of the node before it.
    ///
    /// Other threads may change the tree meanwhile. `look` is called for every node, and may end the walk by an
    /// error.
    pub fn verify_in_use(&self, look: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        for level in (0..=self.root_level()?).rev() {
            let mut from = Some(Vec::new());
            while let Some(key) = from.take() {
                look()?;
                let guard: Option<SharedGuard<'_>> = self.latch_node(Route::Key(&key), level)?;
                // The tree may have become lower.
                let Some(guard) = guard else { break };
                let page = Box::new(*guard.bytes());
                drop(guard);
                let node = Node::new(&page);
                self.check_node(&page)?;
                if node.lower_fence() > &key[..]
                    || node.upper_fence().is_some_and(|upper| upper <= &key[..])
                {
                    let key = beginning_of_key(&key);
                    return Err(self.pool.corrupt(
                        node.page_id(),
                        format!("it does not take the key that leads to it, {key}"),
                    ));
                }
                from = node.upper_fence().map(<[u8]>::to_vec);
            }
        }
        Ok(())
    }

    /// Checks all that can be checked of a node by itself.
    fn check_node(&self, page: &Page) -> Result<()> {
        let node = Node::new(page);
        if node::get_u32(&page[..], node::TREE_ID) != self.id.0 {
            let what = format!("a page of another tree within tree {}", self.id);
            return Err(self.pool.corrupt(node.page_id(), what));
        }
        node.validate_order()
            .map_err(|what| self.pool.corrupt(node.page_id(), what))
    }

    fn verify_below(
        &self,
        expected: &Expected,
        counts: &mut TreeCounts,
        record: &mut RecordVisitor<'_>,
    ) -> Result<()> {
        let page = self.copy_node(&expected.lower, expected.level)?;
        let node = Node::new(&page);
        let id = node.page_id();
        let wrong = |what: String| Err(self.pool.corrupt(id, what));
        self.check_node(&page)?;
        if node.lower_fence() != expected.lower || node.upper_fence() != expected.upper.as_deref() {
            let end = |key: Option<&[u8]>| match key {
                Some(key) => beginning_of_key(key),
                None => "the end".to_owned(),
            };
            return wrong(format!(
                "its fences are not what its parent says: they are {} and {}, not {} and {}",
                beginning_of_key(node.lower_fence()),
                end(node.upper_fence()),
                beginning_of_key(&expected.lower),
                end(expected.upper.as_deref())
            ));
        }
        if node.is_leaf() {
            counts.leaf_pages += 1;
            let mut key = Vec::new();
            for i in 0..node.count() {
                key.clear();
                node.append_key(i, &mut key);
                counts.records += 1;
                counts.bytes += (key.len() + node.value_len(i)) as u64;
                record(&key, node.value(i))?;
            }
            return Ok(());
        }
        counts.inner_pages += 1;
        for child in 0..=node.count() {
            let child = Expected {
                level: expected.level - 1,
                lower: if child == 0 {
                    expected.lower.clone()
                } else {
                    node.key(child - 1)
                },
                upper: if child == node.count() {
                    expected.upper.clone()
                } else {
                    Some(node.key(child))
                },
            };
            self.verify_below(&child, counts, record)?;
        }
        Ok(())
    }

    fn copy_node(&self, key: &[u8], level: u8) -> Result<Box<Page>> {
        let guard: Option<SharedGuard<'_>> = self.latch_node(Route::Key(key), level)?;
        match guard {
            Some(guard) => Ok(Box::new(*guard.bytes())),
            None => Err(self.pool.corrupt(
                self.root.0,
                format!("the tree has shrunk below level {level} while it was walked"),
            )),
        }
    }

    /// Returns the height and page counts, and reads inner nodes only.
    ///
    /// The figures are approximate while other threads change the tree.
    pub fn stats(&self) -> Result<TreeStats> {
        let level = self.root_level()?;
        let mut stats = TreeStats {
            height: u32::from(level) + 1,
            inner_pages: 0,
            leaf_pages: u64::from(level == 0),
        };
        for level in 1..=level {
            let mut key = Some(Vec::new());
            while let Some(from) = key.take() {
                let guard: Option<SharedGuard<'_>> = self.latch_node(Route::Key(&from), level)?;
                let Some(guard) = guard else { break };
                let node = guard.node();
                stats.inner_pages += 1;
                if level == 1 {
                    stats.leaf_pages += node.count() as u64 + 1;
                }
                key = node.upper_fence().map(<[u8]>::to_vec);
            }
        }
        Ok(stats)
    }
}
