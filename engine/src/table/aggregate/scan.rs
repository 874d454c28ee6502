//! The leaves of a range, taken in one after the other.

use std::sync::atomic::{AtomicBool, Ordering};

use smallvec::SmallVec;

use super::condition::Passes;
use super::plan::{Plan, Totals};
use super::slow::Rows;
use crate::error::{Error, Result};
use crate::row::scalar::{Found, ScalarPlace};
use crate::table::open_table::{Table, TableTrees};
use crate::tree::{KnownLeaf, Leaf, LeafSummary, Leaves, Step, Tree};
use crate::txn::{live_payload, KillHandle, ReadView, Versions};

/// Leaves between two looks at whether to stop.
const LEAVES_A_LOOK: u32 = 64;

/// What is read, by all threads that do it.
pub(super) struct Source<'a> {
    pub table: &'a Table,
    pub trees: &'a TableTrees,
    pub tree: &'a Tree,
    pub plan: &'a Plan,
    pub view: ReadView,
    pub stop: Stop,
}

/// Why a scan should not go on.
pub(super) struct Stop {
    kill: KillHandle,
    failed: AtomicBool,
}

impl Stop {
    pub fn new(kill: KillHandle) -> Stop {
        Stop {
            kill,
            failed: AtomicBool::new(false),
        }
    }

    /// One of the threads has failed: the others need not go on.
    pub fn fail(&self) {
        self.failed.store(true, Ordering::Relaxed);
    }

    fn check(&self) -> Result<()> {
        if self.kill.is_killed() || self.failed.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        Ok(())
    }
}

/// A scan under way.
pub(super) struct Scan<'a> {
    source: &'a Source<'a>,
    versions: Versions<'a>,
    /// Whether leaves are taken in as they stand: every column is where it is found without ordinary
    /// decoding, and rows are not grouped.
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
    pub fn new(source: &'a Source<'a>, versions: Versions<'a>) -> Self {
        let plan = source.plan;
        Scan {
            source,
            versions,
            is_known: plan.group.is_none() && plan.places().all(ScalarPlace::is_known),
            totals: plan.nothing(),
            leaf: plan.nothing(),
            rows: Rows::new(source.table, source.trees, plan),
        }
    }

    /// Takes in the leaves of a range, until so many have been read; false when there may be more.
    pub fn run(&mut self, leaves: &mut Leaves<'_>, mut read: usize) -> Result<bool> {
        let mut count = 0;
        while read > 0 {
            if count == 0 {
                self.source.stop.check()?;
            }
            count = (count + 1) % LEAVES_A_LOOK;
            match self.take_next(leaves)? {
                Step::Known => {}
                Step::Read(()) => read -= 1,
                Step::End => return Ok(true),
            }
        }
        Ok(false)
    }

    fn take_next(&mut self, leaves: &mut Leaves<'_>) -> Result<Step<()>> {
        let Scan {
            source,
            versions,
            is_known,
            totals,
            leaf: of_leaf,
            rows,
        } = self;
        let (plan, view) = (source.plan, &source.view);
        let known = |leaf: &KnownLeaf<'_>| take_summaries(plan, view, leaf, totals);
        let read = |leaf: &Leaf<'_>| {
            if *is_known && leaf.max_txid() < view.low.0 && take(plan, leaf, of_leaf) {
                if leaf.whole {
                    keep(plan, leaf, of_leaf);
                }
                return Look::Taken;
            }
            rows.copy(leaf, versions.before_copy());
            Look::Copied
        };
        Ok(match leaves.next(known, read)? {
            Step::Known => Step::Known,
            Step::Read(Look::Taken) => {
                totals.merge(of_leaf);
                Step::Read(())
            }
            Step::Read(Look::Copied) => {
                rows.take_in(versions, source.tree, view, totals)?;
                Step::Read(())
            }
            Step::End => Step::End,
        })
    }
}

/// Takes a leaf in by its summaries; false, changing nothing, where one is missing, does not tell
/// enough, or some record may be one that the view does not see.
fn take_summaries(plan: &Plan, view: &ReadView, leaf: &KnownLeaf<'_>, totals: &mut Totals) -> bool {
    if plan.group.is_some() {
        return false;
    }
    let settled = |summary: &LeafSummary| summary.max_txid < view.low.0;
    let mut all = true;
    for filter in &plan.filters {
        let summary = leaf.summary(Some(filter.place.column)).filter(settled);
        match summary.map(|summary| filter.passes(&summary)) {
            Some(Passes::All) => {}
            // Whatever the other filters say.
            Some(Passes::None) => return true,
            Some(Passes::Some) | None => all = false,
        }
    }
    if !all {
        return false;
    }
    if plan.columns.is_empty() {
        let found = leaf.summary(None).filter(settled);
        totals.rows += found.map_or(0, |summary| u64::from(summary.records));
        return found.is_some();
    }
    let of = |place: &ScalarPlace| leaf.summary(Some(place.column)).filter(settled);
    if let [place] = &plan.columns[..] {
        // By far the most frequent, and spared the list.
        let Some(summary) = of(place) else {
            return false;
        };
        totals.rows += u64::from(summary.records);
        totals.add_summary(0, &summary);
        return true;
    }
    let found: Option<SmallVec<[LeafSummary; 4]>> = plan.columns.iter().map(of).collect();
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

/// Takes in the records of a leaf all of which the view sees, into `of_leaf`, which is cleared
/// first; false where one takes ordinary decoding.
fn take(plan: &Plan, leaf: &Leaf<'_>, of_leaf: &mut Totals) -> bool {
    of_leaf.clear();
    'records: for i in leaf.range.clone() {
        let payload = match live_payload(leaf.value(i)) {
            Ok(Some(payload)) => payload,
            Ok(None) => continue,
            // The ordinary way reports it.
            Err(_) => return false,
        };
        let key_len = leaf.key_len(i);
        let read = |place: &ScalarPlace| place.read(payload, key_len, |at| leaf.key_byte(i, at));
        for filter in &plan.filters {
            let bits = match read(&filter.place) {
                Found::Bits(bits) => Some(bits),
                Found::Null => None,
                Found::Unknown => return false,
            };
            if !filter.lets_through(bits) {
                continue 'records;
            }
        }
        of_leaf.rows += 1;
        for (place, values) in plan.columns.iter().zip(&mut of_leaf.columns) {
            match read(place) {
                Found::Bits(bits) => values.add(place.form, bits),
                Found::Null => {}
                Found::Unknown => return false,
            }
        }
    }
    true
}

/// Keeps what a whole leaf came to; or, where filters let only a part of it through, what the
/// filters' columns come to, unless that would take the place of another column's.
fn keep(plan: &Plan, leaf: &Leaf<'_>, of_leaf: &Totals) {
    let max_txid = leaf.max_txid();
    if !plan.filters.is_empty() {
        for filter in &plan.filters {
            if leaf.has_room(filter.place.column) {
                let column = Plan::of_column(filter.place);
                let mut all = column.nothing();
                if take(&column, leaf, &mut all) {
                    leaf.keep(Some(filter.place.column), &all.summary(Some(0), max_txid));
                }
            }
        }
        return;
    }
    if plan.columns.is_empty() {
        leaf.keep(None, &of_leaf.summary(None, max_txid));
    }
    for (n, place) in plan.columns.iter().enumerate() {
        leaf.keep(Some(place.column), &of_leaf.summary(Some(n), max_txid));
    }
}
