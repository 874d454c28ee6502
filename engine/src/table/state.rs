//! State of a table besides its pages: counters, and the transactions that use it.

use super::users::{Seat, Users};
use crate::error::{Error, Result};
use crate::ids::Csn;
use crate::planted::{is_planted, PlantedFault};
use crate::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use crate::sync::{Moments, Mutex};
use crate::txn::BarrierGuard;

/// A table's counters.
///
/// A checkpoint stores some of them; see `recovery/`.
pub(crate) struct TableState {
    /// Committed inserts less deletes.
    rows: AtomicI64,
    /// The next auto-increment value.
    next_auto: AtomicU64,
    /// One more than the highest explicit value: giving values back does not lower the counter below it.
    given_auto: AtomicU64,
    /// The auto-increment value that the log or a checkpoint is sure to have.
    logged_auto: AtomicU64,
    /// The next hidden row id.
    pub next_row_id: AtomicU64,
    /// The next number of a large value.
    pub next_large: AtomicU64,
    /// Transactions that have used the table and have not ended.
    users: Users,
    /// Those of them that are prepared, and may outlive their sessions.
    prepared: AtomicU64,
    /// Held by threads that open the table, change its definition or remove it.
    ///
    /// A thread that holds the lock of all tables must not wait for it.
    pub opening: Mutex<()>,
    /// The table is being changed as a whole, or is dropped: no transaction may begin to use it.
    closed: AtomicBool,
    gone: AtomicBool,
    /// Snapshots older than this CSN saw no table, or one with other rows.
    ///
    /// Snapshots do not outlive the process, so this is not stored.
    since: AtomicU64,
    /// The table belongs to one session, which sees the same rows whatever its snapshot is.
    of_one_session: AtomicBool,
    /// Points at which schedules pause threads, and tests act.
    pub(crate) moments: Moments,
}

impl TableState {
    pub fn new(rows: i64, next_auto: u64) -> Self {
        TableState {
            rows: AtomicI64::new(rows),
            next_auto: AtomicU64::new(next_auto),
            given_auto: AtomicU64::new(0),
            logged_auto: AtomicU64::new(next_auto),
            next_row_id: AtomicU64::new(1),
            next_large: AtomicU64::new(1),
            users: Users::default(),
            prepared: AtomicU64::new(0),
            opening: Mutex::default(),
            closed: AtomicBool::new(false),
            gone: AtomicBool::new(false),
            since: AtomicU64::new(0),
            of_one_session: AtomicBool::new(false),
            moments: Moments::default(),
        }
    }

    /// See [`crate::TableOptions::of_one_session`].
    pub fn set_of_one_session(&self) {
        self.of_one_session.store(true, Ordering::Relaxed);
    }

    /// Whether the table belongs to one session.
    pub fn is_of_one_session(&self) -> bool {
        self.of_one_session.load(Ordering::Relaxed)
    }

    /// Whether the log has the table's rows.
    ///
    /// Not those of a table of one session: it does not outlive the process. The rows that filled it are not logged, so
    /// replay could not repeat later changes.
    pub fn is_logged(&self) -> bool {
        !self.is_of_one_session() || is_planted(PlantedFault::LogOwnRows)
    }

    /// Notes that the table was created, or got other rows, at this place in the order of commits.
    pub fn set_since(&self, csn: Csn) {
        self.since.store(csn.0, Ordering::Release);
    }

    /// Whether a snapshot sees the table with its present rows.
    pub fn is_in(&self, snapshot: Csn) -> bool {
        snapshot.0 >= self.since.load(Ordering::Acquire) || self.is_of_one_session()
    }

    pub fn rows(&self) -> i64 {
        self.rows.load(Ordering::Relaxed)
    }

    /// Adds the difference of a commit to the number of rows: inside the barrier, together with the commit.
    pub fn add_rows(&self, _inside: &BarrierGuard<'_>, delta: i64) {
        self.restore_rows(delta);
    }

    /// Adds the difference of a commit on replay, when no transaction runs.
    pub fn restore_rows(&self, delta: i64) {
        if delta != 0 {
            self.rows.fetch_add(delta, Ordering::Relaxed);
        }
    }

    pub fn set_rows(&self, rows: i64) {
        self.rows.store(rows, Ordering::Relaxed);
    }

    pub fn next_auto(&self) -> u64 {
        self.next_auto.load(Ordering::Relaxed)
    }

    pub fn raise_auto(&self, value: u64) {
        // Before the counter, so that a thread that lowers the counter meanwhile sees the value.
        self.given_auto.fetch_max(value, Ordering::SeqCst);
        self.next_auto.fetch_max(value, Ordering::SeqCst);
    }

    /// Sets the counter to `value`, even if that is lower (truncate).
    pub fn reset_auto(&self, value: u64) {
        self.given_auto.store(0, Ordering::Relaxed);
        self.next_auto.store(value, Ordering::Relaxed);
        self.logged_auto.store(value, Ordering::Relaxed);
    }

