//! One session: transactions of random statements on its own rows, among the rows of others, with a model of what
//! it must see.

use std::sync::Arc;

use peregrine::{
    Aggregate, Aggregated, Database, Error, IndexRange, Isolation, Result, RowLock, Savepoint,
    Table, Transaction, Value, Xid,
};

use super::ledger::{are, Ledger, Rows};
use super::links::Link;
use super::plan::{Ending, Plan, Role, OWNERS};
use super::reading::{in_order, read, rows, Read};
use crate::dice::Dice;
use crate::simulated::model::{Kind, Row, GROUP};

/// The table in which every session has rows of its own.
pub const OWN: &str = "own";
/// The table among whose rows amounts are moved.
pub const ACCOUNTS: &str = "accounts";
/// The table whose rows all sessions make, change and delete.
pub const SHARED: &str = "shared";
/// Keys of that table.
const SHARED_KEYS: u32 = 6;
/// What an account has at first.
pub const AMOUNT: u64 = 1_000;

/// The definition of the table of accounts; an account's amount is its group.
pub const ACCOUNTS_KIND: Kind = Kind {
    large: false,
    indexes: true,
};

/// The definition of the table of rows that all change.
pub const SHARED_KIND: Kind = ACCOUNTS_KIND;

/// The row of an account.
#[must_use]
pub fn account(id: u64, amount: u64) -> Row {
    let amount = u32::try_from(amount).unwrap_or(u32::MAX);
    Row::new(ACCOUNTS_KIND, id, amount, id, 10, None)
}

/// A statement.
#[derive(Clone, Copy, Debug)]
enum Statement {
    Insert,
    Update,
    Delete,
    Duplicate,
    ChangeShared,
    Transfer,
    Get,
    Scan,
    Count,
    Sum,
    Range,
    Many,
    Groups,
    Savepoint,
    BackToSavepoint,
    TakenBack,
}

impl Role {
    /// What a session does, and how often beside the others.
    fn weights(self) -> &'static [(Statement, u32)] {
        match self {
            Role::Mixed => &[
                (Statement::Insert, 5),
                (Statement::Update, 4),
                (Statement::Delete, 3),
                (Statement::Duplicate, 1),
                (Statement::ChangeShared, 5),
                (Statement::Transfer, 3),
                (Statement::Get, 1),
                (Statement::Scan, 3),
                (Statement::Count, 1),
                (Statement::Sum, 1),
                (Statement::Range, 3),
                (Statement::Many, 1),
                (Statement::Groups, 1),
                (Statement::Savepoint, 2),
                (Statement::BackToSavepoint, 2),
                (Statement::TakenBack, 2),
            ],
            Role::Reader => &[
                (Statement::Get, 1),
                (Statement::Scan, 4),
                (Statement::Count, 1),
                (Statement::Sum, 3),
                (Statement::Range, 2),
                (Statement::Many, 1),
                (Statement::Groups, 1),
            ],
            Role::Writer => &[
                (Statement::Insert, 3),
                (Statement::Update, 4),
                (Statement::Delete, 3),
                (Statement::ChangeShared, 6),
                (Statement::Transfer, 4),
                (Statement::Savepoint, 2),
                (Statement::BackToSavepoint, 2),
                (Statement::TakenBack, 3),
            ],
        }
    }
}

/// Why a transaction does not go on.
pub enum End {
    /// Another one was in the way: rolled back, and nothing is wrong.
    Conflict,
    /// A call to the operating system failed; of a commit: whether it is there is unknown.
    Failed(String),
    /// Something is wrong.
    Wrong(String),
}

impl From<Error> for End {
    fn from(error: Error) -> End {
        match error {
            Error::Deadlock
            | Error::LockWaitTimeout
            | Error::WriteConflict
            | Error::RowChanged
            | Error::Interrupted
            | Error::TableNewerThanSnapshot(_) => End::Conflict,
            Error::Io { .. } | Error::NoSpace { .. } | Error::Stopped(_) => {
                End::Failed(error.to_string())
            }
            other => End::Wrong(format!("fails: {other}")),
        }
    }
}

pub(super) fn wrong<T>(what: String) -> std::result::Result<T, End> {
    Err(End::Wrong(what))
}

