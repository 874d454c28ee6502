//! Loom models of the engine's parts that threads share without a lock.
//!
//! The models compile the engine's own files against loom's threads, locks and atomics, in place of the engine's module
//! [`sync`]. Loom tries each order of a model's threads with at most two or three preemptions. It also tries each value
//! that a load may return under the memory model of C11 (Norris and Demsky, "CDSChecker", 2013), even if no available
//! processor returns it. Schedules of the whole engine run one thread at a time, so they can't test its fences
//! and memory orderings.
//!
//! A model has two or three threads of a few steps each. It fails when an assertion fails, and when all threads wait.
//!
//! | module | models |
//! |---|---|
//! | `buffer::latches` | the latch: alone, together, by version, asleep |
//! | `mvcc::snapshots` | the registry of snapshots against the horizon, walks against freed undo pages |
//! | `mvcc::commits` | the order of commits against readers that use it |
//! | `lock::locks` | the lock table: a release, an end, or a kill wakes a waiter |
#![forbid(unsafe_code)]
// Each model uses only a part of the engine's files.
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

/// Runs a model in every order with at most `preemptions` preemptions of a thread.
fn model(preemptions: usize, play: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 100_000;
    builder.check(play);
}
