//! The smallest constants: many steps in the engine are few here.

pub const fn latch_spins() -> u32 {
    0
}

pub const fn lock_shards() -> usize {
    1
}

pub const fn range_shards() -> usize {
    1
}

pub const fn rows_before_escalation() -> usize {
    1
}

pub const fn escalated_ranges() -> usize {
    1
}

pub const fn searched_ranges() -> usize {
    1
}

pub const fn status_chunk() -> u64 {
    2
}

pub const fn most_aborted_in_chunk() -> usize {
    1
}

pub const fn snapshot_places() -> usize {
    2
}