pub(super) type Step = std::result::Result<(), End>;

/// A session.
pub struct Session<'a> {
    pub(super) plan: &'a Plan,
    pub(super) number: u64,
    pub(super) dice: Dice,
    ledger: &'a Ledger,
    pub(super) own: Arc<Table>,
    accounts: Arc<Table>,
    shared: Arc<Table>,
    db: &'a Database,
    role: Role,
    /// Codes are never used twice.
    pub(super) next_code: u64,
}

/// A transaction of it.
pub(super) struct Work {
    pub(super) txn: Transaction,
    /// The session's rows, as the transaction sees them.
    pub(super) rows: Rows,
    savepoints: Vec<(Savepoint, Rows, usize)>,
    /// Its changes of rows that all sessions change.
    links: Vec<Link>,
    /// Its commit has begun.
    commits: bool,
    /// What it has done, for whoever looks for what went wrong.
    pub(super) trail: String,
    /// Rows of others, when they were first looked at, where they must stay the same.
    others: Option<Vec<Read>>,
}

impl<'a> Session<'a> {
    /// Number `number` of the plan; `life` tells apart what was done before a crash and after.
    ///
    /// # Errors
    /// The engine's, of opening tables.
    pub fn new(
        plan: &'a Plan,
        number: u64,
        life: u64,
        db: &'a Database,
        ledger: &'a Ledger,
    ) -> Result<Self> {
        Ok(Session {
            plan,
            number,
            dice: Dice::new(plan.seed, 1 + number + life * OWNERS),
            ledger,
            own: db.table(OWN)?,
            accounts: db.table(ACCOUNTS)?,
            shared: db.table(SHARED)?,
            db,
            role: plan.roles[number as usize % plan.roles.len()],
            next_code: 1 + ((number + life * OWNERS) << 32) + (life << 20),
        })
    }

    /// Runs so many transactions.
    ///
    /// # Errors
    /// What is wrong.
    pub fn run(&mut self, transactions: u32) -> std::result::Result<(), String> {
        let times = match self.role {
            Role::Mixed => transactions,
            Role::Reader => transactions.min(2),
            Role::Writer => 3 * transactions,
        };
        for _ in 0..times {
            let isolation = self.plan.isolation.unwrap_or_else(|| {
                let all = [
                    Isolation::ReadCommitted,
                    Isolation::RepeatableRead,
                    Isolation::Serializable,
                ];
                all[self.dice.below(3) as usize]
            });
            let mut work = Work {
                txn: self.db.begin(isolation),
                rows: self.ledger.newest(),
                savepoints: Vec::new(),
                links: Vec::new(),
                commits: false,
                trail: String::new(),
                others: None,
            };
            let outcome = self.transaction(&mut work);
            let wrong = |what: &str, work: &Work| {
                let did = &work.trail;
                Err(format!(
                    "session {}, {isolation:?}: {what}; it did:{did}",
                    self.number
                ))
            };
            match outcome {
                Ok(()) => {}
                Err(End::Conflict) => {
                    if let Err(error) = work.txn.rollback() {
                        if self.plan.ending != Ending::CallFails {
                            return wrong(&format!("rolling back: {error}"), &work);
                        }
                    }
                }
                Err(End::Failed(what)) if self.plan.ending != Ending::CallFails => {
                    return wrong(&what, &work)
                }
                Err(End::Failed(_)) => {
                    // What is committed is unknown, or nothing can be done any more.
                    if work.commits || work.txn.rollback().is_err() {
                        return Ok(());
                    }
                }
                Err(End::Wrong(what)) => return wrong(&what, &work),
            }
        }
        Ok(())
    }

    fn transaction(&mut self, work: &mut Work) -> Step {
        if self.dice.below(6) == 0 {
            work.txn.begin_bulk_insert(&self.own);
            work.trail += " bulk;";
        }
        let most = match self.role {
            Role::Mixed => self.plan.statements,
            Role::Reader => 4 * self.plan.statements,
            Role::Writer => self.plan.statements.min(4),
        };
        for _ in 0..1 + self.dice.below(most) {
            work.txn.start_statement();
            self.statement(work)?;
            work.txn.end_statement();
        }
        match self.dice.below(10) {
            0 => Ok(work.txn.rollback()?),
            1 => self.in_two_phases(work),
            _ => self.commit(work),
        }
    }

