//! Interleaved transactions in one thread against a model: what each may do, and what each sees.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use proptest::prelude::*;

use super::fixture::{get, scan, try_delete, try_put, Fixture};
use crate::knobs;
use crate::lock::LockMode;
use crate::settings::Isolation;
use crate::txn::{Delete, LockRow, Put, PutMode, Savepoint, TreeTransaction};

const SESSIONS: usize = 5;
const KEYS: u8 = 10;

#[derive(Clone, Debug)]
enum Step {
    Put(u8, u16, PutMode),
    Delete(u8),
    Lock(u8, LockMode),
    Read(u8),
    Scan,
    Savepoint,
    RollbackTo(usize),
    Commit,
    Rollback,
    Purge,
}

fn steps() -> impl Strategy<Value = (usize, Step)> {
    let mode = prop_oneof![
        Just(PutMode::Insert),
        Just(PutMode::Update),
        Just(PutMode::Upsert)
    ];
    let lock = prop_oneof![Just(LockMode::Shared), Just(LockMode::Exclusive)];
    let step = prop_oneof![
        8 => (0..KEYS, any::<u16>(), mode).prop_map(|(k, v, m)| Step::Put(k, v, m)),
        4 => (0..KEYS).prop_map(Step::Delete),
        2 => (0..KEYS, lock).prop_map(|(k, m)| Step::Lock(k, m)),
        4 => (0..KEYS).prop_map(Step::Read),
        2 => Just(Step::Scan),
        2 => Just(Step::Savepoint),
        2 => (0..4usize).prop_map(Step::RollbackTo),
        3 => Just(Step::Commit),
        1 => Just(Step::Rollback),
        2 => Just(Step::Purge),
    ];
    (0..SESSIONS, step)
}

/// Payloads of very different lengths, so that leaves split, freeze and merge.
fn payload(value: u16) -> Vec<u8> {
    let len = if value % 7 == 0 {
        2500
    } else {
        2 + value as usize % 40
    };
    value
        .to_le_bytes()
        .iter()
        .copied()
        .cycle()
        .take(len)
        .collect()
}

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// A row, or none.
type Row = Option<Vec<u8>>;

/// The committed history: for each key, the commits that changed it and the row after each.
#[derive(Default)]
struct History {
    commits: u64,
    keys: HashMap<u8, Vec<(u64, Row)>>,
}

impl History {
    fn at(&self, key: u8, commit: u64) -> Option<&Vec<u8>> {
        let versions = self.keys.get(&key)?;
        let (_, row) = versions.iter().rev().find(|(at, _)| *at <= commit)?;
        row.as_ref()
    }

    fn last_change(&self, key: u8) -> u64 {
        let last = self.keys.get(&key).and_then(|versions| versions.last());
        last.map_or(0, |(at, _)| *at)
    }
}

/// A model transaction.
struct Session {
    txn: TreeTransaction,
    snapshot: Option<u64>,
    /// The transaction's own writes: the newest state by key.
    own: BTreeMap<u8, Row>,
    savepoints: Vec<(Savepoint, BTreeMap<u8, Row>)>,
}

struct World {
    fixture: Fixture,
    history: History,
    sessions: Vec<Session>,
    /// Explicit locks: key → holders.
    locks: HashMap<u8, Vec<(usize, LockMode)>>,
}

impl World {
    fn new() -> World {
        let fixture = Fixture::new();
        if !knobs::SHAKEN {
            // Pruning must not remove the record of a change under a snapshot.
            fixture.transactions.pruning.pace.lock().old = Duration::MAX;
        }
        let sessions = (0..SESSIONS)
            .map(|i| Session {
                txn: fixture.begin(if i == 0 {
                    Isolation::ReadCommitted
                } else {
                    Isolation::RepeatableRead
                }),
                snapshot: None,
                own: BTreeMap::new(),
                savepoints: Vec::new(),
            })
            .collect();
        World {
            fixture,
            history: History::default(),
            sessions,
            locks: HashMap::new(),
        }
    }

    /// Returns what session `who` sees of `key`.
    fn sees(&self, who: usize, key: u8) -> Row {
        let session = &self.sessions[who];
        match session.own.get(&key) {
            Some(row) => row.clone(),
            None => {
                let snapshot = session.snapshot.unwrap_or(self.history.commits);
                self.history.at(key, snapshot).cloned()
            }
        }
    }

    fn newest(&self, who: usize, key: u8) -> Row {
        match self.sessions[who].own.get(&key) {
            Some(row) => row.clone(),
            None => self.history.at(key, self.history.commits).cloned(),
        }
    }

