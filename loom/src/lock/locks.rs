//! Models of the lock table: every waiter continues.

use std::sync::Arc;

use crate::sync::atomic::AtomicBool;
use crate::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use loom::thread;

use super::row_name::Row;
use super::row_name::RowName;
use super::running;
use super::running_transaction::{RunningTransaction, WaitState, Wake};
use super::table::{Admitted, Enqueued, LockMode, LockTable};
use crate::buffer::latch::Latch;
use crate::ids::TreeId;
use crate::model;

const TREE: TreeId = TreeId(1);
const KEY: &[u8] = &[1];

/// One row, and the latch and locks that guard it.
struct World {
    locks: LockTable,
    latch: Latch,
    /// Whether the row's header names a running writer.
    ///
    /// Read and changed under the latch, or at the writer's end.
    is_written: AtomicBool,
    /// Whether a transaction holds the row exclusively.
    is_held: AtomicBool,
}

impl World {
    fn new() -> Arc<World> {
        Arc::new(World {
            locks: LockTable::default(),
            latch: Latch::default(),
            is_written: AtomicBool::new(false),
            is_held: AtomicBool::new(false),
        })
    }

    /// Queues behind `writer`, or behind the holder of the row, and sleeps.
    ///
    /// Returns how the sleep ended, or `None` when there was nothing to wait for.
    fn wait(
        &self,
        me: &Arc<RunningTransaction>,
        mode: LockMode,
        writer: Option<&Arc<RunningTransaction>>,
    ) -> Option<Wake> {
        let (row, name) = (Row::new(TREE, KEY), RowName::new(TREE, KEY));
        match self.locks.enqueue(row, &name, me, mode, writer) {
            Enqueued::Retry => None,
            Enqueued::Waiting | Enqueued::WaitingWithHolder => {
                let wake = me.wait_slot.sleep(None);
                if wake != Wake::Granted {
                    self.locks.leave(row, me);
                }
                me.wait_slot.set(WaitState::Idle);
                Some(wake)
            }
        }
    }

    /// Locks the row, and waits as long as necessary.
    fn lock(&self, me: &Arc<RunningTransaction>, mode: LockMode) {
        let (row, name) = (Row::new(TREE, KEY), RowName::new(TREE, KEY));
        while !self.locks.try_lock(row, &name, me, mode) {
            self.wait(me, mode, None);
        }
    }

    /// Runs a transaction that locks the row exclusively, and ends.
    fn hold(&self, me: &Arc<RunningTransaction>) {
        self.lock(me, LockMode::Exclusive);
        assert!(!self.is_held.swap(true, Relaxed), "two hold the row");
        self.is_held.store(false, Relaxed);
        self.end(me);
    }

    /// Writes the row if no other transaction prevents it.
    fn write(&self) {
        self.latch.lock_exclusive();
        let admitted = self.locks.admits_writer(TREE, KEY, &running(), true);
        let written = matches!(admitted, Admitted::Yes);
        self.is_written.store(written, Relaxed);
        self.latch.unlock_exclusive();
    }

    fn end(&self, me: &Arc<RunningTransaction>) {
        self.locks.release_escalated(TREE, me);
        for row in me.take_rows() {
            self.locks.release(row, me);
        }
    }
}

fn spawn(world: &Arc<World>, work: impl FnOnce(&World) + 'static) -> thread::JoinHandle<()> {
    let world = world.clone();
    thread::spawn(move || work(&world))
}

fn join(threads: impl IntoIterator<Item = thread::JoinHandle<()>>) {
    for thread in threads {
        thread.join().expect("it has not panicked");
    }
}

/// A waiter gets the lock when the holder releases it; no entry remains.
pub fn released() {
    model(3, || {
        let world = World::new();
        let thread = spawn(&world, |world| world.hold(&running()));
        world.hold(&running());
        join([thread]);
        assert_eq!(world.locks.len(), 0);
    });
}

