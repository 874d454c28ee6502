//! Faults of durability that a test build can have, one at a time, for the proofs to find.
//!
//! A proof that finds nothing proves nothing until it has found something. With the cargo feature
//! `broken` the process can be told by `plant` to leave one step out. Without the feature, as in
//! every build that is shipped, [`is_planted`] is the constant `false`, and nothing of this remains.

/// A step that can be left out, or done wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlantedFault {
    /// The log is written, and never synced.
    SkipLogSync,
    /// A commit is acknowledged when the log is written; the sync comes with the commit after it.
    AcknowledgeBeforeSync,
    /// A failed sync of the log is tried again, and what that says is believed.
    RetryFailedSync,
    /// The name of a new log segment is not made durable.
    SkipDirectorySync,
    /// A checkpoint leaves a page out.
    ForgetPage,
    /// The header of a checkpoint is written before what it leads to is durable.
    HeaderFirst,
    /// A page's checksum is not looked at.
    IgnorePageChecksum,
    /// A log record's checksum is not looked at.
    IgnoreLogChecksum,
    /// Recovery replays what the checkpoint has already.
    ReplayTwice,
    /// Recovery overlooks the last commit of the log.
    DropLastCommit,
    /// Recovery takes no notice of transactions that were running at the checkpoint.
    KeepLosers,
}

#[cfg(feature = "broken")]
pub(crate) use planting::is_planted;
#[cfg(feature = "broken")]
pub use planting::plant;

/// Whether this step is left out: never.
#[cfg(not(feature = "broken"))]
#[inline(always)]
pub(crate) fn is_planted(_: PlantedFault) -> bool {
    false
}

#[cfg(feature = "broken")]
mod planting {
    use std::sync::atomic::{AtomicU8, Ordering};

    use super::PlantedFault;

    /// The fault that this process has, by its place in the list, plus one.
    static PLANTED: AtomicU8 = AtomicU8::new(0);

    impl PlantedFault {
        /// All faults.
        pub const ALL: [PlantedFault; 11] = [
            PlantedFault::SkipLogSync,
            PlantedFault::AcknowledgeBeforeSync,
            PlantedFault::RetryFailedSync,
            PlantedFault::SkipDirectorySync,
            PlantedFault::ForgetPage,
            PlantedFault::HeaderFirst,
            PlantedFault::IgnorePageChecksum,
            PlantedFault::IgnoreLogChecksum,
            PlantedFault::ReplayTwice,
            PlantedFault::DropLastCommit,
            PlantedFault::KeepLosers,
        ];
    }

    /// From now on every database of this process has the fault, or none.
    pub fn plant(fault: Option<PlantedFault>) {
        let code = fault.map_or(0, |fault| fault as u8 + 1);
        PLANTED.store(code, Ordering::SeqCst);
    }

    /// Whether this step is left out.
    pub(crate) fn is_planted(fault: PlantedFault) -> bool {
        PLANTED.load(Ordering::SeqCst) == fault as u8 + 1
    }
}
