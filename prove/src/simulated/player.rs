//! Plays a workload on a database and keeps the model beside it.
//!
//! The same plan on the same disk makes the same calls in the same order.

mod automatic;
mod held;
mod undecided;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use peregrine::{Database, Isolation, Result, Savepoint, Table, Transaction, Value};

use self::held::Held;
use self::undecided::Undecided;
use super::model::{Changes, Kind, Row, State, TableState};
use super::workload::{Keys, Plan};
use peregrine_harness::dice::Dice;

/// The maximum number of rows that one clearing deletes.
const CLEARED: usize = 25;
/// The number of rows in a filling transaction.
const FILLED_AT_ONCE: u32 = 40;

/// Called with the progress: 2 *k* after *k* acknowledged changes, 2 *k* + 1 while the next one becomes durable.
pub type Note<'a> = &'a mut dyn FnMut(u64);

/// The progress of a workload, and the model.
pub struct Player<'a> {
    plan: &'a Plan,
    dice: Dice,
    note: Note<'a>,
    /// The first state, which is empty, and one after each acknowledged commit, prepare, end of a prepared transaction
    /// or change of definitions.
    pub states: Vec<State>,
    /// The state that a failed commit or change of definitions would have given.
    ///
    /// The next opening may find it, if nothing was acknowledged since.
    pub in_doubt: Option<State>,
    sessions: Vec<Option<Session>>,
    undecided: Vec<Undecided>,
    held: Held,
    next_code: u64,
    next_name: u64,
}

struct Session {
    txn: Transaction,
    changes: Changes,
    savepoints: Vec<(Savepoint, Changes)>,
    /// Tables used, and rows ("table id"), also those of undone changes: they stay locked.
    used: BTreeSet<String>,
    /// The next automatic value of each table whose counter the session has used.
    counters: BTreeMap<String, u64>,
    /// A rollback to a savepoint failed halfway, so only a complete rollback is possible.
    spoilt: bool,
}

impl Session {
    /// Raises the counters of a state above the automatic values that the session has used.
    fn raise_counters(&self, state: &mut State) {
        for (name, next) in &self.counters {
            if let Some(table) = state.tables.get_mut(name) {
                let table = Arc::make_mut(table);
                table.least_auto = table.least_auto.max(*next);
            }
        }
    }
}

/// A step.
#[derive(Clone, Copy)]
enum Step {
    Insert,
    Update,
    Delete,
    Clear,
    Savepoint,
    BackToSavepoint,
    Commit,
    Rollback,
    Prepare,
    Decide,
    Checkpoint,
    Purge,
    Create,
    Drop,
    Truncate,
    Rename,
    SetCounter,
}

