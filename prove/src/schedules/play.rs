//! One schedule: a database on a simulated disk, its sessions and its own threads, in an order decided by the seed;
//! then the check of the result.

use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::sync::Arc;

use parking_lot::Mutex;
use peregrine::os::simulated::SimulatedOs;
use peregrine::sync::schedule::{
    Passed, Strategy, {self},
};
use peregrine::sync::thread;
use peregrine::{Database, Error, Isolation, Table, Xid};

use super::disk::{check_crashed, check_purged, let_fail, DIR};
use super::model::ledger::{are, Ledger, Moved, Rows};
use super::model::links::Link;
use super::model::now::Now;
use super::model::reading::{in_order, rows, Read};
use super::model::whole::explained;
use super::plan::{is_refused, Ending, Plan, Points, OWNERS};
use super::power::{Crash, Power};
use super::session::Session;
use super::tables::{account, ACCOUNTS, ACCOUNTS_KIND, AMOUNT, OWN, SHARED, SHARED_KIND};
use super::varied::counted::Given;
use super::varied::found;
use super::varied::session::Varied;
use crate::simulated::model::Row;
use peregrine_harness::dice::Dice;
use peregrine_harness::errors_told;

/// Plays the schedule of a seed.
///
/// # Errors
/// Text that says what is wrong.
pub fn play(seed: u64) -> Result<Passed, String> {
    let outcome = Arc::new(Mutex::new(Err("no outcome".to_owned())));
    let inside = Arc::clone(&outcome);
    let passed = schedule::run(Strategy::drawn(seed), seed, move || {
        let plan = Arc::new(Plan::new(seed));
        *inside.lock() = Play::new(plan).and_then(|play| play.all());
    })?;
    let outcome = outcome.lock().clone();
    outcome.map(|()| passed)
}

/// The state that the threads of a schedule share.
pub(super) struct Play {
    pub(super) plan: Arc<Plan>,
    os: SimulatedOs,
    /// Ledgers of the sessions, of the sessions in `varied/`, and of the passing table.
    pub(super) ledgers: Arc<Vec<Ledger>>,
    pub(super) power: Arc<Power>,
    /// The state of each session.
    now: Arc<Vec<Now>>,
    /// Automatic values that sessions have reserved.
    given: Arc<Given>,
    pub(super) db: Arc<Database>,
    /// Whether a failed call left it unknown what the passing table has.
    pub(super) passing_is_unknown: AtomicBool,
}

fn engine(when: &'static str) -> impl Fn(Error) -> String {
    move |error| format!("{when}: {error}")
}

impl Play {
    /// Creates the database and its initial rows.
    fn new(plan: Arc<Plan>) -> Result<Play, String> {
        let os = SimulatedOs::new(plan.seed);
        let db = Database::open_on(Arc::new(os.clone()), DIR, plan.options());
        let db = db.map_err(engine("creating"))?;
        let ledgers = (0..plan.sessions + plan.varied + 1).map(|_| Ledger::default());
        let ledgers: Arc<Vec<Ledger>> = Arc::new(ledgers.collect());
        let play = Play {
            power: Arc::new(Power::new(&plan, 0, &os, &ledgers)),
            now: Arc::new(nothing(&plan)),
            given: Arc::default(),
            plan,
            os,
            ledgers,
            db: Arc::new(db),
            passing_is_unknown: AtomicBool::default(),
        };
        play.fill().map_err(engine("filling"))?;
        Ok(play)
    }

    fn fill(&self) -> peregrine::Result<()> {
        let (plan, db) = (&self.plan, &self.db);
        let own = db.create_table(OWN, &plan.kind.schema())?;
        let accounts = db.create_table(ACCOUNTS, &ACCOUNTS_KIND.schema())?;
        db.create_table(SHARED, &SHARED_KIND.schema())?;
        let mut txn = db.begin(Isolation::ReadCommitted);
        for id in 0..plan.accounts {
            account(id, AMOUNT).with_values(ACCOUNTS_KIND, id, false, |values| {
                txn.insert(&accounts, values)
            })?;
        }
        txn.commit()?;
        let mut dice = Dice::new(plan.seed, OWNERS * 3);
        for (session, ledger) in self.own_ledgers().iter().enumerate() {
            let mut filled = Rows::new();
            for n in 0..plan.filled.min(plan.keys) {
                let id = n * OWNERS + session as u64;
                let pad = dice.below(plan.most_pad + 1);
                let row = Row::new(plan.kind, id, dice.below(5), u64::MAX - id, pad, None);
                row.with_values(plan.kind, id, false, |values| txn.insert(&own, values))?;
                filled.insert(id, row);
            }
            txn.commit()?;
            ledger.begins(&filled, &[], &[]);
            ledger.acknowledge();
        }
        if plan.varied > 0 {
            found::create(db)?;
        }
        for ledger in &self.ledgers[self.plan.sessions as usize..] {
            ledger.begins(&Rows::new(), &[], &[]);
            ledger.acknowledge();
        }
        db.sync_log()
    }

