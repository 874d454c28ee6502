//! What the embedding program knows of its sessions, and is told of their waits.
//!
//! A program may have an order of its own among transactions: MariaDB's parallel replication lets transactions
//! commit in the order of their source only. A later one that has its rows then waits, outside the engine, for an
//! earlier one, and that one perhaps for a row of the later one. The engine cannot see this circle. So it tells the
//! program who waits for whom, and the program interrupts the later one.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Of which waits of a session the program wants to be told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToldWaits {
    /// Of none.
    #[default]
    None,
    /// For those who hold the row that it waits for.
    ForHolders,
    /// Also for those who will have the row before it; and of those who wait behind it, that they do.
    InQueue,
}

/// How a session waits for rows at this moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// How long, where that is not what [`crate::Transaction::set_lock_wait_timeout`] said.
    pub limit: Option<Duration>,
    /// Whether it waits also in tables whose locking is optimistic.
    pub also_optimistic: bool,
}

/// The sessions of the embedding program, by what it said in [`crate::Transaction::set_session`]. Nothing here may
/// wait for a session, or call the engine otherwise than to kill.
pub trait Sessions: Send + Sync {
    /// The text of what a session is executing; `None` where that is not known. Called while the
    /// session waits for a row lock.
    fn statement(&self, session: u64) -> Option<String> {
        let _ = session;
        None
    }

    /// How a session waits. Called by the thread that has come to a row which another transaction has.
    fn waiting(&self, session: u64) -> Waiting {
        let _ = session;
        Waiting::default()
    }

    /// What to tell of the waits of a session. Called by the thread that is about to wait, and does not
    /// wait where this kills its transaction ([`crate::KillHandle`]).
    fn told_waits(&self, session: u64) -> ToldWaits {
        let _ = session;
        ToldWaits::None
    }

    /// A session waits for a row that another one has, or will have before it; gives whether the program is about
    /// to interrupt the other one for that. Neither transaction ends during the call. A pair may be told more than
    /// once.
    fn waits_for(&self, waiter: u64, holder: u64) -> bool {
        let _ = (waiter, holder);
        false
    }
}

/// The program's sessions, once it has told of them.
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
