//! The engine's parts that threads share without a lock, in orders of a few threads and of memory.
//!
//! These are the engine's own files, compiled against loom's threads, locks and atomics in the place of its own
//! seam ([`sync`]). Loom tries each order of a model's threads with at most two or three changes of thread that no
//! wait forces, and each value that a load may have by the memory model of C11, also those that no processor at hand gives
//! (Norris and Demsky, "CDSChecker", 2013; its fences and orderings are what schedules of the whole engine, of one thread at a time, cannot try).
//!
//! A model has two or three threads of a few steps each. It fails where an assertion does, and where all threads
//! wait.
//!
//! | module | models |
//! |---|---|
//! | `buffer::latches` | the latch: alone, together, by version, asleep |
//! | `mvcc::snapshots` | the registry of snapshots against the horizon, walks against freed undo pages |
//! | `mvcc::commits` | the order of commits against who reads by it |
//! | `lock::locks` | the lock table: who waits is woken, by a release, an end, or a kill |
#![forbid(unsafe_code)]
// Of what stands in the engine's files each model has use for a part.
#![allow(dead_code, unused_imports, missing_docs)]

pub mod buffer;
pub mod lock;
pub mod mvcc;

#[path = "../../engine/src/broken.rs"]
mod broken;
#[path = "../../engine/src/error.rs"]
mod error;
#[path = "../../engine/src/ids.rs"]
mod ids;
mod knobs;
#[path = "../../engine/src/planted/mod.rs"]
pub mod planted;
pub mod sync;

/// Plays a model in every order in which a thread is taken the processor up to `preemptions` times.
fn model(preemptions: usize, play: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 100_000;
    builder.check(play);
}
