//! A disk as a crash left it: opened, recovered, and compared with what must be there.

use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::Arc;

use peregrine::check::{check_on, Report};
use peregrine::os::simulated::SimulatedOs;
use peregrine::os::Os;
use peregrine::{Database, Error, Isolation, RowLock, Value};

use super::found::{Difference, Found};
use super::model::State;
use super::player::Player;
use super::workload::Plan;

/// The database's directory on the simulated disk.
pub const DIR: &str = "/db";

/// The note (see [`SimulatedOs::set_note`]) of an image that has been recovered.
pub const RECOVERED: u64 = 1;

/// What is wrong with an image.
#[derive(Clone, Debug)]
pub enum Wrong {
    /// It does not open, or can't be read, or work does not go on.
    Fails(String),
    /// The engine panicked.
    Panics(String),
    /// The structural check found something.
    Unsound(String),
    /// What is there is not what was acknowledged.
    Differs(Difference),
}

impl std::fmt::Display for Wrong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Wrong::Fails(what) => write!(f, "fails: {what}"),
            Wrong::Panics(what) => write!(f, "panics: {what}"),
            Wrong::Unsound(what) => write!(f, "unsound: {what}"),
            Wrong::Differs(difference) => write!(
                f,
                "{} lost, {} phantom, {} not as their indexes: {}",
                difference.lost, difference.phantom, difference.unsound, difference.first
            ),
        }
    }
}

/// How closely an image is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// The check, recovery, everything read and compared; what is prepared is decided, and all compared
    /// once more.
    Read,
    /// Then work goes on, the power goes again without a warning, and all is compared and checked
    /// once more.
    GoOn,
}

/// Looks at an image; returns which of the states that are allowed was found. What is done with it then
/// follows from `seed`.
///
/// # Errors
/// What is wrong.
pub fn examine(
    plan: &Plan,
    image: &SimulatedOs,
    allowed: &[&State],
    depth: Depth,
    seed: u64,
) -> Result<usize, Wrong> {
    guarded(|| {
        check(image)?;
        let db = open(plan, image)?;
        // A recording of the recovery ends here.
        image.set_note(RECOVERED);
        let found = compare(&db, allowed)?;
        match depth {
            Depth::Read => decide(plan, &db, allowed[found], seed)?,
            Depth::GoOn => go_on(plan, image, db, allowed[found], seed)?,
        }
        Ok(found)
    })
}

/// Runs something in which a panic is one more thing that is wrong.
///
/// # Errors
/// What is wrong.
pub fn guarded<R>(look: impl FnOnce() -> Result<R, Wrong>) -> Result<R, Wrong> {
    std::panic::catch_unwind(AssertUnwindSafe(look)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned()));
        Err(Wrong::Panics(text.unwrap_or_default()))
    })
}

/// The structural check of the image as it is.
///
/// # Errors
/// What it found.
pub fn check(image: &SimulatedOs) -> Result<(), Wrong> {
    let there = image.exists(&Path::new(DIR).join("data"));
    if !there.map_err(fails("looking"))? {
        // Its creation did not come so far.
        return Ok(());
    }
    let mut report = Report::default();
    check_on(Arc::new(image.clone()), DIR, &mut report).map_err(fails("checking"))?;
    match report.problems.first() {
        None => Ok(()),
        Some(problem) => Err(Wrong::Unsound(problem.clone())),
    }
}

/// Opens the database.
///
/// # Errors
/// Why it does not open.
pub fn open(plan: &Plan, image: &SimulatedOs) -> Result<Database, Wrong> {
    Database::open_on(Arc::new(image.clone()), DIR, plan.options()).map_err(fails("opening"))
}

/// Reads everything; returns which of the states it is. What prepared transactions have changed must be
/// locked.
///
/// # Errors
/// How it differs from the first of them that it is closest to.
pub fn compare(db: &Database, allowed: &[&State]) -> Result<usize, Wrong> {
    let found = Found::read(db).map_err(fails("reading"))?;
    let mut closest: Option<Difference> = None;
    for (n, state) in allowed.iter().enumerate() {
        match found.against(state) {
            None => return locked(db, state).map(|()| n),
            Some(difference) => {
                let total = |d: &Difference| d.lost + d.phantom + d.unsound;
                if closest
                    .as_ref()
                    .is_none_or(|c| total(&difference) < total(c))
                {
                    closest = Some(difference);
                }
            }
        }
    }
    Err(Wrong::Differs(closest.unwrap_or_default()))
}

/// That what prepared transactions have changed is locked.
fn locked(db: &Database, state: &State) -> Result<(), Wrong> {
    for (xid, changes) in &state.prepared {
        for (name, id) in changes.keys() {
            let table = db.table(name).map_err(fails("looking for a table"))?;
            let key = table.encode_key(0, &[Value::UInt(*id)]);
            let key = key.map_err(fails("looking for a row"))?;
            let mut other = db.begin(Isolation::ReadCommitted);
            match other.get_locked(&table, &key, RowLock::Exclusive, |_| ()) {
                Err(Error::LockNotAvailable) => {}
                Err(error) => return Err(fails("locking a row")(error)),
                Ok(_) => {
                    return Err(Wrong::Fails(format!(
                        "prepared transaction {xid} has changed row {id} of table {name}, which is not locked"
                    )))
                }
            }
        }
    }
    Ok(())
}

/// Decides what is prepared.
fn decide(plan: &Plan, db: &Database, found: &State, seed: u64) -> Result<(), Wrong> {
    if found.prepared.is_empty() {
        return Ok(());
    }
    let mut note = |_| ();
    let mut player = Player::new(plan, &mut note);
    player.resume(found.clone(), seed);
    player.decide_all(db).map_err(fails("deciding"))?;
    compare(db, &[player.state()]).map(drop)
}

fn go_on(
    plan: &Plan,
    image: &SimulatedOs,
    db: Database,
    found: &State,
    seed: u64,
) -> Result<(), Wrong> {
    let mut note = |_| ();
    let mut player = Player::new(plan, &mut note);
    player.resume(found.clone(), seed);
    player.go_on(&db).map_err(fails("going on"))?;
    compare(&db, &[player.state()])?;
    let after = image.crash_with(peregrine::os::simulated::Loss::Everything, 0);
    player.drop_sessions();
    drop(db);
    check(&after)?;
    let db = open(plan, &after)?;
    compare(&db, &[player.state()])?;
    decide(plan, &db, player.state(), !seed)
}

fn fails(when: &'static str) -> impl Fn(Error) -> Wrong {
    move |error| Wrong::Fails(format!("{when}: {error}"))
}
