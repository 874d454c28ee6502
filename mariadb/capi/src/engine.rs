//! The engine as a whole: opening and closing, counters, and the flag that a panic sets.

use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Duration;

use peregrine::sync::{now, Condvar, Mutex};
use peregrine::{Database, Durability, Options, Sessions};

use crate::c_types::{Code, Counters, EngineOptions};
use crate::failure::{keep, Failure, Outcome};
use crate::guard;
use crate::rows::collation::ServerCollations;
use crate::server_sessions::ServerSessions;

/// The open database, and the state of the C interface.
pub struct Engine {
    /// The database.
    pub database: Database,
    stopped: AtomicBool,
    rows_read: AtomicU64,
    /// The longest wait for a session to give up a prepared transaction; it equals the row lock timeout.
    patience: Duration,
    giving_up: Mutex<()>,
    given_up: Condvar,
}

impl guard::Stops for Engine {
    fn stop(&self, reason: &str) {
        self.database.stop(reason);
        self.stopped.store(true, Ordering::Release);
    }
}

impl Engine {
    /// Wraps an open database.
    pub fn new(database: Database, patience: Duration) -> Engine {
        Engine {
            database,
            stopped: AtomicBool::new(false),
            rows_read: AtomicU64::new(0),
            patience,
            giving_up: Mutex::new(()),
            given_up: Condvar::new(),
        }
    }

    /// Wakes the waiters after a session has given up a prepared transaction.
    pub fn tell_given_up(&self) {
        // With the lock taken, a waiter either has not checked its condition yet, or sleeps.
        drop(self.giving_up.lock());
        self.given_up.notify_all();
    }

    /// Waits while `has` returns true, up to the timeout; returns whether it is false at the end.
    pub fn wait_until_given_up(&self, has: impl Fn() -> bool) -> bool {
        let until = now() + self.patience;
        let mut look = self.giving_up.lock();
        while has() {
            if self.given_up.wait_until(&mut look, until).timed_out() {
                return !has();
            }
        }
        true
    }

    /// Fails once the engine has stopped.
    #[inline]
    pub fn check(&self) -> Outcome {
        if self.stopped.load(Ordering::Acquire) {
            return Err(Failure::new(
                Code::Stopped,
                "the engine has stopped after an internal error and must be restarted to recover",
            ));
        }
        Ok(())
    }

    /// Adds to the count of rows read.
    pub fn count_rows_read(&self, rows: u64) {
        if rows != 0 {
            self.rows_read.fetch_add(rows, Ordering::Relaxed);
        }
    }
}

/// The object behind the server's pointer; handles and sessions keep the engine alive too.
pub type SharedEngine = Arc<Engine>;

/// The engine behind a pointer from the server.
///
/// # Safety
/// `engine` must be null or come from [`peregrine_engine_open`] and not be closed.
pub unsafe fn engine<'a>(engine: *const SharedEngine) -> Outcome<&'a SharedEngine> {
    // SAFETY: by the caller's promise.
    unsafe { engine.as_ref() }.ok_or_else(|| Failure::argument("engine"))
}

fn durability(flush_log_at_commit: u32) -> Outcome<Durability> {
    match flush_log_at_commit {
        0 => Ok(Durability::Later),
        1 => Ok(Durability::SyncAtCommit),
        2 => Ok(Durability::WriteAtCommit),
        other => Err(Failure::new(
            Code::Invalid,
            format!("flush_log_at_trx_commit is {other}; allowed are 0, 1, 2"),
        )),
    }
}

/// See the header.
///
/// # Safety
/// `options` must be valid, and its strings NUL-terminated; `out` must be writable.
#[no_mangle]
pub unsafe extern "C" fn peregrine_engine_open(
    options: *const EngineOptions,
    out: *mut *mut SharedEngine,
) -> i32 {
    guard::reading(|| {
        // SAFETY: by the caller's promise.
        let options = unsafe { options.as_ref() }.ok_or_else(|| Failure::argument("options"))?;
        if options.directory.is_null() || out.is_null() {
            return Err(Failure::argument("directory"));
        }
        // SAFETY: not null, NUL-terminated by the caller's promise.
        let directory = unsafe { CStr::from_ptr(options.directory) };
        let directory =
            std::path::Path::new(std::ffi::OsStr::new(directory.to_str().map_err(|_| {
                Failure::new(Code::Invalid, "the directory's name is not UTF-8")
            })?));
        let temporary = match options.temporary_prefix {
            prefix if prefix.is_null() => None,
            // SAFETY: not null, NUL-terminated by the caller's promise.
            prefix => Some(
                unsafe { CStr::from_ptr(prefix) }
                    .to_string_lossy()
                    .into_owned(),
            ),
        };
        let collations = options
            .sort_key
            .ok_or_else(|| Failure::argument("sort_key"))?;
        // SAFETY: null, or valid as long as the engine by the caller's promise.
        let sessions = unsafe { options.sessions.as_ref() }
            .map(|calls| Arc::new(ServerSessions(*calls)) as Arc<dyn Sessions>);
        let database = Database::open(
            directory,
            Options {
                pool_bytes: usize::try_from(options.pool_bytes)
                    .map_err(|_| Failure::new(Code::Invalid, "the buffer pool is too large"))?,
                direct_io: options.direct_io != 0,
                unreadable_is_damage: options.unreadable_is_damage != 0,
                durability: durability(options.flush_log_at_commit)?,
                lock_wait_timeout: Duration::from_secs(options.lock_wait_seconds.into()),
                log_bytes: options.log_bytes,
                recovery_target: Duration::from_secs(options.recovery_target_seconds),
                longest_kept_log: options.longest_kept_log,
                checkpoint_interval: Duration::from_secs(options.checkpoint_seconds),
                collations: Some(Arc::new(ServerCollations::new(collations))),
                sessions,
                drop_on_open: temporary,
                ..Options::default()
            },
        )?;
        let patience = Duration::from_secs(options.lock_wait_seconds.into());
        let engine = Arc::new(Engine::new(database, patience));
        // SAFETY: checked above; writable by the caller's promise.
        unsafe { *out = Box::into_raw(Box::new(engine)) };
        Ok(true)
    })
}