    /// The ledgers of the sessions that have rows in [`OWN`].
    fn own_ledgers(&self) -> &[Ledger] {
        &self.ledgers[..self.plan.sessions as usize]
    }

    /// The ledgers of the sessions in `varied/`.
    fn varied_ledgers(&self) -> &[Ledger] {
        let first = self.plan.sessions as usize;
        &self.ledgers[first..first + self.plan.varied as usize]
    }

    /// Runs sessions and upkeep, then checks everything.
    fn all(self) -> Result<(), String> {
        self.run(0, self.plan.transactions)?;
        if self.plan.ending == Ending::CallFails {
            return self.after_failures();
        }
        errors_told::none()?;
        let mut crash = self.power.crash();
        self.compare(&self.db, None)?;
        self.nothing_is_left()?;
        if crash.is_none() && self.plan.ending != Ending::Closed {
            self.power.lose();
            crash = self.power.crash();
        }
        let (plan, os, ledgers) = (self.plan.clone(), self.os.clone(), self.ledgers.clone());
        self.close()?;
        errors_told::none()?;
        match crash {
            Some(crash) => Play::after(plan, ledgers, crash),
            None => {
                let play = Play::opened(plan, os, ledgers)?;
                play.compare(&play.db, None)?;
                errors_told::none()
            }
        }
    }

    /// Ends a schedule in which calls fail: stops the failures, then loses power, with the database open or after it is
    /// closed.
    fn after_failures(self) -> Result<(), String> {
        let mut dice = Dice::new(self.plan.seed, OWNERS * 4);
        self.os.heal();
        let is_open = dice.below(2) == 0;
        if is_open {
            self.power.lose();
        }
        let Play {
            plan,
            ledgers,
            power,
            db,
            ..
        } = self;
        let db = Arc::into_inner(db).ok_or("somebody still has the database")?;
        // The database may have stopped.
        let _ = db.close();
        if !is_open {
            power.lose();
        }
        let crash = power.crash().ok_or("no power was lost")?;
        Play::after(plan, ledgers, crash)
    }

    fn opened(plan: Arc<Plan>, os: SimulatedOs, ledgers: Arc<Vec<Ledger>>) -> Result<Play, String> {
        let db = Database::open_on(Arc::new(os.clone()), DIR, plan.options());
        let db = Arc::new(db.map_err(engine("opening"))?);
        found::of_one_session_are_gone(&db)?;
        let given = match plan.varied {
            0 => Given::default(),
            _ => Given::new(found::values(&db).map_err(engine("reading"))?.0),
        };
        Ok(Play {
            power: Arc::new(Power::new(&plan, 1, &os, &ledgers)),
            now: Arc::new(nothing(&plan)),
            given: Arc::new(given),
            plan,
            os,
            ledgers,
            db,
            passing_is_unknown: AtomicBool::default(),
        })
    }

    /// Opens the database after a crash.
    ///
    /// One time in three, a first recovery comes before it, in which calls may fail.
    fn recovered(
        plan: Arc<Plan>,
        os: SimulatedOs,
        ledgers: Arc<Vec<Ledger>>,
    ) -> Result<Play, String> {
        let mut dice = Dice::new(plan.seed, OWNERS * 6);
        if dice.below(3) == 0 {
            let_fail(&os, &mut dice);
            if dice.below(2) == 0 {
                Points::failing(&mut dice).set();
            }
            match Database::open_on(Arc::new(os.clone()), DIR, plan.options()) {
                // The database may have stopped.
                Ok(db) => drop(db.close()),
                Err(error) if is_refused(&error) => {}
                Err(error) => return Err(format!("recovery where a call fails: {error}")),
            }
            Points::default().set();
            os.heal();
        }
        // The errors so far come from calls or points that failed on purpose.
        let _ = errors_told::taken();
        Play::opened(plan, os, ledgers)
    }