    fn commit(&mut self, work: &mut Work) -> Step {
        work.trail += " commit;";
        work.commits = true;
        self.ledger.begins(&work.rows, &work.links);
        match work.txn.commit().map_err(End::from) {
            Ok(()) => {
                self.ledger.acknowledge();
                Ok(())
            }
            // Entries that a bulk insert had put off were in the way of others: nothing is committed.
            Err(End::Conflict) => {
                self.ledger.withdraw();
                Err(End::Conflict)
            }
            Err(End::Failed(what)) => Err(End::Failed(format!("commit: {what}"))),
            Err(End::Wrong(what)) => wrong(format!("commit: {what}")),
        }
    }

    fn in_two_phases(&mut self, work: &mut Work) -> Step {
        self.next_code += 1;
        let xid = Xid::new(1, &self.next_code.to_le_bytes(), b"")?;
        work.trail += " prepare;";
        work.txn.prepare(&xid)?;
        match self.dice.below(3) {
            0 => Ok(work.txn.rollback()?),
            _ => self.commit(work),
        }
    }

    fn statement(&mut self, work: &mut Work) -> Step {
        match self.choose() {
            Statement::Insert => self.insert(work),
            Statement::Update => self.update(work),
            Statement::Delete => self.delete(work),
            Statement::Duplicate => self.duplicate(work),
            Statement::ChangeShared => self.change_shared(work),
            Statement::Transfer => self.transfer(work),
            Statement::Get => self.get(work),
            Statement::Scan => self.scan(work),
            Statement::Count => self.count(work),
            Statement::Sum => self.sum(work),
            Statement::Range => self.range(work),
            Statement::Many => self.many(work),
            Statement::Groups => self.groups(work),
            Statement::Savepoint => {
                self.set_savepoint(work);
                Ok(())
            }
            Statement::BackToSavepoint => {
                let n = self.dice.below(work.savepoints.len() as u32) as usize;
                self.back_to(work, n)
            }
            Statement::TakenBack => {
                self.set_savepoint(work);
                for _ in 0..1 + self.dice.below(3) {
                    match self.dice.below(4) {
                        0 => self.insert(work)?,
                        1 => self.update(work)?,
                        2 => self.delete(work)?,
                        _ => self.change_shared(work)?,
                    }
                }
                self.back_to(work, work.savepoints.len() - 1)
            }
        }
    }

    fn set_savepoint(&mut self, work: &mut Work) {
        work.trail += &format!(" savepoint {};", work.savepoints.len());
        let savepoint = work.txn.savepoint();
        let (rows, links) = (work.rows.clone(), work.links.len());
        work.savepoints.push((savepoint, rows, links));
    }

    fn back_to(&mut self, work: &mut Work, n: usize) -> Step {
        if let Some((savepoint, rows, links)) = work.savepoints.get(n) {
            work.trail += &format!(" back to savepoint {n};");
            work.txn.rollback_to(savepoint)?;
            work.rows.clone_from(rows);
            work.links.truncate(*links);
            work.savepoints.truncate(n + 1);
        }
        Ok(())
    }

    fn choose(&mut self) -> Statement {
        let weights = self.role.weights();
        let mut left = self
            .dice
            .below(weights.iter().map(|(_, weight)| weight).sum());
        for (statement, weight) in weights {
            if left < *weight {
                return *statement;
            }
            left -= weight;
        }
        Statement::Scan
    }

    pub(super) fn key(&mut self) -> u64 {
        let n = u64::from(self.dice.below(self.plan.keys as u32));
        n * OWNERS + self.number
    }

    fn new_row(&mut self, id: u64) -> Row {
        self.next_code += 1;
        let pad = self.dice.below(self.plan.most_pad + 1);
        let large = match self.dice.below(2) {
            0 => None,
            _ => Some((self.next_code, self.dice.below(self.plan.most_large + 1))),
        };
        let group = self.dice.below(5);
        Row::new(self.plan.kind, id, group, self.next_code, pad, large)
    }