/// See the header.
///
/// # Safety
/// `engine` must come from [`peregrine_engine_open`] and not be used again.
#[no_mangle]
pub unsafe extern "C" fn peregrine_engine_close(engine: *mut SharedEngine) -> i32 {
    guard::reading(|| {
        if engine.is_null() {
            return Ok(true);
        }
        // SAFETY: not null, from Box::into_raw by the caller's promise.
        let engine = *unsafe { Box::from_raw(engine) };
        if engine.check().is_err() {
            // Half-changed data in memory must not reach a checkpoint: the next open replays the log.
            std::mem::forget(engine);
            return Ok(true);
        }
        match Arc::try_unwrap(engine) {
            Ok(engine) => engine.database.close()?,
            // A handle or session still exists: the log has everything, and the next start replays it.
            Err(engine) => engine.database.checkpoint()?,
        }
        Ok(true)
    })
}

/// See the header.
///
/// # Safety
/// `shared` must be an open engine.
#[no_mangle]
pub unsafe extern "C" fn peregrine_engine_checkpoint(shared: *mut SharedEngine) -> i32 {
    // SAFETY: by the caller's promise.
    match unsafe { engine(shared) } {
        Ok(engine) => guard::changing(engine, || {
            engine.check()?;
            engine.database.checkpoint()?;
            Ok(true)
        }),
        Err(failure) => keep(failure),
    }
}

/// See the header.
///
/// # Safety
/// `shared` must be an open engine.
#[no_mangle]
pub unsafe extern "C" fn peregrine_engine_set_flush(
    shared: *mut SharedEngine,
    flush_log_at_commit: u32,
) -> i32 {
    guard::reading(|| {
        // SAFETY: by the caller's promise.
        let engine = unsafe { engine(shared)? };
        engine
            .database
            .set_durability(durability(flush_log_at_commit)?);
        Ok(true)
    })
}

/// See the header.
///
/// # Safety
/// `shared` must be an open engine.
#[no_mangle]
pub unsafe extern "C" fn peregrine_engine_set_longest_kept_log(
    shared: *mut SharedEngine,
    bytes: u64,
) -> i32 {
    guard::reading(|| {
        // SAFETY: by the caller's promise.
        let engine = unsafe { engine(shared)? };
        engine.database.set_longest_kept_log(bytes)?;
        Ok(true)
    })
}

/// See the header.
///
/// # Safety
/// `shared` must be an open engine.
#[no_mangle]
pub unsafe extern "C" fn peregrine_engine_set_scan_threads(
    shared: *mut SharedEngine,
    threads: u32,
) -> i32 {
    guard::reading(|| {
        // SAFETY: by the caller's promise.
        let engine = unsafe { engine(shared)? };
        let threads = match threads {
            0 => Options::default().scan_threads,
            threads => threads as usize,
        };
        engine.database.set_scan_threads(threads)?;
        Ok(true)
    })
}

/// See the header.
///
/// # Safety
/// `shared` must be an open engine, `out` writable.
#[no_mangle]
pub unsafe extern "C" fn peregrine_engine_counters(
    shared: *mut SharedEngine,
    out: *mut Counters,
) -> i32 {
    guard::reading(|| {
        // SAFETY: by the caller's promise.
        let (engine, out) = unsafe { (engine(shared)?, out.as_mut()) };
        let out = out.ok_or_else(|| Failure::argument("counters"))?;
        let status = engine.database.status();
        *out = Counters {
            pages_read: status.pages_read,
            pages_written: status.pages_written,
            pages_evicted: status.pages_evicted,
            mini_page_reads: status.mini_page_reads,
            pool_pages_used: status.pool_pages_used,
            pool_pages_total: status.pool_pages_total,
            pool_pages_dirty: status.pool_pages_dirty,
            log_bytes: status.log_bytes,
            log_syncs: status.log_syncs,
            checkpoints: status.checkpoints,
            commits: status.commits,
            rollbacks: status.rollbacks,
            rows_read: engine.rows_read.load(Ordering::Relaxed),
            rows_inserted: status.rows_inserted,
            rows_updated: status.rows_updated,
            rows_deleted: status.rows_deleted,
            lock_waits: status.lock_waits,
            lock_waits_now: status.lock_waits_now,
            lock_wait_us: status.lock_wait_us,
            longest_lock_wait_us: status.longest_lock_wait_us,
            lock_timeouts: status.lock_timeouts,
            deadlocks: status.deadlocks,
            locked_rows: status.locked_rows,
            undo_pages: status.undo_pages,
            purge_backlog: status.purge_backlog,
            file_bytes: status.file_bytes,
            file_free_bytes: status.file_free_bytes,
            transaction_status_bytes: status.transaction_status_bytes,
            recovery_seconds: status.recovery_time.as_secs_f64().ceil() as u64,
        };
        Ok(true)
    })
}