    /// Checks the database after a crash, then continues with it.
    fn after(plan: Arc<Plan>, ledgers: Arc<Vec<Ledger>>, mut crash: Crash) -> Result<(), String> {
        check_crashed(&crash.disk)?;
        let disk = crash.disk.clone();
        let mut play = Play::recovered(plan, disk, ledgers)?;
        play.decide(&mut crash)?;
        play.compare(&play.db, Some(&crash.commits))?;
        play.compare_definitions(crash.passing)?;
        // From here on the model is what was found.
        play.ledgers = Arc::new(play.found()?);
        play.run(1, 1)?;
        play.compare(&play.db, None)?;
        play.nothing_is_left()?;
        play.close()?;
        errors_told::none()
    }

    /// Decides on each transaction that was found prepared: commit or rollback.
    ///
    /// Then the rows of its session are certain.
    fn decide(&self, crash: &mut Crash) -> Result<(), String> {
        let mut dice = Dice::new(self.plan.seed, OWNERS * 20);
        let found = self.db.prepared();
        let is_found = |xid: &Xid| found.iter().any(|prepared| prepared.xid == *xid);
        if let Some(lost) = crash.prepared.iter().find(|xid| !is_found(xid)) {
            return Err(format!("{lost:?} was prepared, and is lost"));
        }
        for prepared in &found {
            let xid = &prepared.xid;
            let commits = dice.below(3) > 0;
            match commits {
                true => self.db.commit_prepared(xid),
                false => self.db.rollback_prepared(xid),
            }
            .map_err(engine("deciding on what was prepared"))?;
            let decided = self.own_ledgers().iter().map(|l| l.decided(xid, commits));
            let (session, commit) = (0..)
                .zip(decided)
                .find_map(|(session, commit)| Some((session, commit?)))
                .ok_or_else(|| format!("{xid:?} was found prepared, and nobody prepared it"))?;
            let range: &mut Range<usize> = &mut crash.commits[session];
            if commit - usize::from(commits) < range.start {
                return Err(format!(
                    "{xid:?} was found prepared, and commit {} of session {session} must be there",
                    range.start
                ));
            }
            *range = commit..commit + 1;
        }
        Ok(())
    }

    /// Returns ledgers with the present rows of the sessions.
    fn found(&self) -> Result<Vec<Ledger>, String> {
        let (table, mut txn) = self.reader(&self.db, OWN)?;
        let found = rows(&mut txn, &table, 0, false).map_err(engine("reading"))?;
        let (shared, mut txn) = self.reader(&self.db, SHARED)?;
        let shared = rows(&mut txn, &shared, 0, false).map_err(engine("reading"))?;
        let links = shared.iter().map(|read| Link {
            key: read.id,
            from: None,
            to: Some(read.print),
        });
        let links: Vec<Link> = links.collect();
        let (accounts, mut txn) = self.reader(&self.db, ACCOUNTS)?;
        let accounts = rows(&mut txn, &accounts, 0, false).map_err(engine("reading"))?;
        let moved = accounts.iter();
        let moved = moved.map(|read| (read.id, read.group as i64 - AMOUNT as i64));
        let moved: Vec<Moved> = moved.collect();
        let of = |session: u64, before: &Ledger| -> Result<Ledger, String> {
            let mut kept = Rows::new();
            for read in found.iter().filter(|read| read.id % OWNERS == session) {
                let row = before.row_of(read);
                let row = row.ok_or_else(|| {
                    format!("row {} of session {session} is of no commit", read.id)
                })?;
                kept.insert(read.id, row);
            }
            let ledger = Ledger::default();
            // Rows of the other tables count as the first session's.
            match session {
                0 => ledger.begins(&kept, &links, &moved),
                _ => ledger.begins(&kept, &[], &[]),
            }
            ledger.acknowledge();
            Ok(ledger)
        };
        let ledgers = (0_u64..).zip(self.own_ledgers());
        let varied = (0..self.plan.varied).map(|session| {
            let ledger = found::ledger(&self.db, session);
            ledger.map_err(engine("reading"))
        });
        ledgers
            .map(|(session, before)| of(session, before))
            .chain(varied)
            .chain([self.found_passing()])
            .collect()
    }

