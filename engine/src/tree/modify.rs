//! Changing one record.

use std::cell::RefCell;

use super::descend::Route;
use super::{check_sizes, Tree};
use crate::buffer::{ExclusiveGuard, RecordEdit};
use crate::error::{Error, Result};
use crate::ids::PageId;
use crate::knobs;
use crate::planted::{is_planted, PlantedFault};

thread_local! {
    /// A buffer for the new value of a record.
    static NEW_VALUE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Returns the thread's buffer, or a new one if the buffer is gone: a thread that ends may drop a transaction.
fn take_buffer() -> Result<Vec<u8>> {
    let taken = NEW_VALUE.try_with(RefCell::take);
    if taken.is_err() && is_planted(PlantedFault::NeedThreadsBuffer) {
        return Err(Error::Internal("the thread's buffer is gone".into()));
    }
    Ok(taken.unwrap_or_default())
}

impl Tree {
    /// Calls `f` exactly once with the key's value, under the leaf's exclusive latch, and does what it returns.
    ///
    /// The tree makes room for a value of `max_value` bytes before, so nothing can fail after `f`. Unless `f` returns
    /// [`RecordEdit::Keep`], the leaf's newest transaction becomes at least `txid`.
    pub fn modify<R>(
        &self,
        key: &[u8],
        max_value: usize,
        txid: u64,
        f: impl FnOnce(Option<&[u8]>, &mut Vec<u8>) -> (RecordEdit, R),
    ) -> Result<R> {
        self.modify_in(key, max_value, txid, |_, old, new| f(old, new))
    }

    /// Like [`Tree::modify`], but also passes the leaf's page to `f`.
    pub fn modify_in<R>(
        &self,
        key: &[u8],
        max_value: usize,
        txid: u64,
        f: impl FnOnce(PageId, Option<&[u8]>, &mut Vec<u8>) -> (RecordEdit, R),
    ) -> Result<R> {
        check_sizes(key, max_value)?;
        let guard = self.latch_with_room(key, max_value)?;
        let leaf = guard.page();
        self.change(guard, key, max_value, txid, |old, new| f(leaf, old, new))
    }

    /// Like [`Tree::modify`], for a new value that is not longer than the present one: it needs no room.
    pub fn rewrite<R>(
        &self,
        key: &[u8],
        f: impl FnOnce(Option<&[u8]>, &mut Vec<u8>) -> (RecordEdit, R),
    ) -> Result<R> {
        check_sizes(key, 0)?;
        let guard: ExclusiveGuard<'_> = self.latch_leaf(Route::Key(key))?;
        let (at, found) = guard.node().lower_bound(key);
        let len = if found {
            guard.node().value(at).len()
        } else {
            0
        };
        self.change(guard, key, len, 0, f)
    }

    fn change<R>(
        &self,
        mut guard: ExclusiveGuard<'_>,
        key: &[u8],
        max_value: usize,
        txid: u64,
        f: impl FnOnce(Option<&[u8]>, &mut Vec<u8>) -> (RecordEdit, R),
    ) -> Result<R> {
        // Before `f`, because this can fail.
        guard.prepare()?;
        let (at, found) = guard.node().lower_bound(key);
        let mut new = take_buffer()?;
        new.clear();
        let old = found.then(|| guard.node().value(at));
        let (change, result) = f(old, &mut new);
        let mut underfull = false;
        match change {
            RecordEdit::Keep => {}
            RecordEdit::Put if new.len() > max_value => {
                return Err(Error::Internal(format!(
                    "a value of {} bytes where at most {max_value} were announced",
                    new.len()
                )));
            }
            RecordEdit::Put => {
                guard.mark_dirty();
                let mut node = guard.node_mut();
                if found {
                    node.set_value(at, &new);
                } else {
                    node.insert(at, key, &new);
                }
                node.touch(txid);
            }
            RecordEdit::Remove => {
                if found {
                    guard.mark_dirty();
                    let mut node = guard.node_mut();
                    node.remove(at);
                    node.touch(txid);
                    let node = guard.node();
                    // Not at every removal: the neighbours may be too full for a merge.
                    underfull = node.used() < knobs::merge_below() && node.count() % 4 == 0;
                }
            }
        }
        // At the thread's end, the buffer may be gone.
        let _ = NEW_VALUE.try_with(|buffer| buffer.replace(new));
        drop(guard);
        if underfull {
            self.merge_around(key, 0);
        }
        Ok(result)
    }

    /// Latches the key's leaf with room for a value of `max_value` bytes under the key.
    fn latch_with_room(&self, key: &[u8], max_value: usize) -> Result<ExclusiveGuard<'_>> {
        loop {
            let mut guard: ExclusiveGuard<'_> = self.latch_leaf(Route::Key(key))?;
            let fits = |guard: &ExclusiveGuard<'_>| {
                let node = guard.node();
                let (at, found) = node.lower_bound(key);
                node.fits(key, found.then_some(at), max_value)
            };
            if fits(&guard) || (self.freeze(&mut guard)? && fits(&guard)) {
                return Ok(guard);
            }
            drop(guard);
            self.split_leaf(key, max_value)?;
        }
    }

    /// Lets the layer above shorten and drop records; true if that has freed `knobs::frozen_enough` bytes.
    fn freeze(&self, guard: &mut ExclusiveGuard<'_>) -> Result<bool> {
        let Some(freeze) = self.pool.freeze.get() else {
            return Ok(false);
        };
        guard.prepare()?;
        let before = guard.node().used();
        let mut new = Vec::new();
        for at in (0..guard.node().count()).rev() {
            new.clear();
            let value = guard.node().value(at);
            let len = value.len();
            match freeze.freeze(value, &mut new) {
                RecordEdit::Put if new.len() <= len => {
                    guard.mark_dirty();
                    guard.node_mut().set_value(at, &new);
                }
                RecordEdit::Remove => {
                    guard.mark_dirty();
                    guard.node_mut().remove(at);
                }
                RecordEdit::Keep | RecordEdit::Put => {}
            }
        }
        Ok(guard.node().used() + knobs::frozen_enough() <= before)
    }
}
