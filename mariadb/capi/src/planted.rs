//! Faults of the plug-in that a test build can have, one at a time, to be found by proofs that talk to a server.
//!
//! They work like the engine's own faults (`engine/src/planted/mod.rs`): with the cargo feature `broken`, the
//! environment variable `PEREGRINE_PLANTED_IN_PLUGIN` names one. In every other build [`is_planted`] is the constant
//! `false`.

/// A fault: a step that is left out, or done wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A step from row to row in a key skips a row.
    SkipRow,
    /// The changes of a failed statement stay.
    KeepFailedStatement,
    /// Aggregates computed in the engine do not see the changes of their own transaction.
    ForgetOwnRows,
    /// A whole row that is read by its key lacks its last column.
    LoseColumn,
    /// A unique key accepts duplicates.
    UncheckedKey,
    /// An update that is refused counts as a success.
    SwallowRefusal,
}

/// Returns whether the process has this fault: never in this build.
#[cfg(not(feature = "broken"))]
#[inline(always)]
pub(crate) fn is_planted(_: Fault) -> bool {
    false
}

#[cfg(feature = "broken")]
pub(crate) use planting::is_planted;

#[cfg(feature = "broken")]
mod planting {
    use std::sync::LazyLock;

    use super::Fault;

    /// The environment variable that names a fault.
    const VARIABLE: &str = "PEREGRINE_PLANTED_IN_PLUGIN";

    const ALL: [Fault; 6] = [
        Fault::SkipRow,
        Fault::KeepFailedStatement,
        Fault::ForgetOwnRows,
        Fault::LoseColumn,
        Fault::UncheckedKey,
        Fault::SwallowRefusal,
    ];

    /// The fault that this process has.
    static PLANTED: LazyLock<Option<Fault>> = LazyLock::new(of_environment);

    /// Returns the fault that the environment names.
    ///
    /// An unknown name ends the server: a proof would otherwise run without a fault.
    fn of_environment() -> Option<Fault> {
        let name = std::env::var(VARIABLE)
            .ok()
            .filter(|name| !name.is_empty())?;
        let found = ALL.into_iter().find(|fault| format!("{fault:?}") == name);
        if found.is_none() {
            eprintln!("{VARIABLE}={name}: no fault of that name; the faults are {ALL:?}");
            std::process::abort();
        }
        found
    }

    /// Returns whether the process has this fault.
    pub(crate) fn is_planted(fault: Fault) -> bool {
        *PLANTED == Some(fault)
    }
}