    /// Runs all sessions, with the upkeep beside them.
    fn run(&self, life: u64, transactions: u32) -> Result<(), String> {
        self.plan.points(life).set();
        let mut threads = Vec::new();
        for number in 0..self.plan.sessions {
            let (plan, db) = (Arc::clone(&self.plan), Arc::clone(&self.db));
            let (ledgers, power) = (Arc::clone(&self.ledgers), Arc::clone(&self.power));
            let now = Arc::clone(&self.now);
            let session = move || {
                let own = &ledgers[..plan.sessions as usize];
                match Session::new(&plan, number, life, &db, own, &power, &now) {
                    Err(error) if plan.expects(&error) => Ok(()),
                    session => session.map_err(engine("opening tables"))?.run(transactions),
                }
            };
            let thread = thread::Builder::new().name("session".into()).spawn(session);
            threads.push(thread.map_err(|error| error.to_string())?);
        }
        for number in 0..self.plan.varied {
            let (plan, db) = (Arc::clone(&self.plan), Arc::clone(&self.db));
            let (ledgers, power) = (Arc::clone(&self.ledgers), Arc::clone(&self.power));
            let given = Arc::clone(&self.given);
            let session = move || {
                let ledger = &ledgers[(plan.sessions + number) as usize];
                match Varied::new(&plan, number, life, &db, &given, ledger, &power) {
                    Err(error) if plan.expects(&error) => Ok(()),
                    session => session
                        .map_err(engine("opening tables"))?
                        .run(2 * transactions),
                }
            };
            let thread = thread::Builder::new().name("varied".into()).spawn(session);
            threads.push(thread.map_err(|error| error.to_string())?);
        }
        self.upkeep(life)?;
        for thread in threads {
            thread
                .join()
                .map_err(|_| "a session panicked".to_owned())??;
        }
        Points::default().set();
        Ok(())
    }

    /// Runs the upkeep: the work that no session does.
    fn upkeep(&self, life: u64) -> Result<(), String> {
        let mut dice = Dice::new(self.plan.seed, OWNERS * 2 + life);
        if self.plan.ending == Ending::CallFails && self.plan.calls_fail && life == 0 {
            let_fail(&self.os, &mut dice);
        }
        for step in 0..=self.plan.upkeep {
            // Lets the other threads work before each step.
            let most = if self.plan.tidies { 40 } else { 400 };
            for _ in 0..dice.below(most) {
                schedule::point();
            }
            self.power.step(step);
            self.keep_up(&mut dice)?;
        }
        Ok(())
    }

    fn keep_up(&self, dice: &mut Dice) -> Result<(), String> {
        let db = &self.db;
        let chosen = match self.plan.tidies {
            true => [0, 2, 2, 2, 2, 2, 3, 4][dice.below(8) as usize],
            false => dice.below(11),
        };
        let outcome = match chosen {
            0 | 1 => db.checkpoint(),
            2 => db.purge(),
            3 => self.sync_log(),
            9 | 10 => {
                let session = dice.below(self.now.len() as u32);
                self.now[session as usize].kill();
                Ok(())
            }
            4 => {
                let _ = db.status();
                Ok(())
            }
            5 => self.statistics(),
            6 => self.make_passing(dice),
            7 => self.drop_passing(),
            _ => self.fill_passing(dice),
        };
        match outcome {
            Err(error) if self.plan.expects(&error) => Ok(()),
            other => other.map_err(engine("upkeep")),
        }
    }

    /// Syncs the log: commits acknowledged before are then durable, whatever the durability setting.
    fn sync_log(&self) -> peregrine::Result<()> {
        let before = self.ledgers.iter().map(|ledger| ledger.position().1);
        let before: Vec<usize> = before.collect();
        self.db.sync_log()?;
        for (ledger, commit) in self.ledgers.iter().zip(before) {
            ledger.is_durable(commit);
        }
        Ok(())
    }

    /// Closes the database, which purges everything, and checks it.
    fn close(self) -> Result<(), String> {
        let Play { os, db, .. } = self;
        let db = Arc::into_inner(db).ok_or("somebody still has the database")?;
        db.close().map_err(engine("closing"))?;
        check_purged(&os)
    }