    pub(super) fn existing(&mut self, rows: &Rows) -> Option<u64> {
        let n = self.dice.below(rows.len() as u32) as usize;
        rows.keys().nth(n).copied()
    }

    pub(super) fn encoded(&self, id: u64) -> Result<Vec<u8>> {
        self.own.encode_key(0, &[Value::UInt(id)])
    }

    fn insert(&mut self, work: &mut Work) -> Step {
        for _ in 0..1 + self.dice.below(3) {
            let id = self.key();
            if work.rows.contains_key(&id) {
                continue;
            }
            let row = self.new_row(id);
            work.trail += &format!(" insert {id}, {} bytes;", row.pad);
            row.with_values(self.plan.kind, id, false, |values| {
                work.txn.insert(&self.own, values)
            })?;
            work.rows.insert(id, row);
        }
        Ok(())
    }

    fn update(&mut self, work: &mut Work) -> Step {
        let Some(id) = self.existing(&work.rows) else {
            return Ok(());
        };
        // Now and then it moves to another key.
        let moved = self.key();
        let to = match self.dice.below(4) == 0 && !work.rows.contains_key(&moved) {
            true => moved,
            false => id,
        };
        let row = self.new_row(to);
        work.trail += &format!(" update {id} to {to}, {} bytes;", row.pad);
        let key = self.encoded(id)?;
        row.with_values(self.plan.kind, to, false, |values| {
            work.txn.update(&self.own, &key, values)
        })?;
        work.rows.remove(&id);
        work.rows.insert(to, row);
        Ok(())
    }

    fn delete(&mut self, work: &mut Work) -> Step {
        for _ in 0..1 + self.dice.below(4) {
            if let Some(id) = self.existing(&work.rows) {
                work.trail += &format!(" delete {id};");
                let key = self.encoded(id)?;
                work.txn.delete(&self.own, &key)?;
                work.rows.remove(&id);
            }
        }
        Ok(())
    }

    /// What is there already is refused, by the clustered key or by the unique index.
    fn duplicate(&mut self, work: &mut Work) -> Step {
        let Some(id) = self.existing(&work.rows) else {
            return Ok(());
        };
        let by_code = self.plan.kind.indexes && self.dice.below(2) == 0;
        let (at, index) = match by_code {
            true => (self.key(), 2),
            false => (id, 0),
        };
        if by_code && work.rows.contains_key(&at) {
            return Ok(());
        }
        let mut row = self.new_row(at);
        if by_code {
            row = Row::new(self.plan.kind, at, 0, work.rows[&id].code, row.pad, None);
        }
        work.trail += &format!(" insert {at}, a duplicate of {id} in index {index};");
        let outcome = row.with_values(self.plan.kind, at, false, |values| {
            work.txn.insert(&self.own, values)
        });
        match outcome {
            Err(Error::Duplicate { index: found }) if found == index => Ok(()),
            Err(error) => Err(error.into()),
            Ok(()) => wrong(format!("row {at} is a duplicate of {id}, and was taken")),
        }
    }

    fn get(&mut self, work: &mut Work) -> Step {
        let id = self.key();
        let key = self.encoded(id)?;
        let locks = [RowLock::None, RowLock::Shared, RowLock::Exclusive];
        let lock = locks[self.dice.below(3) as usize];
        work.trail += &format!(" get {id} with lock {lock:?};");
        let has_large = self.plan.kind.large;
        let found = work
            .txn
            .get_locked(&self.own, &key, lock, |row| read(&row, has_large))?;
        let found = found.transpose()?.map(|read| read.print);
        let expected = work.rows.get(&id).map(|row| row.print);
        match found == expected {
            true => Ok(()),
            false => wrong(format!("row {id}: {found:?} where {expected:?} was")),
        }
    }