impl<'a> Player<'a> {
    /// Creates a player before its first call.
    pub fn new(plan: &'a Plan, note: Note<'a>) -> Player<'a> {
        Player {
            plan,
            dice: Dice::new(plan.seed, plan.number ^ 1 << 40),
            note,
            states: vec![State::default()],
            in_doubt: None,
            sessions: (0..plan.sessions).map(|_| None).collect(),
            undecided: Vec::new(),
            held: Held::new(plan),
            next_code: 1,
            next_name: 0,
        }
    }

    /// The last acknowledged state.
    pub fn state(&self) -> &State {
        &self.states[self.states.len() - 1]
    }

    /// The number of acknowledged changes.
    pub fn acknowledged(&self) -> u64 {
        self.states.len() as u64 - 1
    }

    /// Creates and fills the first tables.
    ///
    /// # Errors
    /// The engine's first error.
    pub fn fill(&mut self, db: &Database) -> Result<()> {
        for &kind in &self.plan.tables {
            self.create(db, kind)?;
        }
        for name in self.table_names() {
            let mut left = self.plan.filled;
            while left > 0 {
                for _ in 0..left.min(FILLED_AT_ONCE) {
                    self.insert(db, 0, &name)?;
                }
                self.commit(0)?;
                left = left.saturating_sub(FILLED_AT_ONCE);
            }
        }
        Ok(())
    }

    /// Creates and fills the first tables, and does all steps.
    ///
    /// # Errors
    /// The engine's first error.
    pub fn play(&mut self, db: &Database) -> Result<()> {
        self.fill(db)?;
        (0..self.plan.steps).try_for_each(|_| self.step(db))
    }

    /// Does one step.
    ///
    /// # Errors
    /// The engine's error. The step has changed nothing then; but after a failed commit, [`Player::in_doubt`] may be
    /// found.
    pub fn step(&mut self, db: &Database) -> Result<()> {
        self.look_at_held(db)?;
        let session = self.dice.below(self.plan.sessions) as usize;
        let names = self.table_names();
        if self.sessions[session].as_ref().is_some_and(|s| s.spoilt) {
            return self.rollback(session);
        }
        let name = match names.is_empty() {
            true => return self.create(db, self.plan.tables[0]),
            false => names[self.dice.below(names.len() as u32) as usize].clone(),
        };
        match self.choose() {
            Step::Insert => self.insert(db, session, &name),
            Step::Update => self.update(db, session, &name),
            Step::Delete => self.delete(db, session, &name, 1),
            Step::Clear => self.delete(db, session, &name, CLEARED),
            Step::Savepoint => {
                if let Some(session) = &mut self.sessions[session] {
                    let savepoint = session.txn.savepoint();
                    session
                        .savepoints
                        .push((savepoint, session.changes.clone()));
                }
                Ok(())
            }
            Step::BackToSavepoint => self.back_to_savepoint(session),
            Step::Commit => self.commit(session),
            Step::Rollback => self.rollback(session),
            Step::Prepare => self.prepare(session),
            Step::Decide => self.decide_one(db),
            Step::Checkpoint => db.checkpoint(),
            Step::Purge => db.purge(),
            Step::Create => {
                let large = self.dice.below(2) == 0;
                let indexes = self.dice.below(2) == 0;
                self.create(db, Kind { large, indexes })
            }
            Step::Drop => self.define(&name, |state| {
                state.tables.remove(&name);
                db.drop_table(&name)
            }),
            Step::Truncate => self.define(&name, |state| {
                if let Some(table) = state.tables.get_mut(&name) {
                    *table = Arc::new(TableState::new(table.kind));
                }
                db.truncate_table(&name)
            }),
            Step::Rename => {
                let to = self.new_name();
                self.define(&name, |state| {
                    if let Some(table) = state.tables.remove(&name) {
                        state.tables.insert(to.clone(), table);
                    }
                    db.rename_table(&name, &to)
                })
            }
            Step::SetCounter => {
                let value = db.table(&name)?.next_auto_increment() + 1 + self.number(20);
                self.define(&name, |state| {
                    if let Some(table) = state.tables.get_mut(&name) {
                        Arc::make_mut(table).least_auto = value;
                    }
                    db.set_auto_increment(&name, value)
                })
            }
        }
    }

    /// Commits a small change in every table, or creates a table, and decides some prepared transactions, to show that
    /// work continues.
    ///
    /// # Errors
    /// The engine's errors.
    pub fn go_on(&mut self, db: &Database) -> Result<()> {
        for name in self.table_names() {
            self.insert(db, 0, &name)?;
            self.update(db, 0, &name)?;
            self.delete(db, 0, &name, 1)?;
        }
        self.commit(0)?;
        self.decide_some(db)?;
        match self.table_names().is_empty() {
            true => self.create(db, self.plan.tables[0]),
            false => Ok(()),
        }
    }

    /// Continues from the state found after an opening; the further steps follow from `seed`.
    pub fn resume(&mut self, found: State, seed: u64) {
        self.drop_sessions();
        self.dice = Dice::new(seed, self.plan.number ^ 1 << 41);
        self.undecided = undecided::after_opening(&found);
        self.in_doubt = None;
        self.states = vec![found];
        self.next_code += 1 << 32;
        self.next_name += 1_000;
    }

    /// Drops all open transactions without a commit.
    ///
    /// Prepared transactions survive without their sessions.
    pub fn drop_sessions(&mut self) {
        self.held.give_up();
        self.sessions.iter_mut().for_each(|session| *session = None);
        self.detach_all();
    }

    /// Rolls back all open transactions except the prepared ones.
    ///
    /// # Errors
    /// The engine's errors.
    pub fn roll_back_all(&mut self) -> Result<()> {
        self.held.give_up();
        (0..self.sessions.len()).try_for_each(|session| self.rollback(session))?;
        self.forget_decided();
        Ok(())
    }

    fn choose(&mut self) -> Step {
        let w = &self.plan.weights;
        let steps = [
            (Step::Insert, w.insert),
            (Step::Update, w.update),
            (Step::Delete, w.delete),
            (Step::Clear, w.clear),
            (Step::Savepoint, w.savepoint),
            (Step::BackToSavepoint, w.back_to_savepoint),
            (Step::Commit, w.commit),
            (Step::Rollback, w.rollback),
            (Step::Prepare, w.prepare),
            (Step::Decide, w.decide),
            (Step::Checkpoint, w.checkpoint),
            (Step::Purge, w.purge),
            (Step::Create, w.create),
            (Step::Drop, w.drop),
            (Step::Truncate, w.truncate),
            (Step::Rename, w.rename),
            (Step::SetCounter, w.set_counter),
        ];
        let mut left = self
            .dice
            .below(steps.iter().map(|(_, weight)| weight).sum());
        for (step, weight) in steps {
            if left < weight {
                return step;
            }
            left -= weight;
        }
        Step::Commit
    }

    fn table_names(&self) -> Vec<String> {
        self.state().tables.keys().cloned().collect()
    }

    fn number(&mut self, bound: u32) -> u64 {
        u64::from(self.dice.below(bound))
    }

    fn new_name(&mut self) -> String {
        self.next_name += 1;
        format!("t{}", self.next_name)
    }

    /// Notes that a change is being made durable, makes it, and notes whether it succeeded.
    fn acknowledge(
        &mut self,
        after: State,
        work: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let acknowledged = self.acknowledged();
        (self.note)(2 * acknowledged + 1);
        let outcome = work(self);
        match outcome {
            Ok(()) => {
                self.states.push(after);
                self.in_doubt = None;
                (self.note)(2 * acknowledged + 2);
            }
            Err(_) => self.in_doubt = Some(after),
        }
        outcome
    }

    /// Changes a definition, unless a transaction uses the table.
    fn define(&mut self, name: &str, change: impl FnOnce(&mut State) -> Result<()>) -> Result<()> {
        let mut sessions = self.sessions.iter().flatten();
        if sessions.any(|session| session.used.contains(name)) || self.is_undecided(name) {
            return Ok(());
        }
        self.held.give_up();
        let mut after = self.state().clone();
        let acknowledged = self.acknowledged();
        (self.note)(2 * acknowledged + 1);
        match change(&mut after) {
            Ok(()) => {
                self.states.push(after);
                self.in_doubt = None;
                (self.note)(2 * acknowledged + 2);
                Ok(())
            }
            Err(error) => {
                self.in_doubt = Some(after);
                Err(error)
            }
        }
    }

    fn create(&mut self, db: &Database, kind: Kind) -> Result<()> {
        let name = self.new_name();
        self.define(&name.clone(), |state| {
            let table = Arc::new(TableState::new(kind));
            state.tables.insert(name.clone(), table);
            db.create_table(&name, &kind.schema()).map(drop)
        })
    }

    fn session(&mut self, db: &Database, at: usize) -> &mut Session {
        self.sessions[at].get_or_insert_with(|| Session {
            txn: db.begin(Isolation::ReadCommitted),
            changes: Changes::new(),
            savepoints: Vec::new(),
            used: BTreeSet::new(),
            counters: BTreeMap::new(),
            spoilt: false,
        })
    }

    /// Returns the row as a session sees it, and whether another session has changed it.
    fn row(&self, session: usize, name: &str, id: u64) -> (Option<Row>, bool) {
        let used = format!("{name} {id}");
        let mut others = self.sessions.iter().enumerate();
        let taken = self.is_undecided(&used)
            || others.any(|(n, other)| {
                n != session && other.as_ref().is_some_and(|o| o.used.contains(&used))
            });
        let key = (name.to_owned(), id);
        let own = self.sessions[session]
            .as_ref()
            .and_then(|session| session.changes.get(&key));
        let committed = || self.state().tables.get(name)?.rows.get(&id).copied();
        (own.copied().unwrap_or_else(committed), taken)
    }

    fn new_row(&mut self, kind: Kind, id: u64, before: Option<&Row>) -> (Row, bool) {
        self.next_code += 1;
        let code = self.plan.seed << 48 ^ self.next_code;
        let group = self.dice.below(7);
        let pad = self.dice.below(self.plan.most_pad + 1);
        let kept = before.and_then(|row| row.large);
        let keeps = kept.is_some() && self.dice.below(3) == 0;
        let large = match self.dice.below(3) {
            _ if keeps => kept,
            0 => None,
            _ => Some((code, self.dice.below(self.plan.most_large + 1))),
        };
        (Row::new(kind, id, group, code, pad, large), keeps)
    }

    /// Returns a key near a random place where a session sees a row that no other session is changing.
    fn existing(&mut self, session: usize, name: &str) -> Option<(u64, Row)> {
        let from = self.number(self.plan.most_rows * 4);
        let rows = &self.state().tables.get(name)?.rows;
        let near = rows.range(from..).chain(rows.range(..from)).take(20);
        let ids: Vec<u64> = near.map(|(&id, _)| id).collect();
        ids.into_iter().find_map(|id| {
            let (row, taken) = self.row(session, name, id);
            row.filter(|_| !taken).map(|row| (id, row))
        })
    }

    /// Returns a key at which a session can insert.
    fn free_key(&mut self, table: &Table, session: usize, name: &str) -> Result<Option<u64>> {
        let most = self.plan.most_rows;
        let rows = self.state().tables.get(name).map_or(0, |t| t.rows.len());
        if rows >= most as usize {
            return Ok(None);
        }
        for _ in 0..10 {
            let id = match self.plan.keys {
                Keys::Random => 1 + self.number(most * 4),
                Keys::Automatic => self.automatic(table, name)?,
                Keys::Ascending => {
                    let last = |state: &TableState| state.rows.keys().next_back().copied();
                    let last = self.state().tables.get(name).and_then(|t| last(t));
                    let beside = self.plan.sessions + self.undecided.len() as u32;
                    last.unwrap_or(0) + 1 + self.number(3 + 6 * beside)
                }
            };
            let (row, taken) = self.row(session, name, id);
            if row.is_none() && !taken {
                return Ok(Some(id));
            }
        }
        Ok(None)
    }

    /// Runs a statement of a session on a table; `changes` are its effects if it succeeds.
    fn statement(
        &mut self,
        db: &Database,
        at: usize,
        name: &str,
        changes: &[(u64, Option<Row>)],
        run: impl FnOnce(&mut Transaction, &Table) -> Result<()>,
    ) -> Result<()> {
        let table = db.table(name)?;
        let session = self.session(db, at);
        session.used.insert(name.to_owned());
        for (id, _) in changes {
            session.used.insert(format!("{name} {id}"));
        }
        session.txn.start_statement();
        let outcome = run(&mut session.txn, &table);
        session.txn.end_statement();
        outcome?;
        for (id, row) in changes {
            session.changes.insert((name.to_owned(), *id), *row);
        }
        Ok(())
    }

    fn insert(&mut self, db: &Database, at: usize, name: &str) -> Result<()> {
        let table = db.table(name)?;
        let kind = self.kind(name);
        let Some(id) = self.free_key(&table, at, name)? else {
            return Ok(());
        };
        let (row, _) = self.new_row(kind, id, None);
        // A bulk insert continues until the session does something else.
        let begins_bulk = id % 4 == 0;
        self.statement(db, at, name, &[(id, Some(row))], |txn, table| {
            if begins_bulk {
                txn.begin_bulk_insert(&db.table(name)?);
            }
            row.with_values(kind, id, false, |values| txn.insert(table, values))
        })?;
        if self.plan.keys == Keys::Automatic {
            let session = self.session(db, at);
            session.counters.insert(name.to_owned(), id + 1);
        }
        Ok(())
    }

    fn update(&mut self, db: &Database, at: usize, name: &str) -> Result<()> {
        let kind = self.kind(name);
        let Some((id, before)) = self.existing(at, name) else {
            return Ok(());
        };
        let key = encoded(&*db.table(name)?, id)?;
        // One update in eight moves the row to another key.
        if self.plan.keys == Keys::Random && self.dice.below(8) == 0 {
            let table = db.table(name)?;
            if let Some(to) = self.free_key(&table, at, name)? {
                let (row, keeps) = self.new_row(kind, to, Some(&before));
                let changes = [(id, None), (to, Some(row))];
                return self.statement(db, at, name, &changes, |txn, table| {
                    row.with_values(kind, to, keeps, |values| txn.update(table, &key, values))
                });
            }
        }
        let (row, keeps) = self.new_row(kind, id, Some(&before));
        self.statement(db, at, name, &[(id, Some(row))], |txn, table| {
            row.with_values(kind, id, keeps, |values| txn.update(table, &key, values))
        })
    }

    fn delete(&mut self, db: &Database, at: usize, name: &str, most: usize) -> Result<()> {
        let Some((first, _)) = self.existing(at, name) else {
            return Ok(());
        };
        let state = self.state();
        let rows = state
            .tables
            .get(name)
            .map(|table| table.rows.range(first..));
        let ids: Vec<u64> = rows
            .into_iter()
            .flatten()
            .take(most)
            .map(|r| *r.0)
            .collect();
        for id in ids {
            let (row, taken) = self.row(at, name, id);
            if row.is_none() || taken {
                continue;
            }
            self.statement(db, at, name, &[(id, None)], |txn, table| {
                txn.delete(table, &encoded(table, id)?)
            })?;
        }
        Ok(())
    }

    fn kind(&self, name: &str) -> Kind {
        let table = self.state().tables.get(name);
        table.map_or(self.plan.tables[0], |table| table.kind)
    }

    fn back_to_savepoint(&mut self, at: usize) -> Result<()> {
        let Some(session) = &mut self.sessions[at] else {
            return Ok(());
        };
        if session.savepoints.is_empty() {
            return Ok(());
        }
        let to = self.dice.below(session.savepoints.len() as u32) as usize;
        session.savepoints.truncate(to + 1);
        let (savepoint, changes) = &session.savepoints[to];
        let outcome = session.txn.rollback_to(savepoint);
        session.changes = changes.clone();
        session.spoilt = outcome.is_err();
        outcome
    }

    fn rollback(&mut self, at: usize) -> Result<()> {
        match self.sessions[at].take() {
            Some(mut session) => {
                let outcome = session.txn.rollback();
                if outcome.is_err() {
                    // The rollback can be repeated; until then its locks stay.
                    session.spoilt = true;
                    self.sessions[at] = Some(session);
                }
                outcome
            }
            None => Ok(()),
        }
    }

    fn commit(&mut self, at: usize) -> Result<()> {
        let Some(mut session) = self.sessions[at].take() else {
            return Ok(());
        };
        let mut after = self.state().clone();
        if !session.changes.is_empty() {
            after = after.after(&session.changes);
            session.raise_counters(&mut after);
        }
        self.acknowledge(after, |_| session.txn.commit())
    }
}

fn encoded(table: &Table, id: u64) -> Result<Vec<u8>> {
    table.encode_key(0, &[Value::UInt(id)])
}
