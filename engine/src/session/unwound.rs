//! Row operations that end in a panic of the embedding program's code.
//!
//! A collation makes sort keys in the middle of an operation. If it panics, the row may be in the clustered tree
//! without its entries, and the log has nothing of it. The same holds for rows of a bulk insert if a panic comes from
//! the code that is told of waits ([`crate::Sessions`]). Such a transaction must not be committed.

use crate::error::Error;
use crate::planted::{is_planted, PlantedFault};
use crate::session::transaction::Transaction;

/// A transaction within an operation.
struct Within<'t> {
    txn: &'t mut Transaction,
    ended: bool,
}

impl Drop for Within<'_> {
    fn drop(&mut self) {
        if !self.ended && !is_planted(PlantedFault::CommitUnwound) {
            self.txn.missing_entries.get_or_insert_with(unwound);
        }
    }
}

#[cold]
fn unwound() -> Error {
    let what = "a row operation ended in a panic: the transaction can only be rolled back, \
                or go back to a savepoint before it";
    Error::Invalid(what.into())
}

impl Transaction {
    /// Runs an operation.
    ///
    /// If it panics, its rows count as lacking entries.
    #[inline]
    pub(crate) fn whole_or_unwound<R>(&mut self, operation: impl FnOnce(&mut Self) -> R) -> R {
        let mut within = Within {
            txn: self,
            ended: false,
        };
        let result = operation(within.txn);
        within.ended = true;
        result
    }
}