    fn scan(&mut self, work: &mut Work) -> Step {
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

    /// The number of rows by an aggregate is that of a scan.
    fn count(&mut self, work: &mut Work) -> Step {
        if work.txn.isolation() == Isolation::ReadCommitted {
            return Ok(());
        }
        let index = self.dice.below(2) as usize % (1 + self.own.schema().indexes.len());
        let range = IndexRange::whole(index);
        let counted = work
            .txn
            .aggregate(&self.own, &range, &[], &[Aggregate::Rows])?;
        let found = rows(&mut work.txn, &self.own, 0, false)?.len() as u64;
        match counted[..] {
            [Aggregated::Count(counted)] if counted == found => Ok(()),
            _ => wrong(format!("{found} rows, counted as {counted:?}")),
        }
    }

    /// Makes, changes or deletes a row that others change, too.
    fn change_shared(&mut self, work: &mut Work) -> Step {
        let id = u64::from(self.dice.below(SHARED_KEYS));
        let key = self.shared.encode_key(0, &[Value::UInt(id)])?;
        // Now and then it takes for granted that nothing is there.
        let blind = self.dice.below(2) == 0;
        let from = match blind {
            true => None,
            false => {
                let lock = RowLock::Exclusive;
                let found = work
                    .txn
                    .get_locked(&self.shared, &key, lock, |row| read(&row, false))?;
                found.transpose()?.map(|read| read.print)
            }
        };
        if from.is_some() && self.dice.below(3) == 0 {
            work.trail += &format!(" delete shared {id};");
            work.txn.delete(&self.shared, &key)?;
            work.links.push(Link {
                key: id,
                from,
                to: None,
            });
            return Ok(());
        }
        // The group makes the content one of its own; a code may be that of another row, and is refused then.
        self.next_code += 1;
        let group = ((self.number << 24) | (self.next_code & 0xff_ffff)) as u32;
        let code = u64::from(self.dice.below(2 * SHARED_KEYS));
        let pad = self.dice.below(self.plan.most_pad + 1);
        let row = Row::new(SHARED_KIND, id, group, code, pad, None);
        work.trail += &format!(" put shared {id}, code {code}, {pad} bytes;");
        let outcome = row.with_values(SHARED_KIND, id, false, |values| match from {
            None => work.txn.insert(&self.shared, values),
            Some(_) => work.txn.update(&self.shared, &key, values),
        });
        match outcome {
            Ok(()) => {
                work.links.push(Link {
                    key: id,
                    from,
                    to: Some(row.print),
                });
                Ok(())
            }
            // The code is that of another row; or nothing was there that could be locked, and another one was faster.
            Err(Error::Duplicate { index: 2 }) => Ok(()),
            Err(Error::Duplicate { index: 0 }) if blind => Ok(()),
            Err(Error::Duplicate { index: 0 }) if from.is_none() => Err(End::Conflict),
            Err(error) => Err(error.into()),
        }
    }

    fn amount(&self, work: &mut Work, id: u64) -> std::result::Result<(Vec<u8>, u64), End> {
        let key = self.accounts.encode_key(0, &[Value::UInt(id)])?;
        let row = work
            .txn
            .get_locked(&self.accounts, &key, RowLock::Exclusive, |row| {
                read(&row, false)
            })?;
        match row.transpose()? {
            Some(row) => Ok((key, row.group)),
            None => wrong(format!("account {id} is missing")),
        }
    }

    fn transfer(&mut self, work: &mut Work) -> Step {
        let from = u64::from(self.dice.below(self.plan.accounts as u32));
        let to = u64::from(self.dice.below(self.plan.accounts as u32));
        if from == to {
            return Ok(());
        }
        work.trail += &format!(" transfer from {from} to {to};");
        let (from_key, from_amount) = self.amount(work, from)?;
        let (to_key, to_amount) = self.amount(work, to)?;
        let moved = from_amount.min(u64::from(self.dice.below(100)));
        let changes = [
            (from, from_key, from_amount - moved),
            (to, to_key, to_amount + moved),
        ];
        for (id, key, amount) in changes {
            account(id, amount).with_values(ACCOUNTS_KIND, id, false, |values| {
                work.txn.update(&self.accounts, &key, values)
            })?;
        }
        Ok(())
    }

    /// Nothing is lost or made where amounts are moved.
    fn sum(&mut self, work: &mut Work) -> Step {
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
        match sum == expected {
            true => Ok(()),
            false => wrong(format!("amounts come to {sum}, not to {expected}")),
        }
    }
}
