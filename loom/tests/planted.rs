//! The models find planted faults.

use std::panic::catch_unwind;
use std::sync::Mutex;

use peregrine_loom::buffer::latches;
use peregrine_loom::lock::locks;
use peregrine_loom::mvcc::{commits, snapshots};
use peregrine_loom::planted::{plant, PlantedFault};

/// Runs a model with a fault, and expects it to fail.
///
/// Only one runs at a time, since all threads of the process have the fault.
fn found(fault: PlantedFault, model: fn()) {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _alone = ONE_AT_A_TIME.lock();
    plant(Some(fault));
    let outcome = catch_unwind(model);
    plant(None);
    assert!(outcome.is_err(), "{fault:?} was not found");
}

#[test]
fn a_latch_without_its_fences() {
    found(PlantedFault::UnfencedRead, latches::optimistic);
    found(PlantedFault::UnfencedChange, latches::optimistic);
}

#[test]
fn a_latch_that_wakes_too_early() {
    found(PlantedFault::WakeBeforeEvent, latches::asleep);
}

#[test]
fn snapshots_without_their_fences() {
    found(PlantedFault::UnfencedSnapshot, snapshots::horizon);
    found(PlantedFault::UnfencedHorizon, snapshots::horizon);
    found(PlantedFault::UnfencedWalk, snapshots::walk);
}

#[test]
fn ends_published_in_the_wrong_order() {
    found(PlantedFault::OldestBeforeEnd, commits::seen_in_order);
}

#[test]
fn a_kill_that_is_not_seen() {
    found(PlantedFault::UnguardedKill, locks::killed);
}

#[test]
fn an_entry_that_goes_before_its_range_is_seen() {
    found(
        PlantedFault::UnorderedEscalation,
        locks::writer_meets_escalation,
    );
}
