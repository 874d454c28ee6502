//! Reads of several pages that are asked for, and wait for a thread. How they are made and served: see [`crate::buffer::residency::read_ahead`].

use std::collections::VecDeque;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::ids::FrameId;
use crate::sync::{Condvar, Mutex};

/// So many pages of one request stand in place.
pub(super) const WITHOUT_MEMORY: usize = 32;

/// Where an inner node refers to children, and their pages.
pub(super) type Children = SmallVec<[(u16, u64); WITHOUT_MEMORY]>;

/// Children of an inner node that are to be brought.
#[derive(Debug)]
pub(super) struct Wanted {
    pub parent: FrameId,
    /// The page that was in the parent's frame.
    pub parent_page: u64,
    /// For a cursor that passes through, rather than for rows that are asked for.
    pub passing: bool,
    /// Where the parent refers to them, and their ids.
    pub children: Children,
}

/// A read that was asked for.
pub(super) struct Request {
    pub wanted: Wanted,
    /// Told when it is done.
    pub done: Option<Arc<Countdown>>,
}

/// Waits for a number of reads.
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
    /// Threads that read.
    pub readers: usize,
    pub stop: bool,
}
