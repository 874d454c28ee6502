//! Sessions: the transaction of a connection, its statements and savepoints.

use std::sync::Arc;
use std::time::Duration;

use peregrine::sync::Mutex;
use peregrine::{Durability, Isolation, KillHandle, Savepoint, Transaction, Xid};

use crate::engine::{engine, Engine, SharedEngine};
use crate::failure::{keep, Failure, Outcome};
use crate::guard;
use crate::planted::{is_planted, Fault};

/// The state of a connection in the engine.
pub struct Session {
    engine: SharedEngine,
    transaction: Option<Transaction>,
    isolation: Isolation,
    lock_wait_seconds: u32,
    /// Whether the transaction has begun and not ended.
    active: bool,
    /// A savepoint at the start of the statement; set before its first change.
    mark: Option<Savepoint>,
    /// The savepoint of a rollback that could not be finished, because the disk was full.
    half_undone: Option<Savepoint>,
    /// The savepoints that the server may still name, in the order in which they were set.
    savepoints: Vec<Named>,
    next_savepoint: u64,
    /// During a statement: the number of savepoints set before it.
    ///
    /// Functions that the statement calls have set the rest.
    savepoints_before: Option<usize>,
    generation: u64,
    /// The server's number of the session.
    number: u64,
    /// Why [`Session::commit_ordered`] failed.
    refused: Option<Failure>,
    /// The handle that interrupts the transaction; the threads that kill the session share it.
    kill: Arc<Mutex<Option<KillHandle>>>,
}

/// A savepoint with the server's number for it.
struct Named {
    number: u64,
    savepoint: Savepoint,
    /// Whether the statement in which a function set the savepoint had changed something before.
    ///
    /// Then a rollback to the savepoint keeps the statement's mark.
    behind_mark: bool,
}

/// The object behind the server's pointer.
///
/// The session belongs to the connection's thread. Other threads use only the kill handle beside it.
pub struct SessionBox {
    session: std::cell::UnsafeCell<Session>,
    kill: Arc<Mutex<Option<KillHandle>>>,
}

/// Decodes a `peregrine_isolation`.
pub(crate) fn isolation(number: u32) -> Outcome<Isolation> {
    match number {
        0 => Ok(Isolation::ReadCommitted),
        1 => Ok(Isolation::RepeatableRead),
        2 => Ok(Isolation::Serializable),
        _ => Err(Failure::argument("isolation level")),
    }
}

impl Session {
    /// The engine.
    #[inline]
    pub fn engine(&self) -> &SharedEngine {
        &self.engine
    }

    /// Returns the transaction that a statement has begun.
    #[inline]
    pub fn transaction(&mut self) -> Outcome<&mut Transaction> {
        match &mut self.transaction {
            Some(transaction) if self.active => Ok(transaction),
            _ => Err(Failure::argument("no statement has been started")),
        }
    }

    /// Returns the open transaction, if there is one and it is not prepared.
    pub fn open_transaction(&mut self) -> Option<&mut Transaction> {
        let active = self.active;
        self.transaction
            .as_mut()
            .filter(|transaction| active && !transaction.is_prepared())
    }

    fn start(&mut self, level: Isolation, lock_wait_seconds: u32, now_us: u64) -> Outcome {
        self.engine.check()?;
        self.undo_rest()?;
        if self.transaction.is_none() || (!self.active && self.isolation != level) {
            let mut transaction = self.engine.database.begin(level);
            transaction.set_session(self.number);
            *self.kill.lock() = Some(transaction.kill_handle());
            self.transaction = Some(transaction);
            self.isolation = level;
            self.lock_wait_seconds = u32::MAX;
        } else if let Some(kill) = &*self.kill.lock() {
            kill.clear();
        }
        let Some(transaction) = &mut self.transaction else {
            return Ok(());
        };
        if self.lock_wait_seconds != lock_wait_seconds {
            transaction.set_lock_wait_timeout(Duration::from_secs(lock_wait_seconds.into()));
            self.lock_wait_seconds = lock_wait_seconds;
        }
        if !std::mem::replace(&mut self.active, true) {
            self.generation += 1;
            transaction.set_started(now_us);
        }
        self.mark = None;
        self.savepoints_before = Some(self.savepoints.len());
        transaction.start_statement();
        Ok(())
    }