/// Two waiters for a shared lock both continue when the holder releases it.
pub fn shared() {
    model(2, || {
        let world = World::new();
        let threads = [(); 2].map(|()| {
            spawn(&world, |world| {
                let me = running();
                world.lock(&me, LockMode::Shared);
                assert!(
                    !world.is_held.load(Relaxed),
                    "shared beside an exclusive holder"
                );
                world.end(&me);
            })
        });
        world.hold(&running());
        join(threads);
        assert_eq!(world.locks.len(), 0);
    });
}

/// A waiter for a writer that only the row's header names continues when the writer ends.
pub fn writer_ends() {
    model(3, || {
        let world = World::new();
        world.is_written.store(true, Release);
        let writer = running();
        let thread = {
            let writer = writer.clone();
            spawn(&world, move |world| {
                let me = running();
                while world.is_written.load(Acquire) {
                    world.wait(&me, LockMode::Exclusive, Some(&writer));
                }
                world.hold(&me);
            })
        };
        world.is_written.store(false, Release);
        world.end(&writer);
        join([thread]);
        assert_eq!(world.locks.len(), 0);
    });
}

/// A kill wakes a waiter; no entry remains.
pub fn killed() {
    model(3, || {
        let world = World::new();
        let (holder, waiter) = (running(), running());
        world.lock(&holder, LockMode::Exclusive);
        let thread = {
            let me = waiter.clone();
            spawn(&world, move |world| {
                let wake = world.wait(&me, LockMode::Exclusive, None);
                assert_eq!(wake, Some(Wake::Killed));
                world.end(&me);
            })
        };
        waiter.wait_slot.kill();
        join([thread]);
        world.end(&holder);
        assert_eq!(world.locks.len(), 0);
    });
}

/// A kill and a release at the same time: the killed waiter may have the lock by then, and releases it.
pub fn killed_when_released() {
    model(2, || {
        let world = World::new();
        let (holder, waiter) = (running(), running());
        world.lock(&holder, LockMode::Exclusive);
        let waits = {
            let me = waiter.clone();
            spawn(&world, move |world| {
                let wake = world.wait(&me, LockMode::Exclusive, None);
                assert_ne!(wake, Some(Wake::TimedOut));
                world.end(&me);
            })
        };
        let kills = spawn(&world, move |_| waiter.wait_slot.kill());
        world.end(&holder);
        join([waits, kills]);
        assert_eq!(world.locks.len(), 0);
    });
}

/// A lock of a row and a write of it, each under the leaf's latch: one of the two finds the other.
pub fn writer_meets_locker() {
    model(3, || {
        let world = World::new();
        let locker = spawn(&world, |world| {
            let (row, name, me) = (Row::new(TREE, KEY), RowName::new(TREE, KEY), running());
            world.latch.lock_shared();
            let free = !world.is_written.load(Relaxed);
            let locked = free && world.locks.try_lock(row, &name, &me, LockMode::Shared);
            world.latch.unlock_shared();
            if locked {
                assert!(!world.is_written.load(Relaxed), "a locked row was written");
                world.end(&me);
            }
        });
        world.write();
        join([locker]);
        assert_eq!(world.locks.len(), 0);
    });
}

/// One thread turns the entry of a locked row into a range while another thread writes the row: the writer finds either
/// the entry or the range.
pub fn writer_meets_escalation() {
    model(3, || {
        let world = World::new();
        let locker = spawn(&world, |world| {
            let me = running();
            world.latch.lock_shared();
            let free = !world.is_written.load(Relaxed);
            let mode = LockMode::Shared;
            let locked = free && world.locks.try_take(TREE, KEY, &me, mode).is_ok();
            world.latch.unlock_shared();
            if locked {
                world.locks.escalate(TREE, KEY, &me);
                assert_eq!(me.held_rows(), 0);
                assert!(!world.is_written.load(Relaxed), "a locked row was written");
                world.end(&me);
            }
        });
        world.write();
        join([locker]);
        assert_eq!(world.locks.len(), 0);
    });
}
