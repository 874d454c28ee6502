//! Memory whose size the data decide: a long value, a record of the log, a row. If the system has none, the statement
//! fails, and the process goes on.

use crate::error::{Error, Result};
use crate::knobs;
use crate::sync::{strikes, Fault};

/// Reserves memory for `more` elements behind those of `out`.
///
/// `what` names them for the error.
///
/// # Errors
/// [`Error::OutOfMemory`]; `out` is unchanged.
#[inline]
pub(crate) fn reserve<T>(out: &mut Vec<T>, more: usize, what: &'static str) -> Result<()> {
    if strikes(Fault::NoMemory) {
        return Err(no_memory::<T>(more, what));
    }
    if more <= out.capacity() - out.len() {
        return Ok(());
    }
    grow(out, more, what)
}

fn no_memory<T>(elements: usize, what: &'static str) -> Error {
    let bytes = elements.saturating_mul(size_of::<T>());
    Error::OutOfMemory { bytes, what }
}

fn grow<T>(out: &mut Vec<T>, more: usize, what: &'static str) -> Result<()> {
    let bytes = more.saturating_mul(size_of::<T>());
    let grown = if bytes < knobs::large_buffer() {
        out.try_reserve(more)
    } else {
        out.try_reserve_exact(more)
    };
    grown.map_err(|_| no_memory::<T>(more, what))
}

/// A copy of `bytes`.
///
/// `what` names them for the error.
///
/// # Errors
/// [`Error::OutOfMemory`].
pub(crate) fn copy(bytes: &[u8], what: &'static str) -> Result<Vec<u8>> {
    let mut copy = Vec::new();
    reserve(&mut copy, bytes.len(), what)?;
    copy.extend_from_slice(bytes);
    Ok(copy)
}

/// Empties a buffer that is kept for later; frees the memory of one that has grown large.
pub(crate) fn give_back(buffer: &mut Vec<u8>) {
    buffer.clear();
    if buffer.capacity() > knobs::large_buffer() {
        *buffer = Vec::new();
    }
}
