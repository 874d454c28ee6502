//! Row operations that end in a panic of the embedding program's code.
//!
//! A collation gives sort keys in the middle of an operation. Where it panics the row may stand without its entries,
//! and the log knows nothing of it. So may rows of a bulk insert, where who is told of a wait panics
//! ([`crate::Sessions`]). Such a transaction must not be committed.

use crate::error::Error;
use crate::planted::{is_planted, PlantedFault};
use crate::session::transaction::Transaction;

/// A transaction in the middle of an operation.
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
    /// Runs an operation. Where it unwinds instead of coming back, its rows count as lacking entries.
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
