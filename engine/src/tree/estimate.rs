//! Estimates of how many records lie in a range, from the descents to its two ends.

use super::descend::{Located, Route};
use super::Tree;
use crate::buffer::SharedGuard;
use crate::error::Result;
use crate::knobs;
use crate::node::Node;

/// The path of one descent.
struct Path {
    /// For each inner level, from the root: the child's number, and the number of children.
    steps: Vec<(usize, usize)>,
    /// The number of the record in the leaf that has the key, or would have it.
    at: usize,
    /// The number of the leaf's records.
    count: usize,
}

impl Tree {
    /// Estimates how many records have `lo` ≤ key < `hi` (`None`: no bound).
    ///
    /// Exact, while no thread changes the tree, if its ends lie in the same leaf, or in leaves near one another under
    /// one parent.
    pub fn estimate_range(&self, lo: Option<&[u8]>, hi: Option<&[u8]>) -> Result<u64> {
        if let (Some(lo), Some(hi)) = (lo, hi) {
            if lo >= hi {
                return Ok(0);
            }
        }
        if lo.unwrap_or(&[]).is_empty() && hi.is_none() {
            return self.estimate_records();
        }
        for _ in 0..knobs::estimate_attempts() {
            if let Some(records) = self.try_estimate(lo, hi)? {
                return Ok(records);
            }
        }
        // Under so many splits, a leaf's worth is a better guess for a range than the whole tree.
        Ok(self.path(Route::Key(lo.unwrap_or(&[])))?.count as u64)
    }

    /// Estimates as [`Tree::estimate_range`]; `None` if other threads split or merged nodes of the two paths meanwhile.
    fn try_estimate(&self, lo: Option<&[u8]>, hi: Option<&[u8]>) -> Result<Option<u64>> {
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
            // The root was split between the two descents.
            return Ok(None);
        }
        let fork = (0..height).find(|i| low.steps[*i].0 != high.steps[*i].0);
        let Some(fork) = fork else {
            return Ok(Some(high.at.saturating_sub(low.at) as u64));
        };
        // Beside each of the two paths, count by the path's own density; between the paths, by samples.
        let aside = |path: &Path, here: usize, count: fn((usize, usize)) -> usize| {
            let mut below = path.count as f64;
            let mut records = here as f64;
            for step in path.steps[fork + 1..].iter().rev() {
                records += count(*step) as f64 * below;
                below *= step.1 as f64;
            }
            records
        };
        let mut records = aside(&low, low.count - low.at, |(at, n)| n - 1 - at);
        records += aside(&high, high.at, |(at, _)| at);
        let (first, last) = (low.steps[fork].0 + 1, high.steps[fork].0);
        if first < last {
            let level = (height - fork) as u8;
            let key = lo.unwrap_or(&[]);
            match self.records_between(key, level, first, last)? {
                Some(between) => records += between,
                None => return Ok(None),
            }
        }
        Ok(Some(records as u64))
    }

    /// Estimates how many records lie below the children `first..last` of the node of `level` that takes the key.
    ///
    /// It takes samples of the children. It is exact if the children are leaves and all of them are samples. `None` if
    /// another thread split or merged the node meanwhile.
    fn records_between(
        &self,
        key: &[u8],
        level: u8,
        first: usize,
        last: usize,
    ) -> Result<Option<f64>> {
        let count = last - first;
        let samples = count.min(knobs::density_samples());
        let mut sum = 0.0;
        for sample in 0..samples {
            let child = first + (2 * sample + 1) * count / (2 * samples);
            let guard: Option<SharedGuard<'_>> = self.latch_node(Route::Key(key), level)?;
            let Some(guard) = guard else {
                return Ok(None);
            };
            let node = guard.node();
            if child == 0 || child > node.count() {
                return Ok(None);
            }
            let from = node.key(child - 1);
            drop(guard);
            sum += self.records_below(from, level - 1, 0.5)?;
        }
        Ok(Some(sum / samples as f64 * count as f64))
    }

    /// Estimates the number of records from a few descents spread over the tree.
    pub fn estimate_records(&self) -> Result<u64> {
        let mut sum = 0.0;
        for sample in 0..knobs::density_samples() {
            let fraction = (2 * sample + 1) as f64 / (2 * knobs::density_samples()) as f64;
            sum += self.records_below(Vec::new(), self.root_level()?, fraction)?;
        }
        Ok((sum / knobs::density_samples() as f64) as u64)
    }

    /// Estimates how many records lie below the node of `level` that takes the key.
    ///
    /// It descends to the child at `fraction` of each node's children.
    fn records_below(&self, mut key: Vec<u8>, mut level: u8, fraction: f64) -> Result<f64> {
        let mut records = 1.0;
        loop {
            let guard: Option<SharedGuard<'_>> = self.latch_node(Route::Key(&key), level)?;
            let Some(guard) = guard else {
                return Ok(records);
            };
            let node = guard.node();
            if node.is_leaf() {
                return Ok(records * node.count() as f64);
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
    }

    pub(super) fn root_level(&self) -> Result<u8> {
        loop {
            let root = self.seen_root()?;
            let level = self.pool.frames.optimistic(root.frame).level();
            if root.state.latch.still(root.version) {
                return Ok(level);
            }
        }
    }

    fn path(&self, route: Route<'_>) -> Result<Path> {
        'restart: loop {
            let height = usize::from(self.root_level()?);
            let mut steps = vec![(0, 1); height];
            for level in (0..height as u8).rev() {
                let Located::Child { place, .. } = self.locate(route, level)? else {
                    continue 'restart;
                };
                let children = self.pool.frames.optimistic(place.parent).count() + 1;
                let latch = &self.pool.frames.state(place.parent).latch;
                if !latch.still(place.version) {
                    continue 'restart;
                }
                steps[height - 1 - usize::from(level)] = (place.at, children);
            }
            let guard: SharedGuard<'_> = self.latch_leaf(route)?;
            let node: Node<'_> = guard.node();
            let at = match route {
                Route::Key(key) | Route::InMemory(key, _) | Route::Forward(key, _) => {
                    node.lower_bound(key).0
                }
                Route::Below(key) | Route::Backward(key, _) => node.lower_bound(key).0,
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
