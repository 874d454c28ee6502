//! A session's reads: rows, scans, parts of indexes, many keys at once, aggregates with conditions and groups.

use std::cmp::Ordering;

use peregrine::{
    Aggregate, Aggregated, Comparison, Condition, Cursor, CursorOptions, IndexRange, Isolation,
    MultiGet, OwnedValue, RowLock, Seek, Value,
};

use super::end::{wrong, Step};
use super::model::ledger::are;
use super::model::now::locks_alone;
use super::model::reading::{as_read, in_order, key_of, read, rows, Read};
use super::plan::{Role, OWNERS};
use super::session::{Session, Work};
use super::tables::{AMOUNT, SHARED_KEYS};
use crate::simulated::model::{Row, CODE, GROUP, ID};

/// The number of each session's keys that `upgrade` locks: few, so that sessions conflict on them.
const UPGRADED_KEYS: u32 = 4;

/// For each seek: how the entries that it wants compare with its prefix, and whether it goes forward.
const SEEKS: [(Seek, &[Ordering], bool); 8] = {
    use Ordering::{Equal, Greater, Less};
    [
        (Seek::Exact, &[Equal], true),
        (Seek::ExactLast, &[Equal], false),
        (Seek::AtOrAfter, &[Equal, Greater], true),
        (Seek::After, &[Greater], true),
        (Seek::AtOrBefore, &[Equal, Less], false),
        (Seek::Before, &[Less], false),
        (Seek::First, &[Less, Equal, Greater], true),
        (Seek::Last, &[Less, Equal, Greater], false),
    ]
};

const COMPARISONS: [Comparison; 6] = [
    Comparison::Equal,
    Comparison::NotEqual,
    Comparison::Less,
    Comparison::LessOrEqual,
    Comparison::Greater,
    Comparison::GreaterOrEqual,
];

fn holds(comparison: Comparison, value: u64, with: u64) -> bool {
    match comparison {
        Comparison::Equal => value == with,
        Comparison::NotEqual => value != with,
        Comparison::Less => value < with,
        Comparison::LessOrEqual => value <= with,
        Comparison::Greater => value > with,
        Comparison::GreaterOrEqual => value >= with,
    }
}

