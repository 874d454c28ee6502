//! Rules of isolation that a test build can break, one at a time.
//!
//! A checker of histories that finds nothing proves nothing until it has found something. With the cargo feature
//! `broken` the engine leaves one rule out, and the checker must notice. [`Options::broken`] or the environment
//! variable `PEREGRINE_BROKEN` names the rule. Without the feature, as in every build that is shipped, [`Broken::is`]
//! is the constant `false`, and the compiler removes the faults.
//!
//! [`Options::broken`]: crate::Options

/// A rule that can be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IsolationFault {
    /// Locks without a write are not taken: locking reads, and reads of SERIALIZABLE, protect nothing.
    SkipRowLock,
    /// A row changed after the snapshot can be overwritten and locked: REPEATABLE READ loses updates.
    SkipFirstCommitterCheck,
    /// Reads use a snapshot that is some transactions old, while writes are checked against the newest state.
    ///
    /// REPEATABLE READ loses updates, READ COMMITTED misses earlier commits.
    #[cfg(feature = "broken")]
    StaleSnapshot,
    /// Reads see changes of running transactions: aborted and intermediate reads, at every level.
    DirtyRead,
    /// Writers overwrite changes of running transactions: dirty writes, at every level.
    ///
    /// For tables without secondary indexes, whose entries would not match the rows.
    OverwriteUncommitted,
    /// Ranges that SERIALIZABLE reads are not locked: other transactions insert rows into them.
    SkipRangeLock,
}

#[cfg(feature = "broken")]
pub(crate) use breaking::Broken;
#[cfg(feature = "broken")]
pub use breaking::VARIABLE;

/// Leaves no rule out.
#[cfg(not(feature = "broken"))]
#[derive(Default)]
pub(crate) struct Broken {}

#[cfg(not(feature = "broken"))]
impl Broken {
    #[inline(always)]
    pub fn is(&self, _: IsolationFault) -> bool {
        false
    }
}

#[cfg(feature = "broken")]
mod breaking {
    use crate::sync::atomic::{AtomicU8, Ordering};
    use std::str::FromStr;

    use super::IsolationFault;
    use crate::error::Error;

    /// The environment variable that names the rule, for programs that can't set the option.
    pub const VARIABLE: &str = "PEREGRINE_BROKEN";

    impl IsolationFault {
        /// All rules, in the order of their names in the documentation.
        pub const ALL: [IsolationFault; 6] = [
            IsolationFault::SkipRowLock,
            IsolationFault::SkipFirstCommitterCheck,
            IsolationFault::StaleSnapshot,
            IsolationFault::DirtyRead,
            IsolationFault::OverwriteUncommitted,
            IsolationFault::SkipRangeLock,
        ];

        /// The name in options and in the environment.
        pub fn name(self) -> &'static str {
            match self {
                IsolationFault::SkipRowLock => "skip_row_lock",
                IsolationFault::SkipFirstCommitterCheck => "skip_first_committer_check",
                IsolationFault::StaleSnapshot => "stale_snapshot",
                IsolationFault::DirtyRead => "dirty_read",
                IsolationFault::OverwriteUncommitted => "overwrite_uncommitted",
                IsolationFault::SkipRangeLock => "skip_range_lock",
            }
        }

        /// The rule named by the environment variable; `None` if it is not set or empty.
        ///
        /// # Errors
        /// [`Error::Invalid`] for an unknown name.
        pub fn of_environment() -> Result<Option<IsolationFault>, Error> {
            match std::env::var(VARIABLE) {
                Ok(name) if !name.is_empty() => name.parse().map(Some),
                _ => Ok(None),
            }
        }
    }

    impl FromStr for IsolationFault {
        type Err = Error;

        fn from_str(name: &str) -> Result<Self, Error> {
            let found = IsolationFault::ALL
                .into_iter()
                .find(|rule| rule.name() == name);
            found.ok_or_else(|| {
                let names: Vec<_> = IsolationFault::ALL.iter().map(|rule| rule.name()).collect();
                Error::Invalid(format!(
                    "{VARIABLE}={name}: no rule of that name; the rules are {}",
                    names.join(", ")
                ))
            })
        }
    }

    /// The rule that is left out.
    #[derive(Default)]
    pub struct Broken(AtomicU8);

    impl Broken {
        pub fn set(&self, rule: Option<IsolationFault>) {
            let code = rule.map_or(0, |rule| rule as u8 + 1);
            self.0.store(code, Ordering::Relaxed);
        }

        #[inline]
        pub fn is(&self, rule: IsolationFault) -> bool {
            self.0.load(Ordering::Relaxed) == rule as u8 + 1
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn names_lead_back_to_rules_and_others_are_refused() {
            for rule in IsolationFault::ALL {
                assert_eq!(rule.name().parse::<IsolationFault>().unwrap(), rule);
                let broken = Broken::default();
                assert!(!IsolationFault::ALL.iter().any(|&r| broken.is(r)));
                broken.set(Some(rule));
                assert!(IsolationFault::ALL
                    .iter()
                    .all(|&r| broken.is(r) == (r == rule)));
            }
            let error = "nothing".parse::<IsolationFault>().unwrap_err().to_string();
            assert!(error.contains("skip_row_lock"), "{error}");
        }
    }
}
