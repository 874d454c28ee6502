//! The plan that a schedule's seed draws: the number and roles of the sessions, and their database.

use std::time::Duration;

use peregrine::sync::{let_fail, let_pause, Fault, Pause};
use peregrine::{Durability, Error, Isolation, Options};

use super::tables::OF_ONE_SESSION;
use crate::simulated::model::Kind;
use peregrine_harness::dice::Dice;

/// The maximum number of sessions.
///
/// The key of a row modulo [`OWNERS`] is the number of its owner.
pub const MOST_SESSIONS: u64 = 4;
/// See [`MOST_SESSIONS`].
pub const OWNERS: u64 = 8;

/// How a schedule ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The database is closed.
    Closed,
    /// Power is lost when all sessions have ended.
    PowerLostAtEnd,
    /// Power is lost while sessions run.
    PowerLost,
    /// Calls to the operating system fail (once, repeatedly, or from some moment on), or points of the engine fail.
    ///
    /// At the end, power is lost.
    CallFails,
}

impl Ending {
    /// The ending of the schedule of a seed.
    #[must_use]
    pub fn of(seed: u64) -> Ending {
        match seed % 8 {
            0 | 1 => Ending::PowerLost,
            2 => Ending::CallFails,
            3..=5 => Ending::PowerLostAtEnd,
            _ => Ending::Closed,
        }
    }
}

/// The role of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A mix of all statements.
    Mixed,
    /// Long reads.
    Reader,
    /// Many short transactions that write.
    Writer,
    /// Scans of the rows of all sessions, with locks.
    Locker,
    /// Deletes own rows and inserts most of them again in the same transaction.
    Replacer,
}

/// The faults and pauses at points of the engine.
///
/// Each occurs once in this many points on average; 0 means never.
#[derive(Clone, Copy, Debug, Default)]
pub struct Points {
    killed: u64,
    no_memory: u64,
    no_frame: u64,
    /// Pauses while holding a latch, between two steps, and in calls to the operating system.
    pauses: [u64; 3],
}

impl Points {
    fn drawn(dice: &mut Dice, ending: Ending) -> Points {
        let points = Points {
            killed: [0, 0, 8, 64][dice.below(4) as usize],
            pauses: [
                [0, 0, 256, 4_096][dice.below(4) as usize],
                [0, 0, 2, 32][dice.below(4) as usize],
                [0, 0, 8, 128][dice.below(4) as usize],
            ],
            ..Points::default()
        };
        match ending {
            Ending::CallFails => Points {
                killed: points.killed,
                pauses: points.pauses,
                ..Points::failing(dice)
            },
            _ => points,
        }
    }

    /// Draws points at which there is no memory or no frame.
    pub fn failing(dice: &mut Dice) -> Points {
        Points {
            no_memory: [0, 16, 256, 2_048][dice.below(4) as usize],
            no_frame: [0, 16, 256, 2_048][dice.below(4) as usize],
            ..Points::default()
        }
    }

    /// Returns the same without errors: kills are no errors.
    fn without_errors(self) -> Points {
        Points {
            no_memory: 0,
            no_frame: 0,
            ..self
        }
    }

    /// Puts these values into effect.
    pub fn set(self) {
        let_fail(Fault::Killed, self.killed);
        let_fail(Fault::NoMemory, self.no_memory);
        let_fail(Fault::NoFrame, self.no_frame);
        let [held, moments, calls] = self.pauses;
        let_pause(Pause::Held, held);
        let_pause(Pause::Moment, moments);
        let_pause(Pause::Call, calls);
    }
}

/// The plan of a schedule.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The seed of everything.
    pub seed: u64,
    /// The number of sessions.
    pub sessions: u64,
    /// The role of each session.
    pub roles: Vec<Role>,
    /// The number of transactions of each session.
    pub transactions: u32,
    /// The maximum number of statements in a transaction.
    pub statements: u32,
    /// The number of steps of the upkeep thread.
    pub upkeep: u32,
    /// Whether the upkeep thread mostly purges.
    pub tidies: bool,
    /// The definition of the sessions' table.
    pub kind: Kind,
    /// The number of initial rows of each session.
    pub filled: u64,
    /// The number of keys of each session.
    pub keys: u64,
    /// The maximum number of padding bytes in a row.
    pub most_pad: u32,
    /// The maximum number of bytes in a large value.
    pub most_large: u32,
    /// The number of rows among which amounts are moved.
    pub accounts: u64,
    /// The isolation level of all transactions; `None` if each draws its own.
    pub isolation: Option<Isolation>,
    /// The durability of commits.
    pub durability: Durability,
    /// The ending of the schedule.
    pub ending: Ending,
    /// Whether calls to the operating system fail, if the ending is [`Ending::CallFails`].
    pub calls_fail: bool,
    /// Whether an update may leave a large value unchanged.
    pub keeps_large: bool,
    /// The number of sessions in tables of their own, in addition to `sessions`: see `varied/`.
    pub varied: u64,
    /// Whether these sessions lock the counter of automatic values while they reserve some.
    pub locks_counter: bool,
    /// Whether sessions wait between the statements of a transaction, as people and programs do.
    pub thinks: bool,
    points: Points,
    pool_bytes: usize,
    scan_threads: usize,
    /// `None`: the length that fits the log.
    log_segment_bytes: Option<u64>,
    lock_wait_timeout: Duration,
}

