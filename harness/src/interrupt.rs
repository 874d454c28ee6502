//! Stops safely.
//!
//! The first Ctrl-C (or SIGTERM) lets queries that have begun finish, stops the server cleanly and keeps the results so
//! far. The second ends the program at once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::error::{HarnessError, Result};

static STOP: AtomicBool = AtomicBool::new(false);
static INSTALLED: OnceLock<()> = OnceLock::new();

/// The exit status after an interrupt, as in shells.
pub const EXIT_STATUS: u8 = 130;

/// Returns the flag that is set when the user wants to stop; the first call installs the handler for Ctrl-C.
pub fn flag() -> &'static AtomicBool {
    INSTALLED.get_or_init(|| {
        let handler = ctrlc::set_handler(|| {
            if STOP.swap(true, Ordering::SeqCst) {
                std::process::exit(i32::from(EXIT_STATUS));
            }
            eprintln!("\nstopping after the queries that have begun (Ctrl-C again: at once)");
        });
        if let Err(error) = handler {
            // Without a handler, Ctrl-C ends the program at once; results so far are kept anyway.
            eprintln!("Ctrl-C can't be caught: {error}");
        }
    });
    &STOP
}

/// Returns whether the user wants to stop.
#[must_use]
pub fn requested() -> bool {
    flag().load(Ordering::SeqCst)
}

/// Sleeps for `time`.
///
/// # Errors
/// [`HarnessError::Interrupted`], within 100 ms after the user stops the run.
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
    Err(HarnessError::Interrupted)
}
