//! Leaves that are the first to be evicted, for scans only passed through them.

use std::collections::VecDeque;

use crate::ids::FrameId;
use crate::sync::Mutex;

/// The leaves that cursors have passed through, with the pages that were in the frames. What was passed
/// last goes first: of a table that is scanned again and again a part then stays in memory, where
/// otherwise each leaf would go shortly before it is needed.
#[derive(Default)]
pub(crate) struct ScanVictims(Mutex<VecDeque<(FrameId, u64)>>);

impl ScanVictims {
    pub fn push(&self, frame: FrameId, page: u64, most: usize) {
        let mut passed = self.0.lock();
        if passed.len() >= most {
            passed.pop_front();
        }
        passed.push_back((frame, page));
    }

    pub fn pop(&self) -> Option<(FrameId, u64)> {
        self.0.lock().pop_back()
    }
}
