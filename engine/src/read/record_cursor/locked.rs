//! Walks that lock the ranges that they read.
//!
//! A serializable walk locks the range of a leaf before it copies the leaf. It learns the end of the range from a first
//! copy, and reads only a second one, made under the lock.

use crate::error::Result;
use crate::planted::{is_planted, PlantedFault};
use crate::read::record_cursor::{Direction, RecordCursor};
use crate::tree::{LeafImage, Position, Tree};

impl RecordCursor {
    /// Copies the leaf at a position under a lock of its range: from the position to the leaf's end, or to the walk's
    /// stop.
    pub(super) fn copy_locked(
        &mut self,
        tree: &Tree,
        position: Position<'_>,
        direction: Direction,
        near: bool,
    ) -> Result<bool> {
        let Some(locker) = &self.locker else {
            return Ok(false);
        };
        let image = self.image.get_or_insert_with(LeafImage::one_by_one);
        let stop = self.stop.as_deref();
        // The bound of the range on the side of the position.
        let mut side = Vec::new();
        match position {
            Position::First | Position::Last => {}
            Position::AtOrAfter(key) | Position::After(key) | Position::Before(key) => {
                side.extend_from_slice(key)
            }
            Position::AtOrBefore(key) => {
                side.extend_from_slice(key);
                side.push(0);
            }
        }
        let to_end = matches!(position, Position::Last);
        let mut locked: Option<Option<Vec<u8>>> = None;
        loop {
            // Older transactions have ended before the copy: their records are final.
            self.view.low = locker.oldest_writer();
            let found = if near {
                tree.copy_near(position, image)?
            } else {
                tree.copy_leaf(position, image)?
            };
            match direction {
                Direction::Forward => {
                    let fence = image.upper_fence().filter(|_| found);
                    let end = match (fence, stop) {
                        (Some(fence), Some(stop)) => Some(fence.min(stop)),
                        (fence, stop) => fence.or(stop),
                    };
                    let enough = locked.as_ref().is_some_and(|locked| match (locked, end) {
                        (None, _) => true,
                        (Some(locked), Some(end)) => &locked[..] >= end,
                        (Some(_), None) => false,
                    });
                    if enough {
                        // The leaf may have been split since its range was locked: then the lock reaches further than
                        // the copy.
                        let copied = end.map(<[u8]>::to_vec);
                        self.locked_until = match is_planted(PlantedFault::ReachBeyondLeaf) {
                            true => locked.flatten(),
                            false => copied,
                        };
                        return Ok(found);
                    }
                    locker.lock(tree, &side, end);
                    locked = Some(end.map(<[u8]>::to_vec));
                }
                Direction::Backward => {
                    let begin = if found { image.lower_fence() } else { &[] };
                    let enough = locked
                        .as_ref()
                        .is_some_and(|locked| locked.as_deref().unwrap_or(&[]) <= begin);
                    if enough {
                        return Ok(found);
                    }
                    let end = (!to_end).then_some(&side[..]);
                    locker.lock(tree, begin, end);
                    locked = Some(Some(begin.to_vec()));
                }
            }
        }
    }

    /// As [`RecordCursor::next_leaf`], but locks the range of the leaf first.
    pub(super) fn next_locked_leaf(
        &mut self,
        tree: &Tree,
        direction: Direction,
    ) -> Result<Option<usize>> {
        let mut fence = std::mem::take(&mut self.fence);
        fence.clear();
        let position = match direction {
            Direction::Forward => match (&self.locked_until, &self.stop) {
                (None, _) => None,
                (Some(reach), Some(stop)) if reach >= stop => None,
                (Some(reach), _) => {
                    fence.extend_from_slice(reach);
                    Some(Position::AtOrAfter(&fence))
                }
            },
            Direction::Backward => {
                let lower = self.image.as_ref().map_or(&[][..], LeafImage::lower_fence);
                fence.extend_from_slice(lower);
                (!self.ends_at(lower)).then_some(Position::Before(&fence))
            }
        };
        let found = match position {
            Some(position) => self.copy_locked(tree, position, direction, false)?,
            None => false,
        };
        let at = self.image.as_ref().filter(|_| found);
        let at = at.map(|image| image.lower_bound(&fence).0);
        self.fence = fence;
        if at.is_some() {
            self.leaf_copied();
        }
        Ok(at)
    }
}
