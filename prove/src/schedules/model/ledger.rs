//! The commits of the sessions, as far as the sessions know, for the check of a disk after a crash.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use peregrine::Xid;

use super::links::{Link, Links};
use super::reading::Read;
use crate::simulated::model::Row;

/// Rows of one session, by their keys.
pub type Rows = BTreeMap<u64, Row>;

/// The commits of one session.
///
/// Its methods contain no schedule point, so its mutex is never contended.
#[derive(Debug, Default)]
pub struct Ledger(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    /// The rows after each commit that has begun; the first are the initial rows.
    states: Vec<Rows>,
    /// The index of the newest commit that was acknowledged.
    acknowledged: usize,
    /// The index of the newest commit that is durable, whatever the durability setting.
    durable: usize,
    /// Changes of the shared rows, each with its commit.
    links: Vec<(usize, Link)>,
    /// Changes of the accounts' amounts, each with its commit.
    moved: Vec<(usize, Moved)>,
    /// Prepared transactions, in the order in which they were prepared.
    prepared: Vec<Prepared>,
}

/// A transaction that is or was prepared.
#[derive(Debug)]
struct Prepared {
    xid: Xid,
    /// The last commit before it.
    after: usize,
    rows: Rows,
    links: Vec<Link>,
    moved: Vec<Moved>,
    /// Whether it is prepared and neither its commit nor its rollback has begun.
    stands: bool,
}

/// An account and the change of its amount.
pub type Moved = (u64, i64);

impl Entries {
    /// Returns whether these rows differ from those after that commit, or whether there are other changes.
    fn is_changed(&self, commit: usize, rows: &Rows, links: &[Link], moved: &[Moved]) -> bool {
        self.states.get(commit) != Some(rows) || !links.is_empty() || !moved.is_empty()
    }
}

impl Ledger {
    /// Records that a commit begins that leaves these rows and makes these changes.
    pub fn begins(&self, rows: &Rows, links: &[Link], moved: &[Moved]) {
        let mut entries = self.0.lock();
        let commit = entries.states.len();
        entries.states.push(rows.clone());
        entries
            .links
            .extend(links.iter().map(|link| (commit, *link)));
        entries
            .moved
            .extend(moved.iter().map(|moved| (commit, *moved)));
    }

    /// Returns whether a commit that leaves these rows and makes these changes would change something.
    pub fn is_changed(&self, rows: &Rows, links: &[Link], moved: &[Moved]) -> bool {
        let entries = self.0.lock();
        let newest = entries.states.len().saturating_sub(1);
        entries.is_changed(newest, rows, links, moved)
    }

    /// Records that a transaction with these rows and changes is about to be prepared.
    pub fn prepares(&self, xid: &Xid, rows: &Rows, links: &[Link], moved: &[Moved]) {
        let mut entries = self.0.lock();
        let prepared = Prepared {
            xid: xid.clone(),
            after: entries.states.len().saturating_sub(1),
            rows: rows.clone(),
            links: links.to_vec(),
            moved: moved.to_vec(),
            stands: false,
        };
        entries.prepared.push(prepared);
    }

    /// Sets whether the last prepared transaction must be found prepared after a crash.
    pub fn stands(&self, stands: bool) {
        let mut entries = self.0.lock();
        if let Some(last) = entries.prepared.last_mut() {
            last.stands = stands;
        }
    }

    /// Returns the prepared transaction that must be found after a crash, if it has changes.
    pub fn standing(&self) -> Option<Xid> {
        let entries = self.0.lock();
        let last = entries.prepared.last().filter(|last| last.stands)?;
        let has_changed = entries.is_changed(last.after, &last.rows, &last.links, &last.moved);
        has_changed.then(|| last.xid.clone())
    }

    /// Records the decision on a transaction that was found prepared after a crash, and forgets all later commits of
    /// its session.
    ///
    /// Returns the commit that must be found then; `None` if this session prepared no such transaction.
    pub fn decided(&self, xid: &Xid, commits: bool) -> Option<usize> {
        let mut entries = self.0.lock();
        let at = entries.prepared.iter().position(|p| p.xid == *xid)?;
        let prepared = entries.prepared.swap_remove(at);
        let last = prepared.after;
        entries.states.truncate(last + 1);
        entries.links.retain(|(of, _)| *of <= last);
        entries.moved.retain(|(of, _)| *of <= last);
        entries.acknowledged = last;
        drop(entries);
        if commits {
            self.begins(&prepared.rows, &prepared.links, &prepared.moved);
            self.acknowledge();
        }
        Some(last + usize::from(commits))
    }

