//! The leaves of a range, taken in one after the other.

use super::plan::{Plan, Totals};
use super::slow::Rows;
use crate::error::Result;
use crate::row::scalar::Found;
use crate::table::open_table::{Table, TableTrees};
use crate::tree::{KnownLeaf, Leaf, Leaves, Step};
use crate::txn::{self, live_payload, ReadView};

/// Leaves between two looks at whether the transaction has been killed.
const LEAVES_A_LOOK: u32 = 64;

/// A scan under way.
pub(super) struct Scan<'a> {
    txn: &'a txn::Transaction,
    plan: &'a Plan,
    view: ReadView,
    /// Whether every column stands where it is found without ordinary decoding.
    is_known: bool,
    /// What the rows so far come to.
    pub totals: Totals,
    /// The same of one leaf.
    leaf: Totals,
    /// For leaves that are copied.
    rows: Rows<'a>,
}

/// What became of a leaf under its latch.
enum Look {
    /// It has been taken in.
    Taken,
    /// It has been copied, and is still to be taken in.
    Copied,
}

impl<'a> Scan<'a> {
    pub fn new(
        txn: &'a txn::Transaction,
        table: &'a Table,
        trees: &'a TableTrees,
        view: ReadView,
        plan: &'a Plan,
    ) -> Self {
        Scan {
            txn,
            plan,
            view,
            is_known: plan.columns.iter().all(|place| place.is_known()),
            totals: plan.nothing(),
            leaf: plan.nothing(),
            rows: Rows::new(table, trees, plan),
        }
    }

    /// Takes in the leaves of a range.
    pub fn run(&mut self, mut leaves: Leaves<'_>) -> Result<()> {
        let tree = leaves.tree();
        let mut count = 0;
        loop {
            if count == 0 {
                self.txn.check_killed()?;
            }
            count = (count + 1) % LEAVES_A_LOOK;
            let Scan {
                txn,
                plan,
                view,
                is_known,
                totals,
                leaf: of_leaf,
                rows,
            } = self;
            let known = |leaf: &KnownLeaf<'_>| take_summaries(plan, view, leaf, totals);
            let read = |leaf: &Leaf<'_>| {
                if *is_known && leaf.max_txid() < view.low.0 && take(plan, leaf, of_leaf) {
                    if leaf.whole {
                        keep(plan, leaf, of_leaf);
                    }
                    return Look::Taken;
                }
                rows.copy(leaf, txn.before_copy());
                Look::Copied
            };
            match leaves.next(known, read)? {
                Step::Known => {}
                Step::Read(Look::Taken) => self.totals.merge(&self.leaf),
                Step::Read(Look::Copied) => {
                    let (txn, view) = (self.txn, &self.view);
                    self.rows.take_in(txn, tree, view, &mut self.totals)?;
                }
                Step::End => return Ok(()),
            }
        }
    }
}

/// Takes a leaf in by its summaries; false, changing nothing, where one is missing, or some record
/// may be one that the view does not see.
fn take_summaries(plan: &Plan, view: &ReadView, leaf: &KnownLeaf<'_>, totals: &mut Totals) -> bool {
    let settled = |max_txid| max_txid < view.low.0;
    match &plan.columns[..] {
        [] => {
            let found = leaf.summary(None).filter(|s| settled(s.max_txid));
            totals.rows += found.map_or(0, |summary| u64::from(summary.records));
            found.is_some()
        }
        [place] => {
            let found = leaf.summary(Some(place.column));
            let Some(summary) = found.filter(|s| settled(s.max_txid)) else {
                return false;
            };
            totals.rows += u64::from(summary.records);
            totals.add_summary(0, &summary);
            true
        }
        places => {
            let fits = |column| {
                let found = leaf.summary(Some(column));
                found.filter(|s| settled(s.max_txid))
            };
            let found: Option<smallvec::SmallVec<[_; 4]>> =
                places.iter().map(|place| fits(place.column)).collect();
            let Some(summaries) = found else {
                return false;
            };
            for (n, summary) in summaries.iter().enumerate() {
                if n == 0 {
                    totals.rows += u64::from(summary.records);
                }
                totals.add_summary(n, summary);
            }
            true
        }
    }
}

/// Takes in the records of a leaf all of which the view sees, into `of_leaf`, which is cleared
/// first; false where one takes ordinary decoding.
fn take(plan: &Plan, leaf: &Leaf<'_>, of_leaf: &mut Totals) -> bool {
    of_leaf.clear();
    for i in leaf.range.clone() {
        let payload = match live_payload(leaf.value(i)) {
            Ok(Some(payload)) => payload,
            Ok(None) => continue,
            // The ordinary way reports it.
            Err(_) => return false,
        };
        of_leaf.rows += 1;
        let key_len = leaf.key_len(i);
        for (place, values) in plan.columns.iter().zip(&mut of_leaf.columns) {
            match place.read(payload, key_len, |at| leaf.key_byte(i, at)) {
                Found::Bits(bits) => values.add(place.form, bits),
                Found::Null => {}
                Found::Unknown => return false,
            }
        }
    }
    true
}

/// Keeps what a whole leaf came to.
fn keep(plan: &Plan, leaf: &Leaf<'_>, of_leaf: &Totals) {
    let max_txid = leaf.max_txid();
    if plan.columns.is_empty() {
        leaf.keep(None, &of_leaf.summary(None, max_txid));
    }
    for (n, place) in plan.columns.iter().enumerate() {
        leaf.keep(Some(place.column), &of_leaf.summary(Some(n), max_txid));
    }
}
