//! Cutting a range of keys into parts of about the same number of leaves.

use super::descend::Route;
use super::Tree;
use crate::buffer::SharedGuard;
use crate::error::Result;
use crate::ids::PAGE_SIZE;
use crate::node::Node;

impl Tree {
    /// Returns keys that cut the range from `from` up to, not including, `to` into at most `parts` parts.
    ///
    /// The keys ascend. Each is within the range, and none is its beginning. They are separators of inner nodes, of
    /// the highest level that has enough of them. If the range has few leaves, there are few keys, or none. If other
    /// threads change the tree, only the balance of the parts suffers.
    pub fn cuts(&self, from: &[u8], to: Option<&[u8]>, parts: usize) -> Result<Vec<Vec<u8>>> {
        let mut found = Vec::new();
        for level in (1..=self.root_level()?).rev() {
            found = self.separators(from, to, level)?;
            if found.len() + 1 >= parts {
                break;
            }
        }
        let step = (found.len() + 1).div_ceil(parts.max(1));
        Ok(found.into_iter().skip(step - 1).step_by(step).collect())
    }

    /// Returns the separators of the nodes of a level within a range, and the fences between these nodes.
    fn separators(&self, from: &[u8], to: Option<&[u8]>, level: u8) -> Result<Vec<Vec<u8>>> {
        let mut found: Vec<Vec<u8>> = Vec::new();
        let mut at = from.to_vec();
        let mut page = Box::new([0; PAGE_SIZE]);
        loop {
            let route = Route::Key(&at);
            let guard: Option<SharedGuard<'_>> = self.latch_node(route, level)?;
            let Some(guard) = guard else {
                return Ok(found);
            };
            guard.node().copy_to(&mut page);
            drop(guard);
            let node = Node::new(&page);
            let within = |key: &[u8]| key > from && to.is_none_or(|to| key < to);
            for i in node.child_for(&at)..node.count() {
                let key = node.key(i);
                if !within(&key) {
                    break;
                }
                found.push(key);
            }
            match node.upper_fence().filter(|upper| within(upper)) {
                None => return Ok(found),
                Some(upper) => {
                    at = upper.to_vec();
                    found.push(at.clone());
                }
            }
        }
    }
}