    /// Returns the open transaction for a change, and sets the statement's mark.
    #[inline]
    pub fn changing(&mut self) -> Outcome<&mut Transaction> {
        if self.mark.is_none() {
            let mark = self.transaction()?.savepoint();
            self.mark = Some(mark);
        }
        self.transaction()
    }

    /// Fails when the transaction can only be rolled back.
    ///
    /// The caller may have dropped the error that said so.
    fn check_goes_on(&self) -> Outcome {
        let open = self.transaction.as_ref().filter(|_| self.active);
        match open.and_then(Transaction::must_roll_back) {
            Some(error) => Err(error.clone().into()),
            None => Ok(()),
        }
    }

    /// Returns a number that differs for each transaction.
    #[inline]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    fn end_statement(&mut self) {
        self.mark = None;
        self.forget_functions();
        if let (true, Some(transaction)) = (self.active, &mut self.transaction) {
            transaction.end_statement();
        }
    }

    /// Removes the savepoints that functions have set in the statement: the server can't name them any longer.
    fn forget_functions(&mut self) {
        if let Some(before) = self.savepoints_before.take() {
            self.savepoints.truncate(before);
        }
    }

    fn rollback_statement(&mut self) -> Outcome {
        self.forget_functions();
        // When the whole transaction must roll back, the server does that next, and the statement goes with it.
        let goes_on = self.check_goes_on().is_ok();
        if let (true, Some(mark)) = (self.active && goes_on, self.mark.take()) {
            if !is_planted(Fault::KeepFailedStatement) {
                self.roll_back_to(mark)?;
            }
            // Ends the statement's bulk insert: its deferred entries are gone, so the result does not matter.
            let _lacks_entries = self.transaction()?.end_bulk_insert();
        }
        self.end_statement();
        Ok(())
    }

    /// Undoes the changes since a savepoint.
    ///
    /// After a failure, `undo_rest` undoes the rest before anything else is done.
    fn roll_back_to(&mut self, savepoint: Savepoint) -> Outcome {
        if let Err(error) = self.transaction()?.rollback_to(&savepoint) {
            self.half_undone = Some(savepoint);
            return Err(error.into());
        }
        // A rollback that was left unfinished had a later savepoint than this one.
        self.half_undone = None;
        Ok(())
    }

    /// Undoes the rest of a statement whose rollback has failed.
    ///
    /// Every other operation in the transaction must wait for that.
    #[inline]
    fn undo_rest(&mut self) -> Outcome {
        if self.half_undone.is_none() {
            return Ok(());
        }
        if let (true, Some(mark), Some(transaction)) =
            (self.active, &self.half_undone, &mut self.transaction)
        {
            transaction.rollback_to(mark)?;
        }
        self.half_undone = None;
        Ok(())
    }

    fn finish(&mut self, end: impl FnOnce(&mut Transaction) -> peregrine::Result<()>) -> Outcome {
        self.mark = None;
        self.half_undone = None;
        self.refused = None;
        self.forget_savepoints();
        if !std::mem::take(&mut self.active) {
            return Ok(());
        }
        let Some(transaction) = &mut self.transaction else {
            return Ok(());
        };
        let result = end(transaction);
        if transaction.is_prepared() || result.is_err() {
            if let (true, Err(error)) = (transaction.is_prepared(), &result) {
                tracing::warn!(%error, "a transaction stays prepared, since its end could not be logged");
            }
            // The end of a prepared transaction could not be logged: the server has no further use for it, and it
            // stays, to be ended by name. Or a rollback could not be finished: the engine continues it, and this
            // session uses another transaction.
            self.let_go();
        }
        Ok(result?)
    }

    fn forget_savepoints(&mut self) {
        self.savepoints.clear();
        self.savepoints_before = None;
    }

    /// Separates the transaction from the session.
    ///
    /// The next statement begins another one, with a kill handle of its own.
    fn let_go(&mut self) {
        *self.kill.lock() = None;
        let transaction = self.transaction.take();
        let prepared = transaction.as_ref().is_some_and(Transaction::is_prepared);
        drop(transaction);
        if prepared {
            self.engine.tell_given_up();
        }
    }

    /// Prepares the transaction: the first phase of a two-phase commit.
    pub fn prepare(&mut self, name: &Xid, sync: bool) -> Outcome {
        self.undo_rest()?;
        self.mark = None;
        self.forget_savepoints();
        let durability = match sync {
            true => Durability::SyncAtCommit,
            false => Durability::WriteAtCommit,
        };
        Ok(self.transaction()?.prepare_with(name, durability)?)
    }

    /// Gives up the prepared transaction, to be ended by its name.
    pub fn detach(&mut self) {
        if self
            .transaction
            .as_ref()
            .is_some_and(Transaction::is_prepared)
        {
            self.active = false;
            self.let_go();
        }
    }

    /// Makes the commit visible to others; [`peregrine_session_commit`] follows, and also reports an error of this
    /// step.
    pub fn commit_ordered(&mut self) -> Outcome {
        if let Err(refused) = self.undo_rest() {
            // Nothing of it may become visible; the second half rolls it back.
            self.refused = Some(refused);
            return Ok(());
        }
        let transaction = self.transaction()?;
        match transaction.commit_visibly() {
            // A prepared transaction stays prepared on an error, and the second half tries again.
            Err(error) if !transaction.is_prepared() => self.refused = Some(error.into()),
            _ => {}
        }
        Ok(())
    }

    /// Commits, or finishes what [`Session::commit_ordered`] has begun.
    fn commit(&mut self, wait: bool) -> Outcome {
        if let Some(refused) = self.refused.take() {
            let rolled_back = self.finish(Transaction::rollback);
            // When the rollback fails as well, the engine continues it. A kill must not reach the transaction that
            // takes its place.
            self.let_go();
            return rolled_back.and(Err(refused));
        }
        if let Err(refused) = self.undo_rest() {
            self.finish(Transaction::rollback)?;
            return Err(refused);
        }
        self.finish(|transaction| {
            let wait = wait || !transaction.is_committed_visibly();
            // Does nothing when the first half has been done already.
            transaction.commit_visibly()?;
            transaction.finish_commit(wait)
        })
    }
}