    /// Records that the last commit that began was refused.
    pub fn withdraw(&self) {
        let mut entries = self.0.lock();
        entries.states.pop();
        let commit = entries.states.len();
        entries.links.retain(|(of, _)| *of < commit);
        entries.moved.retain(|(of, _)| *of < commit);
    }

    /// Records that the last commit that began was acknowledged.
    pub fn acknowledge(&self) {
        let mut entries = self.0.lock();
        entries.acknowledged = entries.states.len().saturating_sub(1);
    }

    /// Returns the number of commits that have begun, and the last acknowledged commit.
    pub fn position(&self) -> (usize, usize) {
        let entries = self.0.lock();
        (entries.states.len(), entries.acknowledged)
    }

    /// Records that all commits up to this one are durable.
    pub fn is_durable(&self, commit: usize) {
        let mut entries = self.0.lock();
        entries.durable = entries.durable.max(commit);
    }

    /// The newest commit that is durable: see [`Ledger::is_durable`].
    pub fn durable(&self) -> usize {
        self.0.lock().durable
    }

    /// Adds the changes of the shared rows.
    ///
    /// Changes of commits up to the first of the range count as acknowledged, those of the others in the range as
    /// begun.
    pub fn add_links(&self, range: &std::ops::Range<usize>, to: &mut Links) {
        for (commit, link) in &self.0.lock().links {
            match *commit {
                commit if commit <= range.start => to.acknowledged.push(*link),
                commit if commit < range.end => to.begun.push(*link),
                _ => {}
            }
        }
    }

    /// Returns the changes of amounts by the commits up to this one.
    pub fn moved(&self, commit: usize) -> Vec<Moved> {
        let entries = self.0.lock();
        let moved = entries.moved.iter().filter(|(of, _)| *of <= commit);
        moved.map(|(_, moved)| *moved).collect()
    }

    /// Returns whether these rows, all found rows of this session, are those after a commit in the range.
    ///
    /// Commits at the end of the range may have been withdrawn since: they were in progress at the power loss and were
    /// refused.
    pub fn was(&self, found: &[Read], range: std::ops::Range<usize>) -> bool {
        let entries = self.0.lock();
        let mut states = entries.states.iter().take(range.end).skip(range.start);
        states.any(|rows| are(found, rows))
    }

    /// Keeps the commits that left rows for which `fits` holds.
    pub fn keep_those(&self, commits: &mut Vec<usize>, fits: impl Fn(&Rows) -> bool) {
        let entries = self.0.lock();
        commits.retain(|commit| entries.states.get(*commit).is_some_and(&fits));
    }

    /// Returns whether one of the commits from `from` on left this row; the last one may be in progress.
    pub fn had_since(&self, read: &Read, from: usize) -> bool {
        let entries = self.0.lock();
        let mut states = entries.states.iter().skip(from);
        states.any(|rows| has(rows, read))
    }

    /// Returns the rows that are `alike` after all commits from `from` on, also after one in progress.
    pub fn stayed(&self, from: usize, alike: impl Fn(&Row, &Row) -> bool) -> Vec<(u64, Row)> {
        let entries = self.0.lock();
        let mut states = entries.states.iter().skip(from);
        let Some(first) = states.next() else {
            return Vec::new();
        };
        let later: Vec<&Rows> = states.collect();
        let stays = |id: &u64, row: &Row| {
            let now = |rows: &&Rows| rows.get(id).is_some_and(|now| alike(row, now));
            later.iter().all(now)
        };
        first
            .iter()
            .filter(|(id, row)| stays(id, row))
            .map(|(id, row)| (*id, *row))
            .collect()
    }

    /// Returns whether an acknowledged commit changed this row after a commit from `from` on had left it.
    pub fn changed_since(&self, read: &Read, from: usize) -> bool {
        let entries = self.0.lock();
        let states = entries.states.iter().take(entries.acknowledged + 1);
        let mut after = states.skip(from).skip_while(|rows| !has(rows, read));
        after.any(|rows| !has(rows, read))
    }

    /// Returns the newest committed row with this content, with the values from which its bytes follow.
    pub fn row_of(&self, read: &Read) -> Option<Row> {
        let entries = self.0.lock();
        let mut states = entries.states.iter().rev();
        states.find_map(|rows| {
            let row = rows.get(&read.id)?;
            (row.print == read.print).then_some(*row)
        })
    }

