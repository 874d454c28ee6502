//! Every model holds.

use peregrine_loom::buffer::latches;
use peregrine_loom::lock::locks;
use peregrine_loom::mvcc::{commits, snapshots};

#[test]
fn exclusive_holders_of_a_latch_are_alone() {
    latches::exclusive();
}

#[test]
fn shared_holders_see_changes_whole() {
    latches::shared();
}

#[test]
fn a_version_that_holds_vouches_for_what_was_read() {
    latches::optimistic();
}

#[test]
fn a_latch_taken_by_version_finds_what_was_read() {
    latches::upgraded();
}

#[test]
fn who_sleeps_for_a_latch_is_woken() {
    latches::asleep();
}

#[test]
fn the_horizon_passes_no_snapshot_that_is_being_taken() {
    snapshots::horizon();
}

#[test]
fn versions_that_a_second_snapshot_needs_stay() {
    snapshots::listed();
}

#[test]
fn no_page_of_undo_is_freed_under_a_walk() {
    snapshots::walk();
}

#[test]
fn ends_are_seen_in_their_order() {
    commits::seen_in_order();
}

#[test]
fn a_snapshot_sees_the_same_twice() {
    commits::the_same_twice();
}

#[test]
fn who_waits_for_a_lock_gets_it_when_it_is_released() {
    locks::released();
}

#[test]
fn all_who_wait_to_share_a_row_go_on() {
    locks::shared();
}

#[test]
fn who_waits_for_a_writer_goes_on_at_its_end() {
    locks::writer_ends();
}

#[test]
fn who_waits_is_woken_by_a_kill() {
    locks::killed();
}

#[test]
fn a_kill_beside_a_release_leaves_nothing_behind() {
    locks::killed_when_released();
}

#[test]
fn a_writer_and_a_locker_of_a_row_find_each_other() {
    locks::writer_meets_locker();
}

#[test]
fn a_writer_finds_a_lock_whose_entry_becomes_a_range() {
    locks::writer_meets_escalation();
}
