//! The queue of one row in the lock table: who holds it, who waits for it, and who is granted it next.

use std::collections::VecDeque;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::lock::row_name::{Row, RowName};
use crate::lock::running_transaction::{RunningTransaction, WaitSlot, WaitState};
use crate::planted::{is_planted, PlantedFault};

/// Strength of a row lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockMode {
    /// Others may lock it shared too; nobody else writes it.
    Shared,
    /// Nobody else locks or writes it.
    Exclusive,
}

impl LockMode {
    /// Whether two locks of these strengths can't be held by two transactions at once.
    pub fn excludes(self, other: LockMode) -> bool {
        (self, other) != (LockMode::Shared, LockMode::Shared)
    }
}

#[derive(Clone)]
pub(crate) struct Holder {
    pub who: Arc<RunningTransaction>,
    pub mode: LockMode,
    /// Only for a range around the row, so that a writer can wait for it: the row itself it has not locked.
    pub ranged: bool,
    /// Only for the row's header, which names it, so that others can wait for it: it has not locked the row otherwise.
    pub by_header: bool,
}

impl Holder {
    /// It holds the row itself.
    pub fn hold(&mut self, mode: LockMode) {
        self.mode = mode;
        self.ranged = false;
        self.by_header = false;
    }

    /// It is the row's writer, whom others wait for.
    fn hold_by_header(&mut self) {
        let by_header = self.by_header || self.ranged;
        self.hold(LockMode::Exclusive);
        self.by_header = by_header;
    }

    /// It holds a range around the row exclusively. The row it may share with others, beside which it was passed over
    /// when the range grew.
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

/// Those who hold one row, and those who wait for it.
pub(crate) struct Queue {
    /// For those who look on.
    pub name: RowName,
    pub holders: SmallVec<[Holder; 1]>,
    pub waiters: VecDeque<Waiter>,
}

/// Those granted, to be woken once the shard's mutex is free: who wakes may be put aside for who is
/// woken, and nobody could use the shard meanwhile.
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

/// What came of asking for a place in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Enqueued {
    /// What was in the way is gone.
    Retry,
    /// In the queue; the wait slot's state says so.
    Waiting,
    /// In the queue, and others that wait there have another holder before them, who came with it.
    WaitingWithHolder,
}

impl Enqueued {
    /// Of one that waits, whether it has `entered` a holder before others.
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

    /// Shows each holder to `f` as one that `who` waits for. That is true of those that share the row as well as `who`
    /// would: then somebody before it waits for them.
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

    /// Whether `who` could hold the row in `mode` beside the present holders.
    pub fn compatible(&self, who: &Arc<RunningTransaction>, mode: LockMode) -> bool {
        self.holders
            .iter()
            .all(|holder| Arc::ptr_eq(&holder.who, who) || !mode.excludes(holder.mode))
    }

    /// Makes `who` a holder for what it holds elsewhere: the row's header, or a range. False when
    /// it has ended.
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
        // Where it waits here itself it goes first, as every holder that wants more.
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
                        // Fails when the writer has ended: then there is nothing to wait for.
                        if !self.enter(row, writer, LockMode::Exclusive, false)
                            && !is_planted(PlantedFault::WaitForEnded)
                        {
                            return Enqueued::Retry;
                        }
                    }
                }
                // Granted when the writer was at the row already: both would hold it, and wait for each other.
                let granted = held.filter(|own| {
                    !self.holders[*own].ranged && !is_planted(PlantedFault::HoldBesideWriter)
                });
                if let Some(own) = granted {
                    self.holders.remove(own);
                    who.forget(row);
                }
            }
            None => {
                // Whoever holds the row already goes before those in the queue.
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
        // Who holds the row already and wants more of it goes first: nobody behind can be granted
        // before it has it. So does who was granted it in vain: it has waited before.
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
                // Who holds a range exclusively, and asks to share the row, has what it asks for.
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
        // Who locks the row waits for no ranges, and the next writer finds them again.
        if self.waiters.is_empty() && !is_planted(PlantedFault::RangesStayRows) {
            self.holders.retain(|holder| !holder.ranged);
        }
        granted
    }
}
