//! The functions of the header that read rows.
//!
//! Those that change rows are in `changes.rs`.

use std::ffi::c_void;

use peregrine::RowLock;

use crate::c_types::{Check, Target};
use crate::failure::{keep, Failure, Outcome};
use crate::guard;
use crate::handle::{Handle, Reading, Step};
use crate::session::{session, Session, SessionBox};
use crate::table::{table, TableBox};

/// `PEREGRINE_SKIP_LOCKED`.
const SKIP_LOCKED: u32 = 4;
/// `PEREGRINE_NEWEST`.
const NEWEST: u32 = 8;

/// Decodes a `peregrine_lock`.
pub(crate) fn reading(lock: u32) -> Outcome<Reading> {
    let skip_locked = lock & SKIP_LOCKED != 0;
    let newest = lock & NEWEST != 0;
    let lock = match lock & !(SKIP_LOCKED | NEWEST) {
        0 => RowLock::None,
        1 => RowLock::Shared,
        2 => RowLock::Exclusive,
        _ => return Err(Failure::argument("kind of a lock")),
    };
    Ok(Reading {
        lock,
        skip_locked,
        newest,
    })
}

/// The handle behind a pointer from the server.
///
/// # Safety
/// `handle` must be null or an open handle that no other thread uses.
#[inline]
pub(crate) unsafe fn handle<'a>(handle: *mut Handle) -> Outcome<&'a mut Handle> {
    // SAFETY: by the caller's promise.
    unsafe { handle.as_mut() }.ok_or_else(|| Failure::argument("handle"))
}

/// Runs `entry` with a handle and a session; a panic stops the engine.
///
/// # Safety
/// The pointers must be null or open, and used by this thread only.
#[inline]
pub(crate) unsafe fn with(
    handle_pointer: *mut Handle,
    session_pointer: *mut SessionBox,
    entry: impl FnOnce(&mut Handle, &mut Session) -> Outcome<bool>,
) -> i32 {
    // SAFETY: by the caller's promise.
    let (handle, session) = match unsafe { (handle(handle_pointer), session(session_pointer)) } {
        (Ok(handle), Ok(session)) => (handle, session),
        (Err(failure), _) | (_, Err(failure)) => return keep(failure),
    };
    let engine = std::sync::Arc::as_ptr(session.engine());
    // SAFETY: the session keeps the engine alive; only shared references to the engine are used.
    let engine = unsafe { &*engine };
    guard::changing(engine, || {
        engine.check()?;
        entry(handle, session)
    })
}

/// See the header.
///
/// # Safety
/// `shared` must be an open table, `out` writable.
#[no_mangle]
pub unsafe extern "C" fn peregrine_handle_open(
    shared: *mut TableBox,
    out: *mut *mut Handle,
) -> i32 {
    guard::reading(|| {
        // SAFETY: by the caller's promise.
        let (shared, out) = unsafe { (table(shared)?, out.as_mut()) };
        let out = out.ok_or_else(|| Failure::argument("place for a handle"))?;
        *out = Box::into_raw(Box::new(Handle::new(shared.clone())));
        Ok(true)
    })
}

/// See the header.
///
/// # Safety
/// `pointer` must be null or an open handle that is not used again.
#[no_mangle]
pub unsafe extern "C" fn peregrine_handle_close(pointer: *mut Handle) {
    guard::reading(|| {
        if !pointer.is_null() {
            // SAFETY: from Box::into_raw by the caller's promise.
            let mut handle = unsafe { Box::from_raw(pointer) };
            handle.reset();
        }
        Ok(true)
    });
}

/// See the header.
///
/// # Safety
/// `pointer` must be a handle of this thread.
#[no_mangle]
pub unsafe extern "C" fn peregrine_use_key(pointer: *mut Handle, key: u32, lock: u32) -> i32 {
    guard::reading(|| {
        // SAFETY: by the caller's promise.
        let handle = unsafe { handle(pointer)? };
        handle.use_key(key, reading(lock)?)?;
        Ok(true)
    })
}

/// See the header.
///
/// # Safety
/// `pointer` must be a handle of this thread.
#[no_mangle]
pub unsafe extern "C" fn peregrine_key_gives_back(pointer: *mut Handle, key: u32) -> i32 {
    let mut gives_back = false;
    guard::reading(|| {
        // SAFETY: by the caller's promise.
        gives_back = unsafe { handle(pointer)? }.key_gives_back(key)?;
        Ok(true)
    });
    i32::from(gives_back)
}