impl Plan {
    /// Draws the plan of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Plan {
        let mut dice = Dice::new(seed, 0);
        let mut points_dice = Dice::new(seed, OWNERS * 7);
        // Dice of their own, so that the other draws of a seed stay the same.
        let mut later_dice = Dice::new(seed, OWNERS * 8);
        let isolations = [
            None,
            None,
            Some(Isolation::ReadCommitted),
            Some(Isolation::RepeatableRead),
            Some(Isolation::RepeatableRead),
            Some(Isolation::Serializable),
        ];
        let durabilities = [
            Durability::SyncAtCommit,
            Durability::SyncAtCommit,
            Durability::WriteAtCommit,
            Durability::Later,
        ];
        let plan = Plan {
            seed,
            sessions: 1 + u64::from(dice.below(MOST_SESSIONS as u32)),
            roles: (0..MOST_SESSIONS)
                .map(|_| {
                    let roles = [Role::Mixed, Role::Mixed, Role::Reader, Role::Writer];
                    roles[dice.below(4) as usize]
                })
                .collect(),
            transactions: 1 + dice.below(5),
            statements: 1 + dice.below(8),
            upkeep: [0, 2, 7, 40][dice.below(4) as usize],
            tidies: dice.below(3) == 0,
            kind: Kind {
                large: dice.below(2) == 0,
                indexes: dice.below(3) > 0,
            },
            filled: [0, 3, 20, 60][dice.below(4) as usize],
            keys: [2, 8, 30, 100][dice.below(4) as usize],
            most_pad: [20, 300, 900, 3_700][dice.below(4) as usize],
            most_large: [200, 5_000, 40_000][dice.below(3) as usize],
            accounts: 2 + u64::from(dice.below(6)),
            isolation: isolations[dice.below(6) as usize],
            durability: durabilities[dice.below(4) as usize],
            ending: Ending::of(seed),
            calls_fail: points_dice.below(3) > 0,
            keeps_large: later_dice.below(3) == 0,
            varied: [0, 0, 0, 0, 1, 2][later_dice.below(6) as usize],
            locks_counter: later_dice.below(2) == 0,
            thinks: later_dice.below(2) == 0,
            points: Points::drawn(&mut points_dice, Ending::of(seed)),
            pool_bytes: 1 << 20,
            scan_threads: 1 + dice.below(3) as usize,
            log_segment_bytes: Some([16 << 10, 32 << 10, 256 << 10][dice.below(3) as usize]),
            // Without a limit, a wait that never ends is found: the schedule does not end.
            lock_wait_timeout: [
                Duration::from_millis(1),
                Duration::from_millis(50),
                Duration::from_secs(50),
                Duration::MAX,
            ][dice.below(4) as usize],
        };
        let plan = plan.with_limits_where_calls_fail();
        let plan = match dice.below(24) {
            0 => plan.larger_than_the_pool(),
            _ => plan,
        };
        match later_dice.below(64) {
            0 => plan.of_many_transactions(),
            1 => plan.of_very_large_values(),
            2 => plan.with_a_larger_pool(),
            3 | 4 => plan.with_a_log_as_it_suits(),
            5..=9 => plan.of_locking_scans(),
            10..=14 => plan.of_lockers(),
            _ => plan,
        }
    }

    /// A plan with few rows and so many transactions that the engine merges and drops their ends.
    fn of_many_transactions(self) -> Plan {
        let mut roles = vec![Role::Writer; MOST_SESSIONS as usize];
        roles[0] = self.roles[0];
        Plan {
            sessions: self.sessions.max(2),
            roles,
            transactions: 40,
            statements: self.statements.min(2),
            upkeep: 40,
            filled: 3,
            keys: 8,
            most_pad: 20,
            most_large: 200,
            ..self
        }
    }

    /// A plan of sessions that lock rows in few leaves, and of others that change rows there.
    fn of_locking_scans(self) -> Plan {
        Plan {
            sessions: self.sessions.max(2),
            roles: vec![Role::Locker, Role::Replacer, Role::Locker, Role::Mixed],
            transactions: 5,
            statements: self.statements.clamp(3, 6),
            filled: 3 + self.filled.min(10),
            keys: 16,
            most_pad: self.most_pad.min(300),
            most_large: 200,
            thinks: true,
            ..self
        }
    }

    /// A plan of sessions that lock rows that others have locked, and change little.
    fn of_lockers(self) -> Plan {
        Plan {
            sessions: MOST_SESSIONS,
            roles: vec![Role::Locker; MOST_SESSIONS as usize],
            ..self.of_locking_scans()
        }
    }

    /// A plan with few values of up to a mebibyte, whose chunks take many passes of the checkpoint barrier.
    fn of_very_large_values(self) -> Plan {
        Plan {
            sessions: self.sessions.min(2),
            transactions: self.transactions.min(3),
            statements: self.statements.min(4),
            kind: Kind {
                large: true,
                ..self.kind
            },
            filled: 3,
            keys: 8,
            most_large: 1_000_000,
            pool_bytes: 4 << 20,
            ..self
        }
    }

    /// A plan with a pool of many parts.
    fn with_a_larger_pool(self) -> Plan {
        Plan {
            pool_bytes: 16 << 20,
            ..self
        }
    }

    /// A plan with log segments whose length fits the log.
    fn with_a_log_as_it_suits(self) -> Plan {
        Plan {
            log_segment_bytes: None,
            ..self
        }
    }

    /// A plan with so many rows that pages are loaded and evicted all the time.
    fn larger_than_the_pool(self) -> Plan {
        let rows = 1_200 / self.sessions;
        Plan {
            filled: rows,
            keys: rows,
            most_pad: 3_700,
            ..self
        }
    }

    /// Limits lock waits where calls fail.
    ///
    /// After a failed call a transaction may keep its locks until the database is opened again. A session that waits
    /// for them, beside a purge that retries all the time, must not exceed the schedule's maximum number of points.
    fn with_limits_where_calls_fail(self) -> Plan {
        let longest = match self.ending {
            Ending::CallFails => Duration::from_millis(50),
            _ => Duration::MAX,
        };
        Plan {
            lock_wait_timeout: self.lock_wait_timeout.min(longest),
            ..self
        }
    }

    /// Returns whether an error is from a call or point that this schedule makes fail.
    #[must_use]
    pub fn expects(&self, error: &Error) -> bool {
        is_refused(error) && self.ending == Ending::CallFails
    }

    /// Returns whether a wait for a lock can time out.
    #[must_use]
    pub fn limits_waits(&self) -> bool {
        self.lock_wait_timeout < Duration::MAX
    }

    /// Returns whether sessions are interrupted, at points or by the upkeep thread.
    #[must_use]
    pub fn interrupts(&self) -> bool {
        self.points.killed > 0 || !self.tidies
    }

    /// The faults and pauses at points, in the first life or after a crash, when nothing fails.
    #[must_use]
    pub fn points(&self, life: u64) -> Points {
        match life {
            0 => self.points,
            _ => self.points.without_errors(),
        }
    }

    /// The options of its database: with all its threads, and mostly the smallest pool.
    #[must_use]
    pub fn options(&self) -> Options {
        Options {
            pool_bytes: self.pool_bytes,
            log_bytes: 1 << 20,
            log_segment_bytes: self.log_segment_bytes,
            lock_wait_timeout: self.lock_wait_timeout,
            durability: self.durability,
            scan_threads: self.scan_threads,
            // Tables of one session end with the process.
            drop_on_open: (self.varied > 0).then(|| OF_ONE_SESSION.to_owned()),
            ..Options::default()
        }
    }
}

