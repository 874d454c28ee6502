//! The functions of the header that compute aggregates.

use peregrine::Isolation;

use crate::c_types::{AggregateRequest, TestRequest};
use crate::calls::rows::{handle, with};
use crate::failure::{Failure, Outcome};
use crate::guard;
use crate::handle::Handle;
use crate::planted::{is_planted, Fault};
use crate::session::SessionBox;

/// The aggregates of a request.
///
/// # Safety
/// `requests` must be null or valid for `count`, for `'a`.
unsafe fn requests<'a>(
    requests: *const AggregateRequest,
    count: usize,
) -> Outcome<&'a [AggregateRequest]> {
    if requests.is_null() || !requests.is_aligned() || count == 0 {
        return Err(Failure::argument("aggregates"));
    }
    // SAFETY: not null, and valid for `count` by the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts(requests, count) })
}

/// See the header.
///
/// # Safety
/// `pointer` must be a handle of this thread, `asked` valid for `count`.
#[no_mangle]
pub unsafe extern "C" fn peregrine_can_aggregate(
    pointer: *mut Handle,
    asked: *const AggregateRequest,
    count: usize,
) -> i32 {
    // SAFETY: by the caller's promise.
    guard::reading(|| unsafe { handle(pointer)?.can_aggregate(requests(asked, count)?) })
}

/// See the header.
///
/// # Safety
/// `pointer` must be a handle of this thread, `tests` null or valid for `count`, and each value for
/// its column.
#[no_mangle]
pub unsafe extern "C" fn peregrine_set_tests(
    pointer: *mut Handle,
    tests: *const TestRequest,
    count: usize,
) -> i32 {
    guard::reading(|| {
        // SAFETY: by the caller's promise.
        let handle = unsafe { handle(pointer)? };
        if tests.is_null() || !tests.is_aligned() {
            return Err(Failure::argument("tests"));
        }
        // SAFETY: not null, and valid for `count` by the caller's promise.
        unsafe { handle.set_tests(std::slice::from_raw_parts(tests, count)) }
    })
}

/// See the header.
///
/// # Safety
/// The handle and session must be this thread's, the key null or valid for its parts, `asked`
/// valid for `count`.
#[no_mangle]
pub unsafe extern "C" fn peregrine_aggregate_range(
    pointer: *mut Handle,
    session: *mut SessionBox,
    start: *const u8,
    start_parts: u64,
    start_inclusive: u32,
    asked: *const AggregateRequest,
    count: usize,
) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe {
        with(pointer, session, |handle, session| {
            let asked = requests(asked, count)?;
            let inclusive = start_inclusive != 0;
            if is_planted(Fault::ForgetOwnRows) {
                let mut other = session.engine().database.begin(Isolation::ReadCommitted);
                handle.aggregate(&mut other, start, start_parts, inclusive, asked)?;
                return Ok(true);
            }
            let transaction = session.transaction()?;
            handle.aggregate(transaction, start, start_parts, inclusive, asked)?;
            Ok(true)
        })
    }
}

/// See the header.
///
/// # Safety
/// `pointer` must be a handle of this thread, the others writable.
#[no_mangle]
pub unsafe extern "C" fn peregrine_aggregate_number(
    pointer: *mut Handle,
    number: usize,
    high: *mut i64,
    low: *mut u64,
    values: *mut u64,
) -> i32 {
    guard::reading(|| {
        // SAFETY: by the caller's promise.
        unsafe {
            let (sum, count) = handle(pointer)?.aggregate_number(number)?;
            let (Some(high), Some(low), Some(values)) =
                (high.as_mut(), low.as_mut(), values.as_mut())
            else {
                return Err(Failure::argument("place for a number"));
            };
            *high = (sum >> 64) as i64;
            *low = sum as u64;
            *values = count;
        }
        Ok(true)
    })
}

/// See the header.
///
/// # Safety
/// `pointer` must be a handle of this thread, `record` a record of its table.
#[no_mangle]
pub unsafe extern "C" fn peregrine_aggregate_value(
    pointer: *mut Handle,
    number: usize,
    record: *mut u8,
) -> i32 {
    guard::reading(|| {
        // SAFETY: by the caller's promise.
        unsafe {
            let handle = handle(pointer)?;
            let record = handle.shared.record_mut(record)?;
            handle.aggregate_value(number, record)
        }
    })
}

/// See the header.
///
/// # Safety
/// `pointer` must be a handle of this thread.
#[no_mangle]
pub unsafe extern "C" fn peregrine_set_group(pointer: *mut Handle, column: u32) -> i32 {
    // SAFETY: by the caller's promise.
    guard::reading(|| unsafe { handle(pointer)? }.set_group(column))
}

/// See the header.
///
/// # Safety
/// `pointer` must be a handle of this thread, `record` a record of its table.
#[no_mangle]
pub unsafe extern "C" fn peregrine_next_group(pointer: *mut Handle, record: *mut u8) -> i32 {
    guard::reading(|| {
        // SAFETY: by the caller's promise.
        unsafe {
            let handle = handle(pointer)?;
            let record = handle.shared.record_mut(record)?;
            handle.next_group(record)
        }
    })
}

#[cfg(test)]
mod tests;
