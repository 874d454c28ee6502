//! How many records lie in a range, from the ways down to its two ends.

use super::descend::{Located, Route};
use super::Tree;
use crate::error::Result;
use crate::page::{Node, SharedGuard};

/// Fractions of the tree at which its density is sampled.
const SAMPLES: usize = 5;

/// One way down.
struct Path {
    /// For each inner level, from the root: which child of how many.
    steps: Vec<(usize, usize)>,
    /// Which record of the leaf the key is, or would be.
    at: usize,
    /// Records of the leaf.
    count: usize,
}

impl Tree {
    /// About how many records have `lo` ≤ key < `hi` (None: no bound). Exact, while nobody changes
    /// the tree, if both ends lie in the same leaf or in neighbours under one parent.
    pub fn estimate_range(&self, lo: Option<&[u8]>, hi: Option<&[u8]>) -> Result<u64> {
        if let (Some(lo), Some(hi)) = (lo, hi) {
            if lo >= hi {
                return Ok(0);
            }
        }
        if lo.unwrap_or(&[]).is_empty() && hi.is_none() {
            return self.estimate_records();
        }
        let low = self.path(Route::Key(lo.unwrap_or(&[])))?;
        let high = match hi {
            Some(hi) => self.path(Route::Key(hi))?,
            None => {
                let mut path = self.path(Route::Last)?;
                path.at = path.count;
                path
            }
        };
        let height = low.steps.len();
        if height != high.steps.len() {
            // The root was split in between: the latest is as good as any.
            return Ok(high.at as u64);
        }
        let fork = (0..height).find(|i| low.steps[*i].0 != high.steps[*i].0);
        let Some(fork) = fork else {
            return Ok(high.at.saturating_sub(low.at) as u64);
        };
        // Records below one child, for each level from the leaves up, by the two ways' average.
        let mut below = (low.count + high.count) as f64 / 2.0;
        let mut records = (low.count - low.at) as f64 + high.at as f64;
        for level in (fork + 1..height).rev() {
            let ((low_at, low_n), (high_at, high_n)) = (low.steps[level], high.steps[level]);
            records += (low_n - 1 - low_at + high_at) as f64 * below;
            below *= (low_n + high_n) as f64 / 2.0;
        }
        let between = high.steps[fork].0.saturating_sub(low.steps[fork].0 + 1);
        records += between as f64 * below;
        Ok(records as u64)
    }

    /// About how many records there are, from a few ways down spread over the tree.
    pub fn estimate_records(&self) -> Result<u64> {
        let mut sum = 0.0;
        for sample in 0..SAMPLES {
            let fraction = (2 * sample + 1) as f64 / (2 * SAMPLES) as f64;
            let mut key = Vec::new();
            let mut records = 1.0;
            let mut level = self.root_level()?;
            // At each level the child at that fraction; its lower fence leads to it.
            loop {
                let guard: Option<SharedGuard<'_>> = self.latch_node(Route::Key(&key), level)?;
                let Some(guard) = guard else { break };
                let node = guard.node();
                if node.is_leaf() {
                    records *= node.count() as f64;
                    break;
                }
                records *= (node.count() + 1) as f64;
                let child = ((node.count() + 1) as f64 * fraction) as usize;
                key = if child == 0 {
                    node.lower_fence().to_vec()
                } else {
                    node.key(child - 1)
                };
                level = node.level() - 1;
            }
            sum += records;
        }
        Ok((sum / SAMPLES as f64) as u64)
    }

    pub(super) fn root_level(&self) -> Result<u8> {
        Ok(SharedGuard::lock(&self.core, self.root_frame)
            .node()
            .level())
    }

    fn path(&self, route: Route<'_>) -> Result<Path> {
        'restart: loop {
            let height = usize::from(self.root_level()?);
            let mut steps = vec![(0, 1); height];
            for level in (0..height as u8).rev() {
                let Located::Child { place, .. } = self.locate(route, level)? else {
                    continue 'restart;
                };
                let guard = SharedGuard::lock(&self.core, place.parent);
                let latch = &self.core.frames.state(place.parent).latch;
                if !latch.still(place.version) {
                    continue 'restart;
                }
                steps[height - 1 - usize::from(level)] = (place.at, guard.node().count() + 1);
            }
            let guard: SharedGuard<'_> = self.latch_leaf(route)?;
            let node: Node<'_> = guard.node();
            let at = match route {
                Route::Key(key) | Route::Forward(key) => node.lower_bound(key).0,
                Route::Below(key) | Route::Backward(key) => node.lower_bound(key).0,
                Route::Last => node.count(),
            };
            return Ok(Path {
                steps,
                at,
                count: node.count(),
            });
        }
    }
}