/// See the header.
///
/// # Safety
/// `pointer` must be a handle of this thread; the target must fit, and stay valid, like the
/// context, until the condition is taken back.
#[no_mangle]
pub unsafe extern "C" fn peregrine_set_condition(
    pointer: *mut Handle,
    check: Option<Check>,
    context: *mut c_void,
    target: Target,
) -> i32 {
    guard::reading(|| {
        // SAFETY: by the caller's promise.
        unsafe { handle(pointer)?.set_condition(check, context, target) };
        Ok(true)
    })
}

/// See the header.
///
/// # Safety
/// `pointer` must be a handle of this thread; `key` null or valid for its parts.
#[no_mangle]
pub unsafe extern "C" fn peregrine_set_end(
    pointer: *mut Handle,
    key: *const u8,
    key_parts: u64,
    inclusive: u32,
) -> i32 {
    guard::reading(|| {
        // SAFETY: by the caller's promise.
        unsafe { handle(pointer)?.set_end(key, key_parts, inclusive != 0)? };
        Ok(true)
    })
}

/// See the header.
///
/// # Safety
/// The handle and session must be this thread's, the key valid for its parts.
#[no_mangle]
pub unsafe extern "C" fn peregrine_guard(
    pointer: *mut Handle,
    session: *mut SessionBox,
    key: *const u8,
    key_parts: u64,
) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe {
        with(pointer, session, |handle, session| {
            handle.guard(session, key, key_parts).map(|()| true)
        })
    }
}

/// See the header.
///
/// # Safety
/// The handle and session must be this thread's, the key valid for its parts, the target fit.
#[no_mangle]
pub unsafe extern "C" fn peregrine_search(
    pointer: *mut Handle,
    session: *mut SessionBox,
    key: *const u8,
    key_parts: u64,
    seek: u32,
    target: Target,
) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe {
        with(pointer, session, |handle, session| {
            handle.search(session, key, key_parts, seek, target)
        })
    }
}

/// See the header.
///
/// # Safety
/// The handle and session must be this thread's, the target fit.
#[no_mangle]
pub unsafe extern "C" fn peregrine_next(
    pointer: *mut Handle,
    session: *mut SessionBox,
    target: Target,
) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe {
        with(pointer, session, |handle, session| {
            handle.step(session, target, Step::Next)
        })
    }
}

/// See the header.
///
/// # Safety
/// The handle and session must be this thread's, the target fit.
#[no_mangle]
pub unsafe extern "C" fn peregrine_previous(
    pointer: *mut Handle,
    session: *mut SessionBox,
    target: Target,
) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe {
        with(pointer, session, |handle, session| {
            handle.step(session, target, Step::Previous)
        })
    }
}

/// See the header.
///
/// # Safety
/// The handle and session must be this thread's, the target fit.
#[no_mangle]
pub unsafe extern "C" fn peregrine_next_same(
    pointer: *mut Handle,
    session: *mut SessionBox,
    target: Target,
) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe {
        with(pointer, session, |handle, session| {
            handle.step(session, target, Step::NextSame)
        })
    }
}

/// See the header.
///
/// # Safety
/// The handle and session must be this thread's.
#[no_mangle]
pub unsafe extern "C" fn peregrine_unlock_row(
    pointer: *mut Handle,
    session: *mut SessionBox,
) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe {
        with(pointer, session, |handle, session| {
            handle.unlock_row(session.transaction()?);
            Ok(true)
        })
    }
}

/// See the header.
///
/// # Safety
/// `pointer` must be a handle of this thread.
#[no_mangle]
pub unsafe extern "C" fn peregrine_try_semi_consistent(pointer: *mut Handle, tries: u32) -> i32 {
    guard::reading(|| {
        // SAFETY: by the caller's promise.
        unsafe { handle(pointer)? }.set_semi_consistent(tries != 0);
        Ok(true)
    })
}

/// See the header.
///
/// # Safety
/// `pointer` must be a handle of this thread.
#[no_mangle]
pub unsafe extern "C" fn peregrine_was_semi_consistent(pointer: *mut Handle) -> i32 {
    let mut was = false;
    guard::reading(|| {
        // SAFETY: by the caller's promise.
        was = unsafe { handle(pointer)? }.was_semi_consistent();
        Ok(true)
    });
    i32::from(was)
}