/// Returns whether a call to the operating system failed, at present or before, or whether there was no memory or no
/// frame.
///
/// The operation has done nothing then.
pub(super) fn is_refused(error: &Error) -> bool {
    match error {
        Error::Io { .. }
        | Error::NoSpace { .. }
        | Error::Stopped(_)
        | Error::OutOfMemory { .. } => true,
        Error::TooLarge(what) => what.contains("of the buffer pool are in use"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_plans_are_of_many_transactions_of_large_values_or_of_other_sizes() {
        let plans: Vec<Plan> = (0..2_000).map(Plan::new).collect();
        let some = |what: fn(&Plan) -> bool| plans.iter().any(what);
        assert!(some(|plan| plan.transactions == 40 && plan.sessions > 1));
        assert!(some(|plan| plan.most_large == 1_000_000 && plan.kind.large));
        assert!(some(|plan| plan.pool_bytes == 16 << 20));
        assert!(some(|plan| plan.log_segment_bytes.is_none()));
        assert!(some(|plan| plan.varied == 2) && some(|plan| plan.varied == 0));
        assert!(some(
            |plan| plan.roles[0] == Role::Locker && plan.sessions > 1
        ));
        assert!(some(|plan| plan.keeps_large) && some(|plan| !plan.keeps_large));
    }
}
