//! The engine's questions about the server's sessions.

use std::time::Duration;

use peregrine::{Sessions, ToldWaits, Waiting};

use crate::c_types::SessionCalls;

/// Longest text of a statement, in bytes.
const STATEMENT_BYTES: usize = 1024;

/// `peregrine_told_waits`.
pub(crate) const TOLD_FOR_HOLDERS: u32 = 1;
pub(crate) const TOLD_IN_QUEUE: u32 = 2;

/// The sessions of the server that has opened the engine.
pub struct ServerSessions(pub SessionCalls);

impl Sessions for ServerSessions {
    fn statement(&self, session: u64) -> Option<String> {
        let mut text = vec![0u8; STATEMENT_BYTES];
        // SAFETY: the buffer is writable for the capacity given.
        let length = unsafe { (self.0.statement)(session, text.as_mut_ptr().cast(), text.len()) };
        text.truncate(if length == usize::MAX {
            return None;
        } else {
            length
        });
        Some(String::from_utf8_lossy(&text).into_owned())
    }

    fn waiting(&self, session: u64) -> Waiting {
        let mut seconds = u32::MAX;
        // SAFETY: the number is writable during the call.
        let also_optimistic = unsafe { (self.0.waiting)(session, &mut seconds) } != 0;
        Waiting {
            limit: (seconds != u32::MAX).then(|| Duration::from_secs(seconds.into())),
            also_optimistic,
        }
    }

    fn told_waits(&self, session: u64) -> ToldWaits {
        // SAFETY: the function has no preconditions.
        match unsafe { (self.0.told_waits)(session) } {
            TOLD_FOR_HOLDERS => ToldWaits::ForHolders,
            TOLD_IN_QUEUE => ToldWaits::InQueue,
            _ => ToldWaits::None,
        }
    }

    fn waits_for(&self, waiter: u64, holder: u64) -> bool {
        // SAFETY: neither transaction ends during the call, as the engine promises.
        unsafe { (self.0.waits_for)(waiter, holder) != 0 }
    }
}