/// The session behind a pointer from the server.
///
/// # Safety
/// `session` must be null or come from [`peregrine_session_new`], not be freed, and not be used
/// by another thread at the same time.
#[inline]
pub unsafe fn session<'a>(session: *mut SessionBox) -> Outcome<&'a mut Session> {
    // SAFETY: by the caller's promise the thread has the session for itself.
    match unsafe { session.as_ref() } {
        // SAFETY: by the caller's promise.
        Some(session) => Ok(unsafe { &mut *session.session.get() }),
        None => Err(Failure::argument("session")),
    }
}

/// Runs `entry` with a session; a panic stops the engine.
///
/// # Safety
/// As [`session`].
#[inline]
pub unsafe fn with(
    pointer: *mut SessionBox,
    entry: impl FnOnce(&mut Session) -> Outcome<bool>,
) -> i32 {
    // SAFETY: by the caller's promise.
    match unsafe { session(pointer) } {
        Ok(session) => {
            let engine: *const Engine = Arc::as_ptr(&session.engine);
            // SAFETY: the session keeps the engine alive; only shared references to the engine are used.
            guard::changing(unsafe { &*engine }, || entry(session))
        }
        Err(failure) => keep(failure),
    }
}

/// See the header.
///
/// # Safety
/// `shared` must be an open engine, `out` writable.
#[no_mangle]
pub unsafe extern "C" fn peregrine_session_new(
    shared: *mut SharedEngine,
    number: u64,
    out: *mut *mut SessionBox,
) -> i32 {
    guard::reading(|| {
        // SAFETY: by the caller's promise.
        let engine = unsafe { engine(shared)? };
        if out.is_null() {
            return Err(Failure::argument("place for a session"));
        }
        let kill = Arc::new(Mutex::new(None));
        let session = Session {
            engine: Arc::clone(engine),
            transaction: None,
            isolation: Isolation::default(),
            lock_wait_seconds: u32::MAX,
            active: false,
            mark: None,
            half_undone: None,
            savepoints: Vec::new(),
            next_savepoint: 0,
            savepoints_before: None,
            refused: None,
            generation: 0,
            number,
            kill: Arc::clone(&kill),
        };
        let session = Box::new(SessionBox {
            session: std::cell::UnsafeCell::new(session),
            kill,
        });
        // SAFETY: not null, writable by the caller's promise.
        unsafe { *out = Box::into_raw(session) };
        Ok(true)
    })
}

