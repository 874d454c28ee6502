//! The free page ids.

use crate::ids::PageId;
use crate::sync::Mutex;

/// Free page ids. After an opening the lowest is taken first; later, the one freed last.
#[derive(Debug)]
pub struct PageIds(Mutex<Free>);

#[derive(Debug)]
struct Free {
    ids: Vec<u64>,
    /// The lowest id never given out.
    next: u64,
}

impl PageIds {
    /// The ids in `free`, all below `next`, and all ids from `next` on.
    pub fn new(mut free: Vec<u64>, next: u64) -> Self {
        free.sort_unstable_by(|a, b| b.cmp(a));
        PageIds(Mutex::new(Free { ids: free, next }))
    }

    /// Takes an id that is not in use.
    pub fn take(&self) -> PageId {
        let mut free = self.0.lock();
        if let Some(id) = free.ids.pop() {
            return PageId(id);
        }
        free.next += 1;
        PageId(free.next - 1)
    }

    /// Gives an id back.
    pub fn give(&self, page: PageId) {
        self.0.lock().ids.push(page.0);
    }
}
