//! One transaction.

use std::time::Duration;

use super::gate::GateGuard;
use super::system::{Conflict, KillHandle, System};
use crate::error::Result;
use crate::ids::{Csn, TableId, TxId};
use crate::settings::Isolation;
use crate::tree::Tree;
use std::sync::Arc;

/// What a reader sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadView {
    /// Transactions that ended up to here are seen.
    pub csn: Csn,
    /// Every transaction below has ended, and is seen: a page whose `max_txid` is below needs no
    /// look at its records' versions (`live_payload` strips their headers).
    pub low: TxId,
    /// The reader's own number (0: it has not written).
    pub own: TxId,
}

/// What a put expects to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PutMode {
    /// No row of that key.
    Insert,
    /// A row of that key.
    Update,
    /// Either.
    Upsert,
}

/// The outcome of a put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Put {
    /// Done; whether a live row was replaced.
    Done {
        /// A live row was replaced (its payload stands in `old`, where that was given).
        replaced: bool,
    },
    /// [`PutMode::Insert`]: there is a row of that key (its payload stands in `old`). Nothing changed.
    Duplicate,
    /// [`PutMode::Update`]: there is no row of that key. Nothing changed.
    Missing,
    /// Another transaction holds the row: leave the gate, [`Transaction::wait`], try again. Nothing changed.
    Conflict(Conflict),
    /// The row was changed after this transaction's snapshot (not under READ COMMITTED). Nothing changed.
    Changed,
}

/// The outcome of a delete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Delete {
    /// Done; the payload stands in `old`, where that was given.
    Done,
    /// There is no row of that key.
    Missing,
    /// As [`Put::Conflict`].
    Conflict(Conflict),
    /// As [`Put::Changed`].
    Changed,
}

/// Strength of a row lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockMode {
    /// Others may lock it shared too; nobody else writes it.
    Shared,
    /// Nobody else locks or writes it.
    Exclusive,
}

/// The outcome of [`Transaction::try_lock_row`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum LockRow {
    /// Locked (also where there is no such row: nobody else can insert it then).
    Done,
    /// As [`Put::Conflict`].
    Conflict(Conflict),
    /// As [`Put::Changed`].
    Changed,
}

/// A place in a transaction to roll back to.
#[derive(Clone, Debug)]
pub struct Savepoint {}

/// A transaction's changes on their way to the log.
pub struct RedoBuffer {}

impl RedoBuffer {
    /// Adds "the row of `key` is now `payload`" (parts are joined).
    pub fn put(&mut self, _table: TableId, _key: &[u8], _payload: &[&[u8]]) -> Result<()> {
        todo!()
    }
    /// Adds "the row of `key` is gone".
    pub fn delete(&mut self, _table: TableId, _key: &[u8]) -> Result<()> {
        todo!()
    }
}

/// One transaction. Used by one thread at a time. Dropped without a commit it rolls back. After
/// commit or rollback it is empty, and can be used again.
pub struct Transaction {}

impl Transaction {
    /// The system it belongs to.
    pub fn system(&self) -> &Arc<System> {
        todo!()
    }
    /// The number, once it has written.
    pub fn id(&self) -> Option<TxId> {
        todo!()
    }
    /// The isolation level.
    pub fn isolation(&self) -> Isolation {
        todo!()
    }
    /// Under READ COMMITTED: the next read takes a new snapshot. Otherwise the first read takes the
    /// only one.
    pub fn start_statement(&mut self) {
        todo!()
    }
    /// Under READ COMMITTED: gives the snapshot up.
    pub fn end_statement(&mut self) {
        todo!()
    }
    /// What this transaction sees now; takes the snapshot where there is none.
    pub fn view(&mut self) -> ReadView {
        todo!()
    }
    /// The newest committed state and own changes: what locking reads see under READ COMMITTED.
    pub fn latest_view(&mut self) -> ReadView {
        todo!()
    }
    /// How long [`Transaction::wait`] waits; zero: not at all.
    pub fn set_lock_wait_timeout(&mut self, _limit: Duration) {
        todo!()
    }
    /// Interrupts this transaction's waits.
    pub fn kill_handle(&mut self) -> KillHandle {
        todo!()
    }

