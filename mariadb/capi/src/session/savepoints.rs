//! Savepoints of a session's transaction, by the server's numbers.

use super::{with, Named, Session, SessionBox};
use crate::c_types::Code;
use crate::failure::{Failure, Outcome};

impl Session {
    fn find(&self, number: u64) -> Outcome<usize> {
        self.savepoints
            .iter()
            .position(|named| named.number == number)
            .ok_or_else(|| Failure::new(Code::Invalid, "no such savepoint"))
    }
}

/// See the header.
///
/// # Safety
/// `pointer` must be a session of this thread, `out` writable.
#[no_mangle]
pub unsafe extern "C" fn peregrine_savepoint_set(pointer: *mut SessionBox, out: *mut u64) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe {
        with(pointer, |session| {
            let out = out
                .as_mut()
                .ok_or_else(|| Failure::argument("place for a savepoint"))?;
            session.undo_rest()?;
            session.check_goes_on()?;
            let savepoint = session.transaction()?.savepoint();
            session.next_savepoint += 1;
            *out = session.next_savepoint;
            session.savepoints.push(Named {
                number: *out,
                savepoint,
                behind_mark: session.mark.is_some(),
            });
            Ok(true)
        })
    }
}

/// See the header.
///
/// # Safety
/// `pointer` must be a session of this thread.
#[no_mangle]
pub unsafe extern "C" fn peregrine_savepoint_rollback(
    pointer: *mut SessionBox,
    number: u64,
) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe {
        with(pointer, |session| {
            session.engine.check()?;
            let at = session.find(number)?;
            // The server forgets later savepoints whatever the result of this call.
            session.savepoints.truncate(at + 1);
            session.undo_rest()?;
            let named = &session.savepoints[at];
            let savepoint = named.savepoint.clone();
            if !named.behind_mark {
                session.mark = None;
            }
            session.roll_back_to(savepoint)?;
            Ok(true)
        })
    }
}

/// See the header.
///
/// # Safety
/// `pointer` must be a session of this thread.
#[no_mangle]
pub unsafe extern "C" fn peregrine_savepoint_release(
    pointer: *mut SessionBox,
    number: u64,
    later: u32,
) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe {
        with(pointer, |session| {
            let at = session.find(number)?;
            match later {
                0 => drop(session.savepoints.remove(at)),
                _ => session.savepoints.truncate(at),
            }
            Ok(true)
        })
    }
}
