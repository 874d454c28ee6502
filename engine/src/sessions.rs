//! Information about the embedding program's sessions, and notices of their waits.
//!
//! A program may have an order of its own among transactions: MariaDB's parallel replication lets transactions commit
//! only in the order of their source. A later transaction that holds its rows then waits, outside the engine, for an
//! earlier one. The earlier one may wait for a row of the later one. The engine cannot see this circle. So it tells the
//! program which session waits for which, and the program interrupts the later one.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The waits of a session of which the program wants to be told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToldWaits {
    /// No waits.
    #[default]
    None,
    /// Waits for the transactions that hold the row.
    ForHolders,
    /// Also waits for transactions ahead in the row's queue, and waits of those behind this session.
    InQueue,
}

/// How a session waits for rows at this moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// The time limit, if it is not that of [`crate::Transaction::set_lock_wait_timeout`].
    pub limit: Option<Duration>,
    /// Whether the session waits also in tables whose locking is optimistic.
    pub also_optimistic: bool,
}

/// The sessions of the embedding program, by their numbers in [`crate::Transaction::set_session`].
///
/// No method may wait for a session, or call the engine except to kill.
pub trait Sessions: Send + Sync {
    /// The text of the statement that a session executes; `None` if it is not known.
    ///
    /// Called while the session waits for a row lock.
    fn statement(&self, session: u64) -> Option<String> {
        let _ = session;
        None
    }

    /// How a session waits.
    ///
    /// Called by the thread that finds a row locked by another transaction.
    fn waiting(&self, session: u64) -> Waiting {
        let _ = session;
        Waiting::default()
    }

    /// The waits of a session to tell of.
    ///
    /// Called by the thread that is about to wait. If this call kills its transaction ([`crate::KillHandle`]), it does
    /// not wait.
    fn told_waits(&self, session: u64) -> ToldWaits {
        let _ = session;
        ToldWaits::None
    }

    /// Tells that a session waits for a row that another one holds, or will get before it.
    ///
    /// Returns whether the program is about to interrupt the other one for that. Neither transaction ends during the
    /// call. The engine may tell of a pair more than once.
    fn waits_for(&self, waiter: u64, holder: u64) -> bool {
        let _ = (waiter, holder);
        false
    }
}

/// The program's sessions, once it has set them.
#[derive(Default)]
pub(crate) struct KnownSessions(OnceLock<Arc<dyn Sessions>>);

impl KnownSessions {
    pub fn get(&self) -> Option<&dyn Sessions> {
        self.0.get().map(|sessions| &**sessions)
    }

    pub fn set(&self, sessions: Arc<dyn Sessions>) {
        let _already_set = self.0.set(sessions);
    }

    pub fn statement(&self, session: u64) -> Option<String> {
        self.0.get()?.statement(session)
    }

    pub fn waiting(&self, session: u64) -> Waiting {
        let sessions = self.0.get().filter(|_| session != 0);
        sessions.map_or_else(Waiting::default, |sessions| sessions.waiting(session))
    }
}
