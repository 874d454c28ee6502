//! Verifying a table for CHECK TABLE.

use std::ffi::{c_char, c_void};

use peregrine::check::Report;

use crate::c_types::{Check, Problem};
use crate::failure::{keep, Failure};
use crate::guard;
use crate::table::{table, TableBox};

/// See the header.
///
/// # Safety
/// `pointer` must be an open table; `interrupted` and `problem` must be callable with `context`.
#[no_mangle]
pub unsafe extern "C" fn peregrine_table_check(
    pointer: *mut TableBox,
    interrupted: Option<Check>,
    problem: Option<Problem>,
    context: *mut c_void,
) -> i32 {
    // SAFETY: by the caller's promise.
    let shared = match unsafe { table(pointer) } {
        Ok(shared) => shared,
        Err(failure) => return keep(failure),
    };
    guard::changing(&shared.engine, || {
        shared.engine.check()?;
        let (Some(interrupted), Some(problem)) = (interrupted, problem) else {
            return Err(Failure::argument("calls of a check"));
        };
        let mut report = Report::default();
        // SAFETY: by the caller's promise.
        let stop = || unsafe { interrupted(context) } != 0;
        let name = shared.table().name();
        let database = &shared.engine.database;
        let checked = database.check_table(&name, &stop, &mut report);
        // Also the problems found before an error that ends the check.
        for text in &report.problems {
            // SAFETY: by the caller's promise; the text lives through the call.
            unsafe { problem(context, text.as_ptr().cast::<c_char>(), text.len()) };
        }
        if report.more_problems > 0 {
            let text = format!("{} more problems", report.more_problems);
            // SAFETY: as above.
            unsafe { problem(context, text.as_ptr().cast::<c_char>(), text.len()) };
        }
        checked?;
        Ok(report.is_sound())
    })
}