    /// Checks after all transactions have ended that no lock, wait or purge backlog is left.
    fn nothing_is_left(&self) -> Result<(), String> {
        self.db.purge().map_err(engine("purging"))?;
        let status = self.db.status();
        let left = (
            status.locked_rows,
            status.lock_waits_now,
            status.purge_backlog,
        );
        match left {
            (0, 0, 0) => Ok(()),
            _ => Err(format!(
                "locked rows, waits, and ends to be purged are left: {left:?}"
            )),
        }
    }

    fn statistics(&self) -> peregrine::Result<()> {
        let table = self.db.table(OWN)?;
        table.estimate_rows();
        table.cardinality(0)?;
        table.size_bytes()?;
        table.analyze()
    }

    pub(super) fn reader(
        &self,
        db: &Database,
        name: &str,
    ) -> Result<(Arc<Table>, peregrine::Transaction), String> {
        let table = db.table(name).map_err(engine("opening a table"))?;
        Ok((table, db.begin(Isolation::RepeatableRead)))
    }

    /// Checks through all indexes that the rows are those of the ledgers, and that the amounts are right.
    fn compare(&self, db: &Database, commits: Option<&[Range<usize>]>) -> Result<(), String> {
        let (table, mut txn) = self.reader(db, OWN)?;
        let found = every_index(&mut txn, &table)?;
        let mut possible = Vec::new();
        for (session, ledger) in (0_u64..).zip(self.own_ledgers()) {
            let own = found.iter().filter(|read| read.id % OWNERS == session);
            let own: Vec<Read> = own.copied().collect();
            let (_, acknowledged) = ledger.position();
            let range = match commits {
                None => acknowledged..acknowledged + 1,
                Some(commits) => commits[session as usize].clone(),
            };
            let mut fitting: Vec<usize> = range.clone().collect();
            ledger.keep_those(&mut fitting, |rows| are(&own, rows));
            if fitting.is_empty() {
                let ids: Vec<u64> = own.iter().map(|read| read.id).collect();
                return Err(format!(
                    "rows of session {session} are {ids:?}, and not those after one of the commits {range:?}; the \
                     newest has {:?}",
                    ledger.newest().keys().collect::<Vec<_>>()
                ));
            }
            possible.push(fitting);
        }
        let (table, mut txn) = self.reader(db, SHARED)?;
        let shared = every_index(&mut txn, &table)?;
        let mut codes: Vec<u64> = shared.iter().map(|read| read.code).collect();
        codes.sort_unstable();
        codes.dedup();
        if codes.len() < shared.len() {
            return Err("a unique value is there twice".into());
        }
        let (table, mut txn) = self.reader(db, ACCOUNTS)?;
        let accounts = every_index(&mut txn, &table)?;
        explained(self.own_ledgers(), &possible, &shared, &accounts)?;
        let amounts: u64 = accounts.iter().map(|read| read.group).sum();
        let passing = commits.and_then(<[_]>::last).cloned();
        if self.plan.varied > 0 {
            let commits = commits.map(|commits| &commits[self.plan.sessions as usize..]);
            found::compare(db, self.varied_ledgers(), commits)?;
        }
        self.compare_passing(passing)?;
        match amounts == AMOUNT * self.plan.accounts {
            true => Ok(()),
            false => Err(format!("in the end amounts come to {amounts}")),
        }
    }
}

/// Returns the states of idle sessions.
fn nothing(plan: &Plan) -> Vec<Now> {
    (0..plan.sessions).map(|_| Now::default()).collect()
}

/// Returns all rows, and checks that each index has the same.
pub(super) fn every_index(
    txn: &mut peregrine::Transaction,
    table: &Arc<Table>,
) -> Result<Vec<Read>, String> {
    let first = rows(txn, table, 0, false).map_err(engine("reading"))?;
    for index in 0..=table.schema().indexes.len() {
        for backwards in [false, true] {
            let found = rows(txn, table, index, backwards).map_err(engine("reading"))?;
            if !in_order(&found, index) {
                return Err(format!("index {index}: rows twice, or out of order"));
            }
            let mut sorted = found;
            sorted.sort_unstable_by_key(|read| read.id);
            if sorted != first {
                return Err(format!("index {index} has other rows than the table"));
            }
        }
    }
    Ok(first)
}