    /// Returns the rows after the newest acknowledged commit.
    pub fn newest(&self) -> Rows {
        let entries = self.0.lock();
        let newest = entries.states.get(entries.acknowledged);
        newest.cloned().unwrap_or_default()
    }
}

fn has(rows: &Rows, read: &Read) -> bool {
    let row = rows.get(&read.id);
    row.is_some_and(|row| row.print == read.print)
}

/// Returns whether the found rows, in any order, are these.
#[must_use]
pub fn are(found: &[Read], rows: &Rows) -> bool {
    found.len() == rows.len()
        && found.iter().all(|read| {
            rows.get(&read.id)
                .is_some_and(|row| row.print == read.print)
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedules::tables::account;

    fn read(id: u64, amount: u64) -> Read {
        let row = account(id, amount);
        Read {
            id,
            group: amount,
            code: row.code,
            print: row.print,
        }
    }

    #[test]
    fn rows_of_two_commits_are_those_of_none() {
        let ledger = Ledger::default();
        let rows = |amount: u64| Rows::from([(1, account(1, amount)), (2, account(2, amount))]);
        ledger.begins(&rows(10), &[], &[]);
        ledger.acknowledge();
        ledger.begins(&rows(20), &[], &[]);
        let (begun, acknowledged) = ledger.position();
        let range = || acknowledged..begun;
        assert!(ledger.was(&[read(1, 10), read(2, 10)], range()));
        assert!(ledger.was(&[read(1, 20), read(2, 20)], range()));
        assert!(!ledger.was(&[read(1, 10), read(2, 20)], range()));
        let fits = |amount: u64| move |rows: &Rows| rows.get(&2) == Some(&account(2, amount));
        let kept = |amount: u64| {
            let mut commits = vec![0, 1, 7];
            ledger.keep_those(&mut commits, fits(amount));
            commits
        };
        assert_eq!((kept(10), kept(20), kept(30)), (vec![0], vec![1], vec![]));
        ledger.acknowledge();
        let (begun, acknowledged) = ledger.position();
        assert!(!ledger.was(&[read(1, 10), read(2, 10)], acknowledged..begun));

        assert!(ledger.changed_since(&read(1, 10), 0) && !ledger.changed_since(&read(1, 20), 0));
        assert!(!ledger.changed_since(&read(1, 10), 1), "it was so before");
        assert!(ledger.had_since(&read(1, 20), 1) && !ledger.had_since(&read(1, 10), 1));
        assert_eq!(ledger.stayed(0, |_, _| true).len(), 2);
        assert_eq!(ledger.stayed(0, |a, b| a.group == b.group), []);
        assert_eq!(ledger.stayed(1, |a, b| a.group == b.group).len(), 2);

        let xid = Xid::new(1, b"one", b"").expect("a name");
        ledger.prepares(&xid, &rows(20), &[], &[]);
        ledger.stands(true);
        assert_eq!(ledger.standing(), None, "it has changed nothing");
        ledger.prepares(&xid, &rows(25), &[], &[(1, 5)]);
        assert_eq!(ledger.standing(), None);
        ledger.stands(true);
        assert_eq!(ledger.standing(), Some(xid));

        ledger.begins(&rows(30), &[], &[]);
        let (begun, acknowledged) = ledger.position();
        ledger.withdraw();
        assert!(ledger.was(&[read(1, 20), read(2, 20)], acknowledged..begun));
        assert!(!ledger.was(&[read(1, 30), read(2, 30)], acknowledged..begun));
    }

    #[test]
    fn what_was_prepared_is_decided_and_nothing_later_is_there() {
        let rows = |amount: u64| Rows::from([(1, account(1, amount))]);
        let some = |commits: bool| {
            let ledger = Ledger::default();
            let xid = Xid::new(1, b"one", b"").expect("a name");
            ledger.begins(&rows(10), &[], &[]);
            ledger.acknowledge();
            ledger.prepares(&xid, &rows(20), &[], &[(1, 10)]);
            ledger.begins(&rows(30), &[], &[(1, 20)]);
            ledger.acknowledge();
            let commit = ledger.decided(&xid, commits).expect("it is known");
            assert_eq!(ledger.decided(&xid, commits), None);
            (commit, ledger.newest(), ledger.moved(9))
        };
        assert_eq!(some(false), (0, rows(10), vec![]));
        assert_eq!(some(true), (1, rows(20), vec![(1, 10)]));
    }
}