    /// Reads the version of a record that `view` sees; `f` gets its payload. No gate needed.
    pub fn read<R>(
        &self,
        _tree: &Tree,
        _key: &[u8],
        _view: &ReadView,
        _f: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        todo!()
    }
    /// The payload that `view` sees of a record found in a leaf image (which was copied after the
    /// view was taken); `buf` takes an older version where one is needed.
    pub fn visible<'a>(
        &self,
        _view: &ReadView,
        _value: &'a [u8],
        _buf: &'a mut Vec<u8>,
    ) -> Result<Option<&'a [u8]>> {
        todo!()
    }

    /// Writes a record. Inside the gate; waits for nothing. `old` takes the payload found.
    pub fn try_put(
        &mut self,
        _inside: &GateGuard<'_>,
        _tree: &Tree,
        _key: &[u8],
        _payload: &[u8],
        _mode: PutMode,
        _old: Option<&mut Vec<u8>>,
    ) -> Result<Put> {
        todo!()
    }
    /// Marks a record deleted. Inside the gate; waits for nothing. `old` takes the payload found.
    pub fn try_delete(
        &mut self,
        _inside: &GateGuard<'_>,
        _tree: &Tree,
        _key: &[u8],
        _old: Option<&mut Vec<u8>>,
    ) -> Result<Delete> {
        todo!()
    }
    /// Locks a row, waiting as long as allowed. Not inside the gate.
    ///
    /// # Errors
    /// `Deadlock`, `LockWaitTimeout`, `Interrupted`, `WriteConflict` (changed after the snapshot).
    pub fn lock_row(&mut self, _tree: &Tree, _key: &[u8], _mode: LockMode) -> Result<()> {
        todo!()
    }
    /// Locks a row if that needs no waiting.
    pub fn try_lock_row(&mut self, _tree: &Tree, _key: &[u8], _mode: LockMode) -> Result<LockRow> {
        todo!()
    }
    /// Waits until what was in the way may be gone; then try again from the top. Not inside the gate.
    ///
    /// # Errors
    /// `Deadlock`, `LockWaitTimeout`, `LockNotAvailable` (limit zero), `Interrupted`.
    pub fn wait(&mut self, _conflict: &Conflict) -> Result<()> {
        todo!()
    }

    /// Notes bytes for [`super::Trees::purged`].
    pub fn note_on_purge(&mut self, _inside: &GateGuard<'_>, _note: &[u8]) -> Result<()> {
        todo!()
    }
    /// Notes bytes for [`super::Trees::rolled_back`].
    pub fn note_on_rollback(&mut self, _inside: &GateGuard<'_>, _note: &[u8]) -> Result<()> {
        todo!()
    }
    /// Redo: the row of `key` is now `payload` (parts are joined; large values included).
    pub fn log_put(
        &mut self,
        _inside: &GateGuard<'_>,
        _table: TableId,
        _key: &[u8],
        _payload: &[&[u8]],
    ) -> Result<()> {
        todo!()
    }
    /// Redo: the row of `key` is gone.
    pub fn log_delete(
        &mut self,
        _inside: &GateGuard<'_>,
        _table: TableId,
        _key: &[u8],
    ) -> Result<()> {
        todo!()
    }

    /// Remembers the present state.
    pub fn savepoint(&mut self) -> Savepoint {
        todo!()
    }
    /// Undoes everything since `savepoint`. Not inside the gate (it enters by itself, in steps).
    pub fn rollback_to(&mut self, _savepoint: &Savepoint) -> Result<()> {
        todo!()
    }
    /// Commits. Not inside the gate.
    pub fn commit(&mut self) -> Result<()> {
        todo!()
    }
    /// Undoes everything. Not inside the gate.
    pub fn rollback(&mut self) -> Result<()> {
        todo!()
    }
}
