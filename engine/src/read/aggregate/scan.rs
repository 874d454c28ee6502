//! A scan of the leaves of a range, one after the other.

use smallvec::SmallVec;

use crate::error::{Error, Result};
use crate::knobs;
use crate::mvcc::{live_payload, ReadView};
use crate::read::aggregate::condition::Passes;
use crate::read::aggregate::plan::{Plan, Totals};
use crate::read::aggregate::row_by_row::Rows;
use crate::read::mini_page::Projection;
use crate::row::projection::ColumnSet;
use crate::row::scalar::{Found, ScalarPlace};
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{strikes, Fault};
use crate::table::open_table::{Table, TableTrees};
use crate::tree::{Leaf, LeafScan, MiniPage, SkippableLeaf, Step, Tree, ZoneMap};
use crate::txn::{KillHandle, TreeTransaction, VersionResolver};

/// The source of the scan, shared by all threads that read it.
pub(super) struct Source<'a> {
    pub table: &'a Table,
    pub trees: &'a TableTrees,
    pub tree: &'a Tree,
    pub plan: &'a Plan,
    pub view: ReadView,
    /// The columns that a mini-page must have to replace a leaf, if mini-pages can.
    pub asked: Option<Projection<'a>>,
    pub stop: Stop,
}

impl<'a> Source<'a> {
    /// A leaf scan of a part of the range.
    pub fn leaves(&self, from: Vec<u8>, to: Option<Vec<u8>>) -> LeafScan<'a> {
        let mut leaves = self.tree.leaves(from, to);
        if self.plan.is_of_whole_leaves() {
            leaves.skip_with_zone_maps(self.plan.columns.iter().map(|place| place.column));
        }
        if let Some(asked) = &self.asked {
            leaves.skip_with_mini_pages(asked.columns.0);
        }
        leaves
    }
}

/// Reasons why a scan must stop.
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

    /// Tells the other threads that this one has failed: they need not go on.
    pub fn fail(&self) {
        self.failed.store(true, Ordering::Relaxed);
    }

    fn check(&self) -> Result<()> {
        let failed = self.failed.load(Ordering::Relaxed);
        if failed || self.kill.is_killed() || strikes(Fault::Killed) {
            return Err(Error::Interrupted);
        }
        Ok(())
    }
}

/// A running scan.
pub(super) struct Scan<'a> {
    source: &'a Source<'a>,
    versions: VersionResolver<'a>,
    /// The transaction that makes mini-pages of leaves, and how many more it may make.
    keeper: Option<&'a TreeTransaction>,
    to_keep: usize,
    /// Whether leaves can be scanned under their latch: every column is found without ordinary decoding, and rows are
    /// not grouped.
    is_known: bool,
    /// Totals of all rows so far.
    pub totals: Totals,
    /// Totals of one leaf.
    leaf: Totals,
    /// For leaves that must be copied.
    rows: Rows<'a>,
}

/// Result of the read of a leaf under its latch.
enum LeafOutcome {
    /// The leaf's rows are in the totals.
    Taken,
    /// The leaf was copied; its rows must still be added.
    Copied,
}

impl<'a> Scan<'a> {
    /// A scan; with `keeper`, it makes mini-pages of a few leaves.
    pub fn new(
        source: &'a Source<'a>,
        versions: VersionResolver<'a>,
        keeper: Option<&'a TreeTransaction>,
    ) -> Self {
        let plan = source.plan;
        Scan {
            source,
            versions,
            keeper,
            to_keep: knobs::mini_pages_kept(),
            is_known: plan.group.is_none() && plan.places().all(ScalarPlace::is_known),
            totals: plan.nothing(),
            leaf: plan.nothing(),
            rows: Rows::new(source.table, source.trees, plan),
        }
    }

    /// Scans the leaves of a range until `read` leaves have been read; returns false if more may follow.
    pub fn run(&mut self, leaves: &mut LeafScan<'_>, mut read: usize) -> Result<bool> {
        let mut count = 0;
        while read > 0 {
            if count == 0 {
                self.source.stop.check()?;
            }
            count = (count + 1) % knobs::leaves_a_look();
            match self.take_next(leaves)? {
                Step::Known => {}
                Step::Read(()) => read -= 1,
                Step::End => return Ok(true),
            }
        }
        Ok(false)
    }

    fn take_next(&mut self, leaves: &mut LeafScan<'_>) -> Result<Step<()>> {
        let Scan {
            source,
            versions,
            is_known,
            totals,
            leaf: of_leaf,
            rows,
            keeper,
            to_keep,
        } = self;
        let (plan, view) = (source.plan, &source.view);
        let keeps = keeper.zip(source.asked).filter(|_| *to_keep > 0);
        let known = |leaf: &SkippableLeaf<'_>| match leaf.mini_page() {
            Some(page) => take_mini_page(plan, page, totals),
            None => take_zone_maps(plan, view, leaf, totals),
        };
        // A key of the leaf of which a mini-page is to be made.
        let mut key = Vec::new();
        let read = |leaf: &Leaf<'_>| {
            let has_zone_maps = leaf.whole && plan.is_of_whole_leaves();
            let to_mini_page = keeps.is_some() && leaf.was_not_resident && !has_zone_maps;
            if to_mini_page && !leaf.range.is_empty() {
                leaf.key(leaf.range.start, &mut key);
            }
            if *is_known && leaf.max_txid() < view.low.0 && take(plan, leaf, of_leaf) {
                if leaf.whole {
                    keep(plan, leaf, of_leaf);
                }
                return LeafOutcome::Taken;
            }
            rows.copy(leaf, versions.before_copy());
            LeafOutcome::Copied
        };
        match leaves.next(known, read)? {
            Step::Known => return Ok(Step::Known),
            Step::Read(LeafOutcome::Taken) => totals.merge(of_leaf),
            Step::Read(LeafOutcome::Copied) => rows.take_in(versions, source.tree, view, totals)?,
            Step::End => return Ok(Step::End),
        }
        if let (Some((keeper, asked)), false) = (keeps, key.is_empty()) {
            *to_keep -= 1;
            asked.keep(keeper, source.tree, &key);
        }
        Ok(Step::Read(()))
    }
}

