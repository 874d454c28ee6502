//! No panic crosses the C interface.
//!
//! A panic unwinds to the function that the server called, and becomes an error there. If that function was changing
//! data, pages or the log may be half changed in memory. The engine then stops, so that it acknowledges nothing half
//! done and writes none of it to a checkpoint. A restart recovers.

use std::any::Any;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Arc;

use crate::c_types::Code;
use crate::failure::{keep, Failure, Outcome};

/// Runs a function that changes nothing; a `false` outcome is [`Code::End`].
#[inline]
pub fn reading(entry: impl FnOnce() -> Outcome<bool>) -> i32 {
    match catch_unwind(AssertUnwindSafe(entry)) {
        Ok(outcome) => finish(outcome),
        Err(panic) => keep(Failure::new(Code::Internal, text_of(panic))),
    }
}

/// An object that a panic stops.
pub trait Stops {
    /// Refuses every later call: a panic has left data half changed in memory.
    fn stop(&self, reason: &str);
}

impl<T: Stops> Stops for Arc<T> {
    fn stop(&self, reason: &str) {
        (**self).stop(reason);
    }
}

/// Runs a function that may change data of `engine`; a panic stops the engine.
#[inline]
pub fn changing(engine: &impl Stops, entry: impl FnOnce() -> Outcome<bool>) -> i32 {
    match catch_unwind(AssertUnwindSafe(entry)) {
        Ok(outcome) => finish(outcome),
        Err(panic) => {
            let text = text_of(panic);
            engine.stop(&text);
            keep(Failure::new(
                Code::Stopped,
                format!("the engine has stopped and must be restarted to recover: {text}"),
            ))
        }
    }
}

#[inline]
fn finish(outcome: Outcome<bool>) -> i32 {
    match outcome {
        Ok(true) => Code::Ok as i32,
        Ok(false) => Code::End as i32,
        Err(failure) => keep(failure),
    }
}

fn text_of(panic: Box<dyn Any + Send>) -> String {
    let what = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "unknown panic".to_owned());
    format!("internal error: {what}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error_with_its_text() {
        let code = reading(|| panic!("gave up at {}", 7));
        assert_eq!(code, Code::Internal as i32);
        let mut text = [0u8; 64];
        // SAFETY: the buffer has 64 bytes.
        let length =
            unsafe { crate::failure::peregrine_error_message(text.as_mut_ptr().cast(), 64) };
        assert_eq!(&text[..length], b"internal error: gave up at 7");
    }

    #[test]
    fn a_long_text_is_cut_and_its_whole_length_told() {
        reading(|| Err(Failure::new(Code::Invalid, "0123456789")));
        let mut text = [b'x'; 8];
        // SAFETY: 4 of the 8 bytes are offered.
        let length =
            unsafe { crate::failure::peregrine_error_message(text.as_mut_ptr().cast(), 4) };
        assert_eq!((length, &text[..5]), (10, &b"012\0x"[..]));
    }

    #[test]
    fn outcomes_are_codes() {
        assert_eq!(reading(|| Ok(true)), 0);
        assert_eq!(reading(|| Ok(false)), Code::End as i32);
    }
}