impl Session<'_> {
    pub(super) fn get(&mut self, work: &mut Work) -> Step {
        let id = self.key();
        let key = self.encoded(id)?;
        let locks = [RowLock::None, RowLock::Shared, RowLock::Exclusive];
        let lock = locks[self.dice.below(3) as usize];
        work.trail += &format!(" get {id} with lock {lock:?};");
        let has_large = self.plan.kind.large;
        let found = work
            .txn
            .get_locked(&self.own, &key, lock, |row| read(&row, has_large))?;
        let found = found.transpose()?;
        match (found, lock) {
            (_, RowLock::None) => self.has_snapshot(work)?,
            (Some(found), lock) => self.has_locked(work, found, lock)?,
            (None, _) => {}
        }
        let found = found.map(|read| read.print);
        let expected = work.rows.get(&id).map(|row| row.print);
        match found == expected {
            true => Ok(()),
            false => wrong(format!("row {id}: {found:?} where {expected:?} was")),
        }
    }

    /// Locks a row of any session, shared and then exclusive.
    ///
    /// Half of the time, if its last scan passed over rows, it is one of these.
    pub(super) fn upgrade(&mut self, work: &mut Work) -> Step {
        let owner = u64::from(self.dice.below(self.plan.sessions as u32));
        let any = u64::from(self.dice.below(UPGRADED_KEYS)) * OWNERS + owner;
        let passed = self.dice.below(2 * work.passed_over.len() as u32) as usize;
        let id = work.passed_over.get(passed).copied().unwrap_or(any);
        let key = self.encoded(id)?;
        for lock in [RowLock::Shared, RowLock::Exclusive] {
            work.trail += &format!(" get {id} with lock {lock:?};");
            let has_large = self.plan.kind.large;
            let found = work
                .txn
                .get_locked(&self.own, &key, lock, |row| read(&row, has_large))?;
            let Some(found) = found.transpose()? else {
                return Ok(());
            };
            self.has_locked(work, found, lock)?;
            if self.dice.below(3) == 0 {
                return Ok(());
            }
            self.think();
        }
        Ok(())
    }

    /// Records that the transaction found a row and holds a lock on it.
    fn has_locked(&self, work: &mut Work, read: Read, lock: RowLock) -> Step {
        let owner = read.id % OWNERS;
        if owner != self.number {
            work.locked.push((read, work.now[owner as usize]));
        }
        locks_alone(self.now, self.number, read.id, lock)
    }

    pub(super) fn scan(&mut self, work: &mut Work) -> Step {
        let indexes = 1 + self.own.schema().indexes.len() as u32;
        let index = self.dice.below(indexes) as usize;
        let backwards = self.dice.below(3) == 0;
        work.trail += &format!(" scan index {index};");
        let found = rows(&mut work.txn, &self.own, index, backwards)?;
        let how = || {
            format!(
                "index {index}{}",
                if backwards { ", backwards" } else { "" }
            )
        };
        if !in_order(&found, index) {
            return wrong(format!("{}: rows twice, or out of order", how()));
        }
        let (own, mut others): (Vec<Read>, Vec<Read>) = found
            .into_iter()
            .partition(|read| read.id % OWNERS == self.number);
        if !are(&own, &work.rows) {
            let ids: Vec<u64> = own.iter().map(|read| read.id).collect();
            return wrong(format!(
                "{}: own rows {ids:?} where {:?} were, or others' content",
                how(),
                work.rows.keys().collect::<Vec<_>>()
            ));
        }
        self.of_one_commit(work, &others, |_| true)?;
        if work.txn.isolation() != Isolation::ReadCommitted {
            others.sort_unstable_by_key(|read| read.id);
            match &work.others {
                Some(before) if *before != others => {
                    return wrong(format!(
                        "{}: others' rows have changed in a snapshot",
                        how()
                    ))
                }
                Some(_) => {}
                None => work.others = Some(others),
            }
        }
        Ok(())
    }

    /// Checks that the number of rows by an aggregate is that of a scan.
    pub(super) fn count(&mut self, work: &mut Work) -> Step {
        if work.txn.isolation() == Isolation::ReadCommitted {
            return Ok(());
        }
        let index = self.dice.below(2) as usize % (1 + self.own.schema().indexes.len());
        let range = IndexRange::whole(index);
        let counted = work
            .txn
            .aggregate(&self.own, &range, &[], &[Aggregate::Rows])?;
        let found = rows(&mut work.txn, &self.own, 0, false)?;
        self.of_one_commit(work, &found, |_| true)?;
        match counted[..] {
            [Aggregated::Count(counted)] if counted == found.len() as u64 => Ok(()),
            _ => wrong(format!("{} rows, counted as {counted:?}", found.len())),
        }
    }

    /// Checks that the sum of the amounts is constant.
    pub(super) fn sum(&mut self, work: &mut Work) -> Step {
        let expected = AMOUNT * self.plan.accounts;
        let sum = match self.dice.below(2) {
            0 => {
                let index = self.dice.below(2) as usize;
                let range = IndexRange::whole(index);
                let sum =
                    work.txn
                        .aggregate(&self.accounts, &range, &[], &[Aggregate::Sum(GROUP)])?;
                match sum[..] {
                    [Aggregated::Sum { sum, .. }] => sum as u64,
                    _ => return wrong(format!("the sum of amounts is {sum:?}")),
                }
            }
            _ => {
                let index = self.dice.below(3) as usize;
                let found = rows(&mut work.txn, &self.accounts, index, false)?;
                found.iter().map(|read| read.group).sum()
            }
        };
        self.has_snapshot(work)?;
        match sum == expected {
            true => Ok(()),
            false => wrong(format!("amounts come to {sum}, not to {expected}")),
        }
    }

    /// Reads a part of an index up to a random length, with or without a lock.
    pub(super) fn range(&mut self, work: &mut Work) -> Step {
        let indexes = 1 + self.own.schema().indexes.len() as u32;
        let is_locker = self.role == Role::Locker;
        // One read in three of a locker takes all rows of the table that no other session has locked.
        let takes_all = is_locker && self.dice.below(3) == 0;
        let index = match takes_all {
            true => 0,
            false => self.dice.below(indexes) as usize,
        };
        let value = match index {
            0 => self.key(),
            1 => u64::from(self.dice.below(6)),
            _ => {
                let id = self.existing(&work.rows).unwrap_or(0);
                work.rows.get(&id).map_or(0, |row| row.code)
            }
        };
        let (seek, wanted, forward) = match takes_all {
            true => SEEKS[6 + self.dice.below(2) as usize],
            false => SEEKS[self.dice.below(8) as usize],
        };
        let locks = [RowLock::None, RowLock::Shared, RowLock::Exclusive];
        let options = CursorOptions {
            lock: match is_locker {
                true if takes_all => RowLock::Exclusive,
                true => locks[1 + self.dice.below(2) as usize],
                false => locks[self.dice.below(5) as usize % 3],
            },
            skip_locked: takes_all || self.dice.below(if is_locker { 3 } else { 6 }) == 0,
            index_only: false,
        };
        let joins = is_locker && self.dice.below(2) == 0;
        let most = match is_locker || self.dice.below(2) == 0 {
            true => usize::MAX,
            false => 1 + self.dice.below(12) as usize,
        };
        work.trail += &format!(" {seek:?} {value} in index {index}, {options:?};");
        let isolation = work.txn.isolation();
        let locks = options.lock != RowLock::None || isolation == Isolation::Serializable;
        let skips = options.skip_locked && locks;
        let now = work.now.clone();
        // With a snapshot, the rows may be as old as the transaction; else as the statement.
        let since = match isolation {
            Isolation::RepeatableRead => work.seen.clone(),
            _ => now.clone(),
        };
        let idle = self.others_idle();
        let mut cursor = Cursor::new(&self.own, index, options);
        let prefix = self.own.encode_key(index, &[Value::UInt(value)])?;
        let mut found = Vec::new();
        let mut more = cursor.seek(&mut work.txn, &prefix, seek)?;
        while more && found.len() < most {
            found.push(read(&cursor.row()?, self.plan.kind.large)?);
            if joins && self.dice.below(3) == 0 {
                self.lock_shared(work, options.lock)?;
            }
            // A locker may wait between two rows; meanwhile the rest of the leaf may change.
            if is_locker && self.plan.thinks && self.dice.below(3) == 0 {
                self.think();
            }
            more = match wanted {
                [Ordering::Equal] if forward => cursor.next_same_prefix(&mut work.txn)?,
                _ if forward => cursor.next(&mut work.txn)?,
                _ => cursor.prev(&mut work.txn)?,
            };
            if wanted == [Ordering::Equal] && !forward && more {
                // Backwards, the cursor has no end condition, so compare the current entry.
                let here = read(&cursor.row()?, self.plan.kind.large)?;
                more = key_of(&here, index).0 == value;
            }
        }
        drop(cursor);
        if takes_all {
            let all = (0..self.plan.sessions)
                .flat_map(|owner| (0..u64::from(UPGRADED_KEYS)).map(move |n| n * OWNERS + owner));
            let is_found = |id: &u64| found.iter().any(|read| read.id == *id);
            work.passed_over = all.filter(|id| !is_found(id)).collect();
        }
        // A row that no session has locked or changed in the meantime must not be skipped.
        let may_skip = skips && !self.were_idle(&idle);
        let is_wanted = |key: u64| wanted.contains(&key.cmp(&value));
        let others = found.iter().filter(|read| read.id % OWNERS != self.number);
        if locks {
            // Serializable reads lock, too.
            let lock = match options.lock {
                RowLock::None => RowLock::Shared,
                lock => lock,
            };
            for read in &found {
                self.has_locked(work, *read, lock)?;
            }
        }
        for read in others {
            let owner = (read.id % OWNERS) as usize;
            if !self.ledgers[owner].had_since(read, since[owner]) {
                return wrong(format!(
                    "row {} is as it was before, or as nobody committed it",
                    read.id
                ));
            }
        }
        if locks && !may_skip && !more {
            // With a snapshot, a read that skips locked rows also skips rows that were changed after the snapshot.
            let stays = match skips {
                true => |a: &Read, b: &Read, _: usize| a == b,
                false => |a: &Read, b: &Read, index| key_of(a, index).0 == key_of(b, index).0,
            };
            self.others_are_found(&found, index, &since, is_wanted, stays)?;
        }
        if !skips && (!locks || isolation == Isolation::Serializable) {
            // A partial read ends with the last row found.
            let last = found
                .last()
                .filter(|_| more)
                .map(|read| key_of(read, index));
            self.of_one_commit(work, &found, |read| {
                let key = key_of(read, index);
                is_wanted(key.0) && last.is_none_or(|last| key == last || (key < last) == forward)
            })?;
        }
        let own = found.iter().filter(|read| read.id % OWNERS == self.number);
        let own: Vec<u64> = own.map(|read| read.id).collect();
        let mut expected: Vec<Read> = work
            .rows
            .iter()
            .map(|(id, row)| as_read(*id, row))
            .filter(|row| is_wanted(key_of(row, index).0))
            .collect();
        expected.sort_unstable_by_key(|row| key_of(row, index));
        if !forward {
            expected.reverse();
        }
        let wrong_content = found.iter().any(|read| {
            read.id % OWNERS == self.number
                && work.rows.get(&read.id).map(|row| row.print) != Some(read.print)
        });
        let ids: Vec<u64> = expected.iter().map(|row| row.id).collect();
        let right = match (may_skip, more) {
            // Others may have locked rows of this session.
            (true, _) => is_among(&own, &ids),
            (false, true) => ids.starts_with(&own),
            (false, false) => ids == own,
        };
        match right && !wrong_content {
            true => Ok(()),
            false => wrong(format!(
                "{seek:?} {value} in index {index}, {options:?}, at most {most}: own rows {own:?} where {ids:?} were"
            )),
        }
    }

    /// Locks a row of another table, as a join does between two rows of the first table.
    fn lock_shared(&mut self, work: &mut Work, lock: RowLock) -> Step {
        let id = u64::from(self.dice.below(SHARED_KEYS));
        let key = self.shared.encode_key(0, &[Value::UInt(id)])?;
        work.trail += &format!(" with shared {id};");
        work.txn.get_locked(&self.shared, &key, lock, |_| ())?;
        Ok(())
    }

    /// Checks that a locking scan that came to its end found all wanted rows that existed all the time.
    ///
    /// If another session had deleted such a row and rolled back, the scan would have waited for it.
    fn others_are_found(
        &self,
        found: &[Read],
        index: usize,
        since: &[usize],
        wanted: impl Fn(u64) -> bool,
        stays: fn(&Read, &Read, usize) -> bool,
    ) -> Step {
        for (owner, ledger) in (0..).zip(self.ledgers) {
            if owner == self.number {
                continue;
            }
            // Both rows have the same id, so any id will do.
            let alike = |a: &Row, b: &Row| stays(&as_read(0, a), &as_read(0, b), index);
            let stayed = ledger.stayed(since[owner as usize], alike);
            let missed = stayed.iter().find(|(id, row)| {
                let key = key_of(&as_read(*id, row), index).0;
                wanted(key) && !found.iter().any(|found| found.id == *id)
            });
            if let Some((id, _)) = missed {
                return wrong(format!(
                    "row {id} was there all the time, and was not found"
                ));
            }
        }
        Ok(())
    }

    /// Checks that the locked rows of others have not been changed since.
    pub(super) fn locked_rows_stay(&self, work: &Work) -> Step {
        let changed = |(read, from): &&(Read, usize)| {
            let owner = (read.id % OWNERS) as usize;
            self.ledgers[owner].changed_since(read, *from)
        };
        match work.locked.iter().find(changed) {
            None => Ok(()),
            Some((read, _)) => wrong(format!("row {} was changed while it was locked", read.id)),
        }
    }

    /// Reads rows of many keys at once.
    pub(super) fn many(&mut self, work: &mut Work) -> Step {
        let mut many = MultiGet::new(&self.own);
        let mut ids = Vec::new();
        for _ in 0..1 + self.dice.below(20) {
            let id = u64::from(self.dice.below(self.plan.keys as u32 * OWNERS as u32));
            many.add(&self.encoded(id)?)?;
            ids.push(id);
        }
        work.trail += &format!(" many {ids:?};");
        work.txn.multi_get(&mut many)?;
        let mut seen: Vec<Read> = Vec::new();
        for (n, id) in ids.iter().enumerate() {
            let found = many.row(n)?;
            let found = found.map(|row| read(&row, self.plan.kind.large));
            let found = found.transpose()?;
            seen.extend(found.filter(|read| read.id % OWNERS != self.number));
            let found = found.map(|read| read.print);
            let expected = work.rows.get(id).map(|row| row.print);
            if id % OWNERS == self.number && found != expected {
                return wrong(format!("row {id} of many is not as it was written"));
            }
        }
        // A key may occur twice among the ids.
        seen.sort_unstable_by_key(|read| read.id);
        seen.dedup();
        self.of_one_commit(work, &seen, |read| ids.contains(&read.id))
    }

    /// Checks that aggregates over rows with a condition are those of the rows that a scan finds.
    pub(super) fn groups(&mut self, work: &mut Work) -> Step {
        if work.txn.isolation() == Isolation::ReadCommitted {
            return Ok(());
        }
        let column = [ID, GROUP, CODE][self.dice.below(3) as usize];
        let comparison = COMPARISONS[self.dice.below(6) as usize];
        let with = match column {
            ID => u64::from(self.dice.below(self.plan.keys as u32 * OWNERS as u32)),
            GROUP => u64::from(self.dice.below(6)),
            _ => self.next_code / 2,
        };
        work.trail += &format!(" groups where column {column} {comparison:?} {with};");
        let conditions = [Condition::Compare(column, comparison, Value::UInt(with))];
        let asked = [
            Aggregate::Rows,
            Aggregate::Sum(GROUP),
            Aggregate::Min(ID),
            Aggregate::Max(ID),
        ];
        let whole = IndexRange::whole(0);
        let groups = work
            .txn
            .aggregate_groups(&self.own, &whole, &conditions, GROUP, &asked)?;
        let found = rows(&mut work.txn, &self.own, 0, false)?;
        self.of_one_commit(work, &found, |_| true)?;
        let value = |read: &Read| match column {
            ID => read.id,
            GROUP => read.group,
            _ => read.code,
        };
        let mut kept: Vec<Read> = found;
        kept.retain(|read| holds(comparison, value(read), with));
        kept.sort_unstable_by_key(|read| (read.group, read.id));
        let expected: Vec<_> = kept
            .chunk_by(|a, b| a.group == b.group)
            .map(|rows| {
                let number = |id: u64| Aggregated::Value(Some(OwnedValue::UInt(id)));
                let (first, last) = (rows[0], rows[rows.len() - 1]);
                peregrine::Group {
                    value: Some(OwnedValue::UInt(first.group)),
                    answers: vec![
                        Aggregated::Count(rows.len() as u64),
                        Aggregated::Sum {
                            sum: rows.iter().map(|read| i128::from(read.group)).sum(),
                            values: rows.len() as u64,
                        },
                        number(first.id),
                        number(last.id),
                    ],
                }
            })
            .collect();
        match groups == expected {
            true => Ok(()),
            false => wrong(format!("groups {groups:?} where {expected:?} were")),
        }
    }
}

/// Returns whether all of `some` are among `all`, in the same order.
fn is_among(some: &[u64], all: &[u64]) -> bool {
    let mut all = all.iter();
    some.iter().all(|id| all.any(|other| other == id))
}
