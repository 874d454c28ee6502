//! The addresses that threads of a schedule may wait for.

use std::sync::atomic::{AtomicU32, Ordering};

/// The number of waiting threads for each group of addresses. Only the thread that has the turn uses it, like
/// [`super::clock::Clock`]. Most locks are released while no thread waits for them; this tells so without a mutex.
#[derive(Debug)]
pub(super) struct Waits([AtomicU32; Waits::GROUPS]);

impl Waits {
    const GROUPS: usize = 256;

    fn of(&self, address: usize) -> &AtomicU32 {
        // Multiplied, as the low bits of addresses are alike.
        let mixed = (address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        &self.0[(mixed >> 56) as usize % Self::GROUPS]
    }

    pub fn may_be_awaited(&self, address: usize) -> bool {
        self.of(address).load(Ordering::Relaxed) > 0
    }

    pub fn begin(&self, address: usize) {
        self.of(address).fetch_add(1, Ordering::Relaxed);
    }

    pub fn end(&self, address: usize) {
        self.of(address).fetch_sub(1, Ordering::Relaxed);
    }
}

impl Default for Waits {
    fn default() -> Self {
        Waits(std::array::from_fn(|_| AtomicU32::new(0)))
    }
}
