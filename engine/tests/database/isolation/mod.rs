//! Concurrent sessions.

mod doomed;
mod guards;
mod interleaved;
mod optimistic;
mod row_in_the_way;
mod semi_consistent;
mod serializable;
pub(crate) mod six_rows;
mod skip_locked;
mod thread_ends;
mod threads;
mod told_waits;
mod two_halves;
