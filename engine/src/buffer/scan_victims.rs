//! Leaves that are evicted first, because scans only passed through them.

use std::collections::VecDeque;

use crate::ids::FrameId;
use crate::sync::Mutex;

/// Leaves that a scan has passed, or that have a mini-page: the frame of each, and the page that was in it.
///
/// The evictor takes the last leaf first: so a part of a table that is scanned again and again stays in memory. In
/// the scan's order, each leaf would be evicted shortly before the next scan needs it.
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
