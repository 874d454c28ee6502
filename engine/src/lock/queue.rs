//! The queue of one row in the lock table: its holders, its waiters, and which waiter gets the row next.

use std::collections::VecDeque;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::lock::row_name::{Row, RowName};
use crate::lock::running_transaction::{RunningTransaction, WaitSlot, WaitState};
use crate::planted::{is_planted, PlantedFault};

/// Strength of a row lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockMode {
    /// Other transactions may lock the row shared, too; no other transaction may write it.
    Shared,
    /// No other transaction may lock or write the row.
    Exclusive,
}

impl LockMode {
    /// Returns whether two transactions can't hold locks of these strengths at once.
    pub fn excludes(self, other: LockMode) -> bool {
        (self, other) != (LockMode::Shared, LockMode::Shared)
    }
}

#[derive(Clone)]
pub(crate) struct Holder {
    pub who: Arc<RunningTransaction>,
    pub mode: LockMode,
    /// It holds only a range around the row, not the row; it is listed so that a writer can wait for it.
    pub ranged: bool,
    /// Only the row's header names it, and it has not locked the row otherwise; it is listed so that others can wait
    /// for it.
    pub by_header: bool,
}

impl Holder {
    /// Makes it a holder of the row itself.
    pub fn hold(&mut self, mode: LockMode) {
        self.mode = mode;
        self.ranged = false;
        self.by_header = false;
    }

    /// Makes it a holder as the row's writer, so that others can wait for it.
    fn hold_by_header(&mut self) {
        let by_header = self.by_header || self.ranged;
        self.hold(LockMode::Exclusive);
        self.by_header = by_header;
    }

    /// Makes it exclude others because of an exclusive range around the row.
    ///
    /// It may share the row itself with other holders: the range grew over the row without regard to them.
    pub fn excludes_for_range(&mut self) {
        if self.mode == LockMode::Shared {
            self.mode = LockMode::Exclusive;
            self.ranged = !is_planted(PlantedFault::HoldRangesAsRows);
        }
    }
}

#[derive(Clone)]
pub(crate) struct Waiter {
    pub who: Arc<RunningTransaction>,
    pub mode: LockMode,
}

/// The holders and the waiters of one row.
pub(crate) struct Queue {
    /// For lists of locks.
    pub name: RowName,
    pub holders: SmallVec<[Holder; 1]>,
    pub waiters: VecDeque<Waiter>,
}

/// The waiters that were granted a row; the caller wakes them after it has released the shard's mutex.
///
/// The scheduler may run a woken thread in place of the waking one. With the mutex held, no thread could then use the
/// shard.
#[must_use]
#[derive(Default)]
pub(crate) struct Granted(SmallVec<[Arc<WaitSlot>; 2]>);

impl Granted {
    pub fn wake(self) {
        for wait_slot in self.0 {
            wait_slot.unpark();
        }
    }
}

/// The outcome of a request for a place in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Enqueued {
    /// The hindrance is gone; the caller tries again.
    Retry,
    /// In the queue; the wait slot's state says so.
    Waiting,
    /// In the queue; the request also made another transaction a holder, for which earlier waiters wait, too.
    WaitingWithHolder,
}

impl Enqueued {
    /// Returns the outcome for a waiter; `entered`: its request made a holder for which earlier waiters wait, too.
    pub fn with(self, entered: bool) -> Enqueued {
        match self {
            Enqueued::Retry => Enqueued::Retry,
            _ if entered && !is_planted(PlantedFault::UntoldHolders) => Enqueued::WaitingWithHolder,
            waiting => waiting,
        }
    }
}

impl Queue {
    pub fn new(name: &RowName) -> Self {
        Queue {
            name: *name,
            holders: SmallVec::new(),
            waiters: VecDeque::new(),
        }
    }

    pub fn position(&self, who: &Arc<RunningTransaction>) -> Option<usize> {
        self.holders
            .iter()
            .position(|holder| Arc::ptr_eq(&holder.who, who))
    }

    /// Calls `f` with `who` and each other holder, as a waiter and a holder that it waits for.
    ///
    /// This includes holders with which `who` could share the row: then a waiter before `who` waits for them.
    pub fn waits_for_holders(
        &self,
        who: &Arc<RunningTransaction>,
        f: &mut impl FnMut(&RunningTransaction, &RunningTransaction),
    ) {
        for holder in &self.holders {
            if !Arc::ptr_eq(&holder.who, who) {
                f(who, &holder.who);
            }
        }
    }