/// See the header.
///
/// # Safety
/// The handle and session must be this thread's, the target fit `most` times, `rows` be writable.
#[no_mangle]
pub unsafe extern "C" fn peregrine_next_rows(
    pointer: *mut Handle,
    session: *mut SessionBox,
    target: Target,
    stride: usize,
    most: usize,
    same: u32,
    rows: *mut usize,
) -> i32 {
    let step = match same {
        0 => Step::Next,
        _ => Step::NextSame,
    };
    // SAFETY: by the caller's promise.
    unsafe {
        with(pointer, session, |handle, session| {
            let read = handle.steps(session, target, stride, most, step)?;
            let out = rows.as_mut();
            *out.ok_or_else(|| Failure::argument("place for a number of rows"))? = read;
            Ok(read > 0)
        })
    }
}

/// See the header.
///
/// # Safety
/// The handle and session must be this thread's, `keys` valid for `count` images, the target fit
/// `count` times, `wanted` be writable for as many bytes.
#[no_mangle]
#[allow(clippy::too_many_arguments)] // the shape of the C interface
pub unsafe extern "C" fn peregrine_multi_get(
    pointer: *mut Handle,
    session: *mut SessionBox,
    keys: *const u8,
    key_length: usize,
    count: usize,
    target: Target,
    stride: usize,
    wanted: *mut u8,
) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe {
        with(pointer, session, |handle, session| {
            if keys.is_null() || wanted.is_null() {
                return Err(Failure::argument("keys"));
            }
            let keys = std::slice::from_raw_parts(keys, count * key_length);
            let wanted = std::slice::from_raw_parts_mut(wanted, count);
            handle
                .multi_get(session, keys, key_length, target, stride, wanted)
                .map(|()| true)
        })
    }
}

/// See the header.
///
/// # Safety
/// The handle must be this thread's, `position` writable for the table's position length.
#[no_mangle]
pub unsafe extern "C" fn peregrine_position(pointer: *mut Handle, position: *mut u8) -> i32 {
    guard::reading(|| {
        // SAFETY: by the caller's promise.
        unsafe { handle(pointer)?.position(position)? };
        Ok(true)
    })
}

/// See the header.
///
/// # Safety
/// As [`peregrine_position`].
#[no_mangle]
pub unsafe extern "C" fn peregrine_duplicate_position(
    pointer: *mut Handle,
    session: *mut SessionBox,
    position: *mut u8,
) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe {
        with(pointer, session, |handle, session| {
            let key = session.transaction()?.duplicate_key();
            if key.is_empty() {
                return Ok(false);
            }
            handle.write_position(key, position)?;
            Ok(true)
        })
    }
}

/// See the header.
///
/// # Safety
/// The handle and session must be this thread's, `position` valid, the target fit.
#[no_mangle]
pub unsafe extern "C" fn peregrine_read_position(
    pointer: *mut Handle,
    session: *mut SessionBox,
    position: *const u8,
    lock: u32,
    target: Target,
) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe {
        with(pointer, session, |handle, session| {
            handle.read_position(session.transaction()?, position, reading(lock)?, target)
        })
    }
}

/// See the header.
///
/// # Safety
/// The handle must be this thread's, the images null or valid for their parts, `out` writable.
#[no_mangle]
#[allow(clippy::too_many_arguments)] // the shape of the C interface
pub unsafe extern "C" fn peregrine_estimate_range(
    pointer: *mut Handle,
    key: u32,
    low: *const u8,
    low_parts: u64,
    low_inclusive: u32,
    high: *const u8,
    high_parts: u64,
    high_inclusive: u32,
    out: *mut u64,
) -> i32 {
    guard::reading(|| {
        // SAFETY: by the caller's promise.
        unsafe {
            let handle = handle(pointer)?;
            let out = out
                .as_mut()
                .ok_or_else(|| Failure::argument("place for an estimate"))?;
            *out = handle.estimate_range(
                key,
                (low, low_parts, low_inclusive != 0),
                (high, high_parts, high_inclusive != 0),
            )?;
        }
        Ok(true)
    })
}

/// See the header.
///
/// # Safety
/// `pointer` must be null or a handle of this thread.
#[no_mangle]
pub unsafe extern "C" fn peregrine_handle_reset(pointer: *mut Handle) {
    guard::reading(|| {
        // SAFETY: by the caller's promise.
        unsafe { handle(pointer)? }.reset();
        Ok(true)
    });
}

#[cfg(test)]
mod tests;
