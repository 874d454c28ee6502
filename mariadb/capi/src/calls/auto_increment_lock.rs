//! The lock of a table's auto-increment counter, which some INSERTs hold until they end.

use crate::session::{with, SessionBox};
use crate::table::{table, TableBox};

/// See the header.
///
/// # Safety
/// `pointer` must be a session of this thread, `shared` an open table.
#[no_mangle]
pub unsafe extern "C" fn peregrine_auto_increment_lock(
    pointer: *mut SessionBox,
    shared: *mut TableBox,
) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe {
        with(pointer, |session| {
            let table = table(shared)?.table();
            session.transaction()?.lock_auto_increment(&table)?;
            Ok(true)
        })
    }
}

/// See the header.
///
/// # Safety
/// As [`peregrine_auto_increment_lock`].
#[no_mangle]
pub unsafe extern "C" fn peregrine_auto_increment_unlock(
    pointer: *mut SessionBox,
    shared: *mut TableBox,
) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe {
        with(pointer, |session| {
            let table = table(shared)?.table();
            session.transaction()?.unlock_auto_increment(&table);
            Ok(true)
        })
    }
}
