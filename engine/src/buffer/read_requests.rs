//! Queued reads of several pages; see [`crate::buffer::residency::read_ahead`] for how they are made and served.

use std::collections::VecDeque;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::ids::FrameId;
use crate::sync::{Condvar, Mutex};

/// Children of a request that are stored without a heap allocation.
pub(super) const WITHOUT_MEMORY: usize = 32;

/// Children of an inner node: the number of each child in the node, and its page id.
pub(super) type Children = SmallVec<[(u16, u64); WITHOUT_MEMORY]>;

/// Children of an inner node that are to be loaded.
#[derive(Debug)]
pub(super) struct Wanted {
    pub parent: FrameId,
    /// The page that was in the parent's frame when the request was made.
    pub parent_page: u64,
    /// Whether a cursor that passes through the leaves needs them, rather than a read of given rows.
    pub passing: bool,
    /// The number of each child in the parent, and its page id.
    pub children: Children,
}

/// A queued read.
pub(super) struct Request {
    pub wanted: Wanted,
    /// Counted down when the request is served or dropped.
    pub done: Option<Arc<Countdown>>,
}

/// Counts requests that are not done, for the thread that waits for them.
pub(super) struct Countdown {
    pub left: Mutex<usize>,
    pub none: Condvar,
}

impl Drop for Request {
    fn drop(&mut self) {
        if let Some(done) = &self.done {
            let mut left = done.left.lock();
            *left -= 1;
            if *left == 0 {
                done.none.notify_all();
            }
        }
    }
}

/// The reads that wait for a thread.
#[derive(Default)]
pub(crate) struct Requests {
    pub(super) queue: Mutex<Queue>,
    pub(super) more: Condvar,
}

#[derive(Default)]
pub(crate) struct Queue {
    pub requests: VecDeque<Request>,
    /// The number of reader threads.
    pub readers: usize,
    pub stop: bool,
}