    /// Reserves `n` values; see [`crate::Table::reserve_auto_increment`].
    pub fn reserve_auto(&self, n: u64, increment: u64, offset: u64, max: u64) -> Result<u64> {
        let increment = increment.max(1);
        // As MariaDB does: an offset beyond the increment counts as none.
        let offset = if offset == 0 || offset > increment {
            1
        } else {
            offset
        };
        let takes_last = is_planted(PlantedFault::LastValueAgain);
        let exhausted = |at: u64| {
            Error::TooLarge(format!(
                "the auto-increment counter is at {at} and can't go beyond {max}"
            ))
        };
        loop {
            let now = self.next_auto.load(Ordering::Relaxed);
            let steps = now.max(1).saturating_sub(offset).div_ceil(increment);
            let first = steps
                .checked_mul(increment)
                .and_then(|s| s.checked_add(offset))
                // The counter could not go beyond the last number: the value would be taken twice.
                .filter(|&first| first <= max && (first < u64::MAX || takes_last))
                .ok_or_else(|| exhausted(now))?;
            // The counter is then an increment behind the last value taken, or at the end.
            let last = first.saturating_add((n.max(1) - 1).saturating_mul(increment));
            let after = last.min(max).saturating_add(increment);
            if self
                .next_auto
                .compare_exchange(now, after, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
            {
                return Ok(first);
            }
        }
    }

    /// Gives values back; see [`crate::Table::return_auto_increment`].
    pub fn return_auto(&self, next: u64, reserved_end: u64) {
        // Another session may have reserved more: then these values stay unused.
        let lowered = self.next_auto.compare_exchange(
            reserved_end,
            next.min(reserved_end),
            Ordering::SeqCst,
            Ordering::SeqCst,
        );
        // Or another session has inserted one of them as an explicit value: the counter must pass it.
        if lowered.is_ok() && !is_planted(PlantedFault::LowerCounter) {
            let given = self.given_auto.load(Ordering::SeqCst);
            self.next_auto.fetch_max(given, Ordering::SeqCst);
        }
    }

    /// The counter, if the log may not have it yet.
    ///
    /// The caller logs it, and calls [`TableState::auto_logged`] afterwards, not before: another transaction may not
    /// rely on a record that is not in the log yet.
    pub fn unlogged_auto(&self) -> Option<u64> {
        let next = self.next_auto();
        (next > self.logged_auto.load(Ordering::Acquire)).then_some(next)
    }

    /// The counter for a checkpoint, which replaces the log.
    ///
    /// Later commits rely on the value in the log, so the checkpoint keeps that, even if values were given back since.
    pub fn auto_to_keep(&self) -> u64 {
        match is_planted(PlantedFault::ForgetLoggedCounter) {
            true => self.next_auto(),
            false => self
                .next_auto()
                .max(self.logged_auto.load(Ordering::Acquire)),
        }
    }

    /// Notes that the log has this counter.
    pub fn auto_logged(&self, next: u64) {
        self.logged_auto.fetch_max(next, Ordering::Release);
    }

    /// Counts a transaction that begins to use the table; returns its seat, which it passes to [`TableState::leave`].
    ///
    /// `None` while the table is being changed as a whole, and when it [is gone](TableState::is_gone).
    pub fn enter(&self) -> Option<Seat> {
        let seat = self.users.enter();
        if self.closed.load(Ordering::SeqCst) {
            self.leave(seat);
            return None;
        }
        Some(seat)
    }

    /// Ends a transaction's use of the table.
    pub fn leave(&self, seat: Seat) {
        self.users.leave(seat);
    }

    /// Counts a transaction that uses the table as prepared, or ends that.
    pub fn count_prepared(&self, prepared: bool) {
        if prepared {
            self.prepared.fetch_add(1, Ordering::SeqCst);
        } else {
            self.prepared.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Whether a prepared transaction uses the table.
    pub fn has_prepared(&self) -> bool {
        self.prepared.load(Ordering::SeqCst) != 0
    }

    /// Keeps transactions out; returns false, and changes nothing, if more than `own` transactions use the table.
    pub fn close(&self, own: u64) -> bool {
        if self.closed.swap(true, Ordering::SeqCst) {
            return false;
        }
        // `enter` counts first and checks `closed` then; this does it the other way round, so that one of the two sees
        // the other.
        if self.users.count() > own {
            self.closed.store(false, Ordering::SeqCst);
            return false;
        }
        true
    }

    /// Whether transactions are kept out.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// The table has been dropped.
    pub fn set_gone(&self) {
        self.gone.store(true, Ordering::SeqCst);
    }

    /// Whether the table has been dropped.
    pub fn is_gone(&self) -> bool {
        self.gone.load(Ordering::SeqCst)
    }

    /// Lets transactions in again.
    pub fn reopen(&self) {
        self.closed.store(false, Ordering::SeqCst);
    }
}