/// See the header.
///
/// # Safety
/// `pointer` must be null or a session that is not used again.
#[no_mangle]
pub unsafe extern "C" fn peregrine_session_free(pointer: *mut SessionBox) {
    if pointer.is_null() {
        return;
    }
    // SAFETY: by the caller's promise.
    unsafe {
        with(pointer, |session| {
            let prepared = session.transaction.as_ref();
            if !prepared.is_some_and(Transaction::is_prepared) {
                session.finish(Transaction::rollback)?;
            }
            // A prepared transaction goes on without the session.
            session.let_go();
            Ok(true)
        });
        let session = Box::from_raw(pointer);
        // Dropping data that a panic has left half changed could panic again.
        if (*session.session.get()).engine.check().is_err() {
            std::mem::forget(session);
        }
    }
}

/// See the header.
///
/// # Safety
/// `pointer` must be a session of this thread.
#[no_mangle]
pub unsafe extern "C" fn peregrine_statement_start(
    pointer: *mut SessionBox,
    level: u32,
    lock_wait_seconds: u32,
    now_us: u64,
    keeps_log: i32,
) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe {
        with(pointer, |session| {
            session.start(isolation(level)?, lock_wait_seconds, now_us)?;
            if keeps_log != 0 {
                session.transaction()?.keep_log();
            }
            Ok(true)
        })
    }
}

/// See the header.
///
/// # Safety
/// `pointer` must be a session of this thread.
#[no_mangle]
pub unsafe extern "C" fn peregrine_statement_end(pointer: *mut SessionBox) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe {
        with(pointer, |session| {
            session.end_statement();
            session.check_goes_on().map(|()| true)
        })
    }
}

/// See the header.
///
/// # Safety
/// `pointer` must be a session of this thread.
#[no_mangle]
pub unsafe extern "C" fn peregrine_statement_rollback(pointer: *mut SessionBox) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe {
        with(pointer, |session| {
            session.engine.check()?;
            session.rollback_statement().map(|()| true)
        })
    }
}

/// See the header.
///
/// # Safety
/// `pointer` must be a session of this thread.
#[no_mangle]
pub unsafe extern "C" fn peregrine_session_commit(pointer: *mut SessionBox, wait: u32) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe {
        with(pointer, |session| {
            session.engine.check()?;
            session.commit(wait != 0).map(|()| true)
        })
    }
}

/// See the header.
///
/// # Safety
/// `pointer` must be a session of this thread.
#[no_mangle]
pub unsafe extern "C" fn peregrine_session_rollback(pointer: *mut SessionBox) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe {
        with(pointer, |session| {
            session.engine.check()?;
            session.finish(Transaction::rollback).map(|()| true)
        })
    }
}

/// See the header.
///
/// # Safety
/// `pointer` must be a session of this thread.
#[no_mangle]
pub unsafe extern "C" fn peregrine_session_snapshot(
    pointer: *mut SessionBox,
    level: u32,
    lock_wait_seconds: u32,
    now_us: u64,
) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe {
        with(pointer, |session| {
            session.start(isolation(level)?, lock_wait_seconds, now_us)?;
            session.transaction()?.take_snapshot();
            session.end_statement();
            Ok(true)
        })
    }
}

/// See the header.
///
/// # Safety
/// `pointer` must be a session that is not being freed.
#[no_mangle]
pub unsafe extern "C" fn peregrine_session_kill(pointer: *mut SessionBox) {
    guard::reading(|| {
        // SAFETY: by the caller's promise; only the part for other threads is touched.
        if let Some(session) = unsafe { pointer.as_ref() } {
            if let Some(kill) = &*session.kill.lock() {
                kill.kill();
            }
        }
        Ok(true)
    });
}

mod savepoints;
#[cfg(test)]
mod tests;