/// Adds a leaf by its zone maps; returns false, and changes nothing, if these can't replace it.
///
/// It can't if a zone map is missing or does not decide a filter, or if the view may not see some record.
fn take_zone_maps(
    plan: &Plan,
    view: &ReadView,
    leaf: &SkippableLeaf<'_>,
    totals: &mut Totals,
) -> bool {
    if plan.group.is_some() {
        return false;
    }
    let all_seen = |zone_map: &ZoneMap| zone_map.max_txid < view.low.0;
    let mut all = true;
    for filter in &plan.filters {
        let zone_map = leaf.zone_map(Some(filter.place.column)).filter(all_seen);
        match zone_map.map(|zone_map| filter.passes(&zone_map)) {
            Some(Passes::All) => {}
            // No row passes, whatever the other filters say.
            Some(Passes::None) => return true,
            Some(Passes::Some) | None => all = false,
        }
    }
    if !all {
        return false;
    }
    if plan.columns.is_empty() {
        let found = leaf.zone_map(None).filter(all_seen);
        totals.rows += found.map_or(0, |zone_map| u64::from(zone_map.records));
        return found.is_some();
    }
    let of = |place: &ScalarPlace| leaf.zone_map(Some(place.column)).filter(all_seen);
    if let [place] = &plan.columns[..] {
        // By far the most frequent case: needs no list.
        let Some(zone_map) = of(place) else {
            return false;
        };
        totals.rows += u64::from(zone_map.records);
        totals.add_zone_map(0, &zone_map);
        return true;
    }
    let found: Option<SmallVec<[ZoneMap; 4]>> = plan.columns.iter().map(of).collect();
    let Some(zone_maps) = found else {
        return false;
    };
    for (n, zone_map) in zone_maps.iter().enumerate() {
        if n == 0 {
            totals.rows += u64::from(zone_map.records);
        }
        totals.add_zone_map(n, zone_map);
    }
    true
}

/// Adds a leaf by its mini-page; returns false, and changes nothing, if the mini-page can't replace it.
fn take_mini_page(plan: &Plan, leaf: &MiniPage<'_>, totals: &mut Totals) -> bool {
    let mut of_leaf = plan.nothing();
    let columns = ColumnSet(leaf.columns);
    for record in leaf.records() {
        let Some(record) = record else {
            return false;
        };
        let read = |place: &ScalarPlace| {
            place.read_kept(record.kept, columns, record.key_len(), |at| {
                record.key_byte(at)
            })
        };
        if !take_row(plan, &mut of_leaf, read) {
            return false;
        }
    }
    totals.merge(&of_leaf);
    true
}

/// Adds the records of a leaf, all of which the view sees, to `of_leaf`, after clearing it.
///
/// Returns false if a record needs ordinary decoding.
fn take(plan: &Plan, leaf: &Leaf<'_>, of_leaf: &mut Totals) -> bool {
    of_leaf.clear();
    for i in leaf.range.clone() {
        let payload = match live_payload(leaf.value(i)) {
            Ok(Some(payload)) => payload,
            Ok(None) => continue,
            // The ordinary decoding reports the error.
            Err(_) => return false,
        };
        let key_len = leaf.key_len(i);
        let read = |place: &ScalarPlace| place.read(payload, key_len, |at| leaf.key_byte(i, at));
        if !take_row(plan, of_leaf, read) {
            return false;
        }
    }
    true
}

/// Adds a row whose columns `read` finds, if the filters accept it; returns false if a column needs ordinary decoding.
#[inline]
fn take_row(plan: &Plan, totals: &mut Totals, read: impl Fn(&ScalarPlace) -> Found) -> bool {
    for filter in &plan.filters {
        let bits = match read(&filter.place) {
            Found::Bits(bits) => Some(bits),
            Found::Null => None,
            Found::Unknown => return false,
        };
        if !filter.lets_through(bits) {
            return true;
        }
    }
    totals.rows += 1;
    for (place, values) in plan.columns.iter().zip(&mut totals.columns) {
        match read(place) {
            Found::Bits(bits) => values.add(place.form, bits),
            Found::Null => {}
            Found::Unknown => return false,
        }
    }
    true
}

/// Stores the zone maps of a whole leaf.
///
/// If the plan has filters, `of_leaf` has only some rows: then it computes and stores those of the filters' columns,
/// unless one would replace another column's.
fn keep(plan: &Plan, leaf: &Leaf<'_>, of_leaf: &Totals) {
    let max_txid = leaf.max_txid();
    if !plan.filters.is_empty() {
        for filter in &plan.filters {
            if leaf.has_room(filter.place.column) {
                let column = Plan::of_column(filter.place);
                let mut all = column.nothing();
                if take(&column, leaf, &mut all) {
                    leaf.keep(Some(filter.place.column), &all.zone_map(Some(0), max_txid));
                }
            }
        }
        return;
    }
    if plan.columns.is_empty() {
        leaf.keep(None, &of_leaf.zone_map(None, max_txid));
    }
    for (n, place) in plan.columns.iter().enumerate() {
        leaf.keep(Some(place.column), &of_leaf.zone_map(Some(n), max_txid));
    }
}