    fn other_writer(&self, who: usize, key: u8) -> bool {
        (0..SESSIONS).any(|i| i != who && self.sessions[i].own.contains_key(&key))
    }

    fn other_holder(&self, who: usize, key: u8) -> bool {
        let holders = self.locks.get(&key);
        holders.is_some_and(|holders| holders.iter().any(|(i, _)| *i != who))
    }

    /// Returns whether others have changed a row since the snapshot.
    ///
    /// If there was no row then and there is none at present, pruning may have removed the record of the change (with
    /// random knobs). The change then counts if the engine has `told` of it.
    fn changed(&self, who: usize, key: u8, told: bool) -> bool {
        let session = &self.sessions[who];
        let is_there = |at| self.history.at(key, at).is_some();
        !session.own.contains_key(&key)
            && session.snapshot.is_some_and(|snapshot| {
                self.history.last_change(key) > snapshot
                    && (told
                        || !knobs::SHAKEN
                        || is_there(snapshot)
                        || is_there(self.history.commits))
            })
    }

    fn wrote(&mut self, who: usize, key: u8, row: Row) {
        self.sessions[who].own.insert(key, row);
        // A transaction that writes a row which it has locked holds it exclusively, also after a rollback to a
        // savepoint.
        let mut holders = self.locks.get_mut(&key).into_iter().flatten();
        if let Some(held) = holders.find(|(i, _)| *i == who) {
            held.1 = LockMode::Exclusive;
        }
    }

    fn end(&mut self, who: usize) {
        let session = &mut self.sessions[who];
        session.snapshot = None;
        session.own.clear();
        session.savepoints.clear();
        for holders in self.locks.values_mut() {
            holders.retain(|(i, _)| *i != who);
        }
    }

    fn step(&mut self, who: usize, step: &Step) {
        let tree = self.fixture.tree.clone();
        let read_committed = who == 0;
        let session = &mut self.sessions[who];
        match step {
            Step::Put(..) | Step::Delete(_) | Step::Lock(..) => session.txn.start_statement(),
            Step::Read(_) | Step::Scan => {
                session.txn.start_statement();
                if !read_committed && session.snapshot.is_none() {
                    session.snapshot = Some(self.history.commits);
                }
            }
            _ => {}
        }
        match step {
            Step::Put(key, value, mode) => {
                let bytes = payload(*value);
                let done = try_put(&mut session.txn, &tree, &[*key], &bytes, *mode).unwrap();
                let live = self.newest(who, *key).is_some();
                let refused = match mode {
                    PutMode::Insert if live => Some(Put::Duplicate),
                    PutMode::Update if !live => Some(Put::Missing),
                    _ => None,
                };
                if self.other_writer(who, *key) {
                    assert!(matches!(done, Put::Conflict(_)), "{done:?}");
                } else if self.changed(who, *key, done == Put::Changed)
                    && refused != Some(Put::Duplicate)
                {
                    assert_eq!(done, Put::Changed);
                } else if let Some(refused) = refused {
                    assert_eq!(done, refused);
                } else if !self.sessions[who].own.contains_key(key) && self.other_holder(who, *key)
                {
                    assert!(matches!(done, Put::Conflict(_)), "{done:?}");
                } else {
                    assert_eq!(done, Put::Done { replaced: live });
                    self.wrote(who, *key, Some(bytes));
                }
            }
            Step::Delete(key) => {
                let done = try_delete(&mut session.txn, &tree, &[*key]).unwrap();
                let live = self.newest(who, *key).is_some();
                if self.other_writer(who, *key) {
                    assert!(matches!(done, Delete::Conflict(_)), "{done:?}");
                } else if self.changed(who, *key, done == Delete::Changed) {
                    assert_eq!(done, Delete::Changed);
                } else if !live {
                    assert_eq!(done, Delete::Missing);
                } else if !self.sessions[who].own.contains_key(key) && self.other_holder(who, *key)
                {
                    assert!(matches!(done, Delete::Conflict(_)), "{done:?}");
                } else {
                    assert_eq!(done, Delete::Done);
                    self.wrote(who, *key, None);
                }
            }
            Step::Lock(key, mode) => {
                let done = session.txn.try_lock_row(&tree, &[*key], *mode).unwrap();
                self.locked(who, *key, *mode, done);
            }
            Step::Read(key) => {
                let got = get(&mut session.txn, &tree, &[*key]);
                assert_eq!(got, self.sees(who, *key));
            }
            Step::Scan => {
                let view = session.txn.view();
                let got = scan(&session.txn, &tree, &view);
                let expected: Rows = (0..KEYS)
                    .filter_map(|key| Some((vec![key], self.sees(who, key)?)))
                    .collect();
                assert_eq!(got, expected);
            }
            Step::Savepoint => {
                let savepoint = session.txn.savepoint();
                session.savepoints.push((savepoint, session.own.clone()));
            }
            Step::RollbackTo(which) => {
                if *which < session.savepoints.len() {
                    session.savepoints.truncate(which + 1);
                    let (savepoint, own) = session.savepoints[*which].clone();
                    session.txn.rollback_to(&savepoint).unwrap();
                    let undone = std::mem::replace(&mut session.own, own);
                    let newest = self.history.commits;
                    for key in undone.into_keys() {
                        let still = self.sessions[who].own.contains_key(&key);
                        if !still && self.history.at(key, newest).is_some() {
                            let holders = self.locks.entry(key).or_default();
                            holders.retain(|(i, _)| *i != who);
                            holders.push((who, LockMode::Exclusive));
                        }
                    }
                }
            }
            Step::Commit => {
                session.txn.commit().unwrap();
                if !session.own.is_empty() {
                    self.history.commits += 1;
                    let at = self.history.commits;
                    for (key, row) in std::mem::take(&mut session.own) {
                        self.history.keys.entry(key).or_default().push((at, row));
                    }
                }
                self.end(who);
            }
            Step::Rollback => {
                session.txn.rollback().unwrap();
                self.end(who);
            }
            Step::Purge => {
                self.fixture.transactions.purge_step().unwrap();
            }
        }
        if read_committed {
            self.sessions[who].txn.end_statement();
        }
    }

