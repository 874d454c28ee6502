//! Exit statuses.

use std::process::ExitCode;

/// Returns exit status 0 for a measurement or a proof that held, else 1.
#[must_use]
pub fn status(held: bool) -> ExitCode {
    match held {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}
