//! The rows of other sessions that a session sees.
//!
//! In one snapshot, or in a statement that locks all that it reads, these are the rows after one commit of each of
//! them.

use peregrine::Isolation;

use super::end::{wrong, Step};
use super::model::ledger::Rows;
use super::model::reading::{as_read, Read};
use super::plan::OWNERS;
use super::session::{Session, Work};

impl Session<'_> {
    /// Returns each session's last acknowledged commit.
    pub(super) fn acknowledged(&self) -> Vec<usize> {
        let ledgers = self.ledgers.iter();
        ledgers.map(|ledger| ledger.position().1).collect()
    }

    /// Checks that the rows found of each other session are its rows after one of its commits, restricted to those for
    /// which `covers` holds: no commit is seen in part, and none that did not begin.
    ///
    /// | level | which commits |
    /// |---|---|
    /// | READ COMMITTED | from the last one acknowledged before the statement on: the statement takes its snapshot then |
    /// | REPEATABLE READ | from the last one acknowledged before the transaction to the last begun before its first read ends; always the same |
    /// | SERIALIZABLE | as READ COMMITTED: the statement holds locks on what it read, and on the gaps, when it ends |
    pub(super) fn of_one_commit(
        &self,
        work: &mut Work,
        found: &[Read],
        covers: impl Fn(&Read) -> bool,
    ) -> Step {
        let lasts = work.txn.isolation() == Isolation::RepeatableRead;
        for (owner, ledger) in self.ledgers.iter().enumerate() {
            if owner as u64 == self.number {
                continue;
            }
            let theirs = found.iter().filter(|read| read.id % OWNERS == owner as u64);
            let mut theirs: Vec<Read> = theirs.copied().collect();
            theirs.sort_unstable_by_key(|read| read.id);
            let fits = |rows: &Rows| {
                let rows = rows.iter().map(|(id, row)| as_read(*id, row));
                rows.filter(&covers).eq(theirs.iter().copied())
            };
            let until = ledger.position().0;
            let mut commits = match (lasts, &work.possible[owner]) {
                (true, Some(possible)) => possible.clone(),
                (true, None) => (work.seen[owner]..until).collect(),
                (false, _) => (work.now[owner]..until).collect(),
            };
            let before = (commits.first().copied(), commits.last().copied());
            ledger.keep_those(&mut commits, fits);
            if commits.is_empty() {
                let ids: Vec<u64> = theirs.iter().map(|read| read.id).collect();
                return wrong(format!(
                    "rows of session {owner} are {ids:?}, and not those after one of its commits {before:?}"
                ));
            }
            if lasts {
                work.possible[owner] = Some(commits);
            }
        }
        Ok(())
    }

    /// Checks the transaction's snapshot, if it has one, after a read that covers no rows of others.
    pub(super) fn has_snapshot(&self, work: &mut Work) -> Step {
        self.of_one_commit(work, &[], |_| false)
    }
}
