//! Stopping safely: the first Ctrl-C (or SIGTERM) lets the queries that have begun come to their
//! end, stops the server in order and keeps what was measured; the second ends the program at once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::error::{Result, SuiteError};

static STOP: AtomicBool = AtomicBool::new(false);
static INSTALLED: OnceLock<()> = OnceLock::new();

/// Exit status after an interrupt, as shells have it.
pub const EXIT_STATUS: u8 = 130;

/// The flag that is set when the user wants to stop; from the first call on, Ctrl-C sets it.
pub fn flag() -> &'static AtomicBool {
    INSTALLED.get_or_init(|| {
        let handler = ctrlc::set_handler(|| {
            if STOP.swap(true, Ordering::SeqCst) {
                std::process::exit(i32::from(EXIT_STATUS));
            }
            eprintln!("\nstopping after the queries that have begun (Ctrl-C again: at once)");
        });
        if let Err(error) = handler {
            // Then Ctrl-C ends the program as it does by default; results so far are kept anyway.
            eprintln!("peregrine: Ctrl-C can't be caught: {error}");
        }
    });
    &STOP
}

/// Whether the user wants to stop.
#[must_use]
pub fn requested() -> bool {
    flag().load(Ordering::SeqCst)
}

/// Sleeps for `time`.
///
/// # Errors
/// [`SuiteError::Interrupted`], soon after the user wants to stop.
pub fn sleep(time: Duration) -> Result<()> {
    const STEP: Duration = Duration::from_millis(100);
    let until = Instant::now() + time;
    while !requested() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        std::thread::sleep(left.min(STEP));
    }
    Err(SuiteError::Interrupted)
}
