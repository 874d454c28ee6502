//! Faults of the plug-in that a test build can have, one at a time, for proofs that talk to a server to find.
//!
//! As the engine's own (`engine/src/planted/mod.rs`): with the cargo feature `broken` the environment variable
//! `PEREGRINE_PLANTED_IN_PLUGIN` names one. In every other build [`is_planted`] is the constant `false`.

/// A step that can be left out, or done wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A step from row to row by a key passes over a row.
    SkipRow,
    /// What a statement that fails has done before stays.
    KeepFailedStatement,
    /// Aggregates that the engine works out do not see what their own transaction has changed.
    ForgetOwnRows,
    /// A row that is read whole by its key lacks its last column.
    LoseColumn,
    /// A unique key takes values that are there already.
    UncheckedKey,
    /// The refusal of an update counts as success.
    SwallowRefusal,
}

/// Whether this step is left out: never.
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

    /// The fault that the environment names. With a name that is none the server ends: whatever a proof said of it
    /// would be said of nothing.
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

    /// Whether this step is left out.
    pub(crate) fn is_planted(fault: Fault) -> bool {
        *PLANTED == Some(fault)
    }
}