    pub fn is_empty(&self) -> bool {
        self.holders.is_empty() && self.waiters.is_empty()
    }

    /// Returns whether `who` could hold the row in `mode` beside the present holders.
    pub fn compatible(&self, who: &Arc<RunningTransaction>, mode: LockMode) -> bool {
        self.holders
            .iter()
            .all(|holder| Arc::ptr_eq(&holder.who, who) || !mode.excludes(holder.mode))
    }

    /// Makes `who` a holder because the row's header names it, or because it holds a range.
    ///
    /// Returns false if `who` has ended.
    pub fn enter(
        &mut self,
        row: Row,
        who: &Arc<RunningTransaction>,
        mode: LockMode,
        ranged: bool,
    ) -> bool {
        if !who.add_row(row) {
            return false;
        }
        self.holders.push(Holder {
            who: who.clone(),
            mode,
            ranged,
            by_header: !ranged,
        });
        // If `who` itself waits for this row, it goes first, like every holder that wants a stronger lock.
        if who.wait_slot.state() == WaitState::Queued(row) {
            let waits = |waiter: &Waiter| Arc::ptr_eq(&waiter.who, who);
            let at = self.waiters.iter().position(waits);
            if let Some(waiter) = at.and_then(|at| self.waiters.remove(at)) {
                self.waiters.push_front(waiter);
            }
        }
        true
    }

    pub fn enqueue(
        &mut self,
        row: Row,
        who: &Arc<RunningTransaction>,
        mode: LockMode,
        writer: Option<&Arc<RunningTransaction>>,
    ) -> Enqueued {
        let mut entered = false;
        let held = self.position(who);
        match writer {
            Some(writer) => {
                match self.position(writer) {
                    Some(held) => self.holders[held].hold_by_header(),
                    None => {
                        entered = !self.waiters.is_empty();
                        // This fails if the writer has ended. Then there is nothing to wait for.
                        if !self.enter(row, writer, LockMode::Exclusive, false)
                            && !is_planted(PlantedFault::WaitForEnded)
                        {
                            return Enqueued::Retry;
                        }
                    }
                }
                // `who` was granted the row although the writer had written it. As two holders, each would wait for
                // the other.
                let granted = held.filter(|own| {
                    !self.holders[*own].ranged && !is_planted(PlantedFault::HoldBesideWriter)
                });
                if let Some(own) = granted {
                    self.holders.remove(own);
                    who.forget(row);
                }
            }
            None => {
                // A holder of the row goes before the waiters.
                let first = self.waiters.is_empty() || held.is_some();
                if first && self.compatible(who, mode) {
                    return Enqueued::Retry;
                }
            }
        }
        let waiter = Waiter {
            who: who.clone(),
            mode,
        };
        who.wait_slot.set(WaitState::Queued(row));
        // A holder that wants a stronger lock goes first: no waiter behind it can be granted the row before it. A
        // transaction that was granted the row in vain goes first, too, because it has waited before.
        if held.is_some() {
            self.waiters.push_front(waiter);
        } else {
            self.waiters.push_back(waiter);
        }
        Enqueued::Waiting.with(entered)
    }

    pub fn grant(&mut self, row: Row) -> Granted {
        let mut granted = Granted::default();
        while let Some(front) = self.waiters.front() {
            if !self.compatible(&front.who, front.mode) {
                break;
            }
            let Some(waiter) = self.waiters.pop_front() else {
                break;
            };
            match self.position(&waiter.who) {
                // A holder of an exclusive range that asks to share the row already has what it asks for.
                Some(own) => {
                    let asks = waiter.mode == LockMode::Exclusive;
                    if asks || self.holders[own].mode == LockMode::Shared {
                        self.holders[own].hold(waiter.mode);
                    }
                }
                None => {
                    waiter.who.add_row(row);
                    self.holders.push(Holder {
                        who: waiter.who.clone(),
                        mode: waiter.mode,
                        ranged: false,
                        by_header: false,
                    });
                }
            }
            if waiter.who.wait_slot.end_wait(WaitState::Granted) {
                granted.0.push(waiter.who.wait_slot.clone());
            }
        }
        // Without waiters, ranged holders are not needed: a lock request does not wait for searched ranges, and the
        // next writer finds the ranges again.
        if self.waiters.is_empty() && !is_planted(PlantedFault::RangesStayRows) {
            self.holders.retain(|holder| !holder.ranged);
        }
        granted
    }
}
