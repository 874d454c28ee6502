//! Errors for the caller: a code as the return value; the text and the duplicate key are kept for the calling thread.

use std::cell::RefCell;
use std::ffi::c_char;

use peregrine::Error;

use crate::c_types::Code;

/// The reason why a call failed.
#[derive(Debug)]
pub struct Failure {
    /// The return value.
    pub code: Code,
    /// The text of `peregrine_error_message`.
    pub text: String,
    /// The key of `peregrine_error_key`.
    pub key: u32,
}

/// The result of the inner functions: `false` is "no such row".
pub type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    /// A failure without a key.
    pub fn new(code: Code, text: impl Into<String>) -> Self {
        Failure {
            code,
            text: text.into(),
            key: u32::MAX,
        }
    }

    /// A null pointer or an impossible length.
    pub fn argument(what: &str) -> Self {
        Failure::new(
            Code::Internal,
            format!("wrong argument from the server: {what}"),
        )
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let code = match &error {
            Error::Io { .. } => Code::Io,
            Error::NoSpace { .. } => Code::NoSpace,
            Error::OutOfMemory { .. } => Code::OutOfMemory,
            Error::Corrupt { .. } => Code::Corrupt,
            Error::Format { .. } => Code::Format,
            Error::Stopped(_) => Code::Stopped,
            Error::InUse(_) => Code::Io,
            Error::Duplicate { .. } => Code::Duplicate,
            Error::Deadlock => Code::Deadlock,
            Error::LockWaitTimeout => Code::LockTimeout,
            Error::LockNotAvailable => Code::LockNotAvailable,
            Error::TableNewerThanSnapshot(_) => Code::TableNewer,
            Error::WriteConflict => Code::Conflict,
            Error::LogLimit { .. } => {
                let text = format!("{error} (peregrine_max_log_keep_size)");
                return Failure::new(Code::LogLimit, text);
            }
            Error::RowChanged => Code::RowChanged,
            Error::Interrupted => Code::Interrupted,
            Error::NotFound { what: "table", .. } => Code::NoSuchTable,
            Error::NotFound { .. } => Code::Internal,
            Error::Exists(_) => Code::TableExists,
            Error::Busy(_) => Code::Busy,
            Error::Invalid(_) => Code::Invalid,
            Error::TooLarge(_) => Code::TooLarge,
            _ => Code::Internal,
        };
        Failure::new(code, error.to_string())
    }
}

struct Last {
    text: String,
    key: u32,
}

thread_local! {
    static LAST: RefCell<Last> = const { RefCell::new(Last { text: String::new(), key: u32::MAX }) };
}

/// Keeps a failure for the calling thread and returns its code.
pub fn keep(failure: Failure) -> i32 {
    let code = failure.code as i32;
    // A thread that is ending may have lost its thread-local storage: the caller then gets the code alone.
    let _ = LAST.try_with(|last| {
        if let Ok(mut last) = last.try_borrow_mut() {
            last.text = failure.text;
            last.key = failure.key;
        }
    });
    code
}

/// See the header.
///
/// # Safety
/// `buffer` must be null or writable for `size` bytes.
#[no_mangle]
pub unsafe extern "C" fn peregrine_error_message(buffer: *mut c_char, size: usize) -> usize {
    LAST.try_with(|last| {
        let Ok(last) = last.try_borrow() else {
            return 0;
        };
        let text = last.text.as_bytes();
        if !buffer.is_null() && size > 0 {
            let n = text.len().min(size - 1);
            // SAFETY: the caller gives `size` writable bytes, and n < size.
            unsafe {
                std::ptr::copy_nonoverlapping(text.as_ptr().cast(), buffer, n);
                *buffer.add(n) = 0;
            }
        }
        text.len()
    })
    .unwrap_or(0)
}

/// See the header.
#[no_mangle]
pub extern "C" fn peregrine_error_key() -> u32 {
    LAST.try_with(|last| last.try_borrow().map_or(u32::MAX, |last| last.key))
        .unwrap_or(u32::MAX)
}
