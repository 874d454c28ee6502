//! The functions of the header that change rows.

use crate::calls::rows::{reading, with};
use crate::handle::Handle;
use crate::planted::{is_planted, Fault};
use crate::session::SessionBox;

/// See the header.
///
/// # Safety
/// The handle and session must be this thread's, `record` a record, its blobs valid.
#[no_mangle]
pub unsafe extern "C" fn peregrine_insert(
    pointer: *mut Handle,
    session: *mut SessionBox,
    record: *const u8,
    lock: u32,
) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe {
        with(pointer, session, |handle, session| {
            let lock = reading(lock)?.lock;
            handle
                .insert(session.changing()?, record, lock)
                .map(|()| true)
        })
    }
}

/// See the header.
///
/// # Safety
/// The handle and session must be this thread's, the records valid with their blobs, `changed` a
/// bitmap of the columns.
#[no_mangle]
pub unsafe extern "C" fn peregrine_update(
    pointer: *mut Handle,
    session: *mut SessionBox,
    old_record: *const u8,
    new_record: *const u8,
    changed: *const u64,
) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe {
        with(pointer, session, |handle, session| {
            let transaction = session.changing()?;
            let updated = handle.update(transaction, old_record, new_record, changed);
            if updated.is_err() && is_planted(Fault::SwallowRefusal) {
                return Ok(true);
            }
            updated
        })
    }
}

/// See the header.
///
/// # Safety
/// The handle and session must be this thread's.
#[no_mangle]
pub unsafe extern "C" fn peregrine_delete(pointer: *mut Handle, session: *mut SessionBox) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe {
        with(pointer, session, |handle, session| {
            handle.delete(session.changing()?).map(|()| true)
        })
    }
}

/// See the header.
///
/// # Safety
/// The handle and session must be this thread's.
#[no_mangle]
pub unsafe extern "C" fn peregrine_begin_fill(
    pointer: *mut Handle,
    session: *mut SessionBox,
) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe {
        with(pointer, session, |handle, session| {
            handle.begin_fill(session.changing()?).map(|()| true)
        })
    }
}

/// See the header.
///
/// # Safety
/// The handle and session must be this thread's.
#[no_mangle]
pub unsafe extern "C" fn peregrine_end_fill(pointer: *mut Handle, session: *mut SessionBox) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe {
        with(pointer, session, |_, session| {
            session.transaction()?.end_fill();
            Ok(true)
        })
    }
}

/// See the header.
///
/// # Safety
/// The handle and session must be this thread's.
#[no_mangle]
pub unsafe extern "C" fn peregrine_begin_bulk_insert(
    pointer: *mut Handle,
    session: *mut SessionBox,
) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe {
        with(pointer, session, |handle, session| {
            handle.begin_bulk_insert(session.changing()?);
            Ok(true)
        })
    }
}

/// See the header.
///
/// # Safety
/// The handle and session must be this thread's.
#[no_mangle]
pub unsafe extern "C" fn peregrine_end_bulk_insert(
    pointer: *mut Handle,
    session: *mut SessionBox,
) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe {
        with(pointer, session, |handle, session| {
            handle
                .end_bulk_insert(session.transaction()?)
                .map(|()| true)
        })
    }
}