    fn locked(&mut self, who: usize, key: u8, mode: LockMode, done: LockRow) {
        let own = self.sessions[who].own.contains_key(&key);
        if self.other_writer(who, key) {
            assert!(matches!(done, LockRow::Conflict(_)), "{done:?}");
            return;
        }
        if own {
            assert_eq!(done, LockRow::Done);
            return;
        }
        if self.changed(who, key, done == LockRow::Changed) {
            assert_eq!(done, LockRow::Changed);
            return;
        }
        let holders = self.locks.entry(key).or_default();
        let mine = holders.iter().find(|(i, _)| *i == who);
        let mut others = holders.iter().filter(|(i, _)| *i != who);
        let granted = match (mine, mode) {
            (Some((_, LockMode::Exclusive)), _) | (Some(_), LockMode::Shared) => true,
            (_, LockMode::Exclusive) => others.next().is_none(),
            (None, LockMode::Shared) => others.all(|(_, held)| *held == LockMode::Shared),
        };
        if !granted {
            assert!(matches!(done, LockRow::Conflict(_)), "{done:?}");
            return;
        }
        assert_eq!(done, LockRow::Done);
        match holders.iter_mut().find(|(i, _)| *i == who) {
            Some(held) if mode == LockMode::Exclusive => held.1 = mode,
            Some(_) => {}
            None => holders.push((who, mode)),
        }
    }

    /// Ends all transactions; only the newest rows must remain.
    fn finish(mut self) {
        for who in 0..SESSIONS {
            self.step(who, &Step::Scan);
            self.step(who, &Step::Commit);
        }
        self.fixture.purge();
        let records = self.fixture.records(&self.fixture.tree);
        assert!(records.iter().all(|(_, header, _)| !header.deleted));
        let rows: Rows = records
            .into_iter()
            .map(|(key, _, row)| (key, row))
            .collect();
        let expected: Rows = (0..KEYS)
            .filter_map(|key| Some((vec![key], self.newest(0, key)?)))
            .collect();
        assert_eq!(rows, expected);
        let stats = self.fixture.transactions.stats();
        assert_eq!((stats.unpurged, stats.locked_rows), (0, 0));
        self.fixture.transactions.give_back().unwrap();
        assert_eq!(self.fixture.transactions.stats().undo_pages, 0);
    }
}

fn play(steps: &[(usize, Step)]) {
    let mut world = World::new();
    for (who, step) in steps {
        world.step(*who, step);
    }
    world.finish();
}

#[test]
fn lock_of_absent_row_stays_exclusive_when_its_insert_is_taken_back() {
    let shared = Step::Lock(1, LockMode::Shared);
    play(&[
        (0, Step::Savepoint),
        (0, shared.clone()),
        (0, Step::Put(1, 0, PutMode::Upsert)),
        (0, Step::RollbackTo(0)),
        (1, shared),
    ]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]
    #[test]
    fn interleaved_transactions_agree_with_the_model(
        steps in proptest::collection::vec(steps(), 1..250),
    ) {
        play(&steps);
    }
}
