//! A disk after a crash: opened, recovered and compared with the model.

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

/// The note (see [`SimulatedOs::set_note`]) of a recovered image.
pub const RECOVERED: u64 = 1;

/// The fault of an image.
#[derive(Clone, Debug)]
pub enum Wrong {
    /// The database does not open or can't be read, or work does not continue.
    Fails(String),
    /// The engine panicked.
    Panics(String),
    /// The structural check found a fault.
    Unsound(String),
    /// The contents are not those that were acknowledged.
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

/// How thorough the examination of an image is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// Checks and recovers the image, and compares everything with the model.
    ///
    /// Then decides the prepared transactions and compares everything again.
    Read,
    /// The same; then work continues, power is lost again without warning, and everything is compared and checked
    /// again.
    GoOn,
}

/// Examines an image and returns the index of the allowed state that it is in.
///
/// The further work on it follows from `seed`.
///
/// # Errors
/// The fault of the image.
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
        // The recording of the recovery ends here.
        image.set_note(RECOVERED);
        let found = compare(&db, allowed)?;
        match depth {
            Depth::Read => decide(plan, &db, allowed[found], seed)?,
            Depth::GoOn => go_on(plan, image, db, allowed[found], seed)?,
        }
        Ok(found)
    })
}

/// Runs `look`, and returns a panic as a fault.
///
/// # Errors
/// The fault.
pub fn guarded<R>(look: impl FnOnce() -> Result<R, Wrong>) -> Result<R, Wrong> {
    std::panic::catch_unwind(AssertUnwindSafe(look)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned()));
        Err(Wrong::Panics(text.unwrap_or_default()))
    })
}

/// Runs the structural check on the image as it is.
///
/// # Errors
/// The fault that the check finds.
pub fn check(image: &SimulatedOs) -> Result<(), Wrong> {
    let there = image.exists(&Path::new(DIR).join("data"));
    if !there.map_err(fails("looking"))? {
        // The crash came before the database was created.
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
/// The error of the opening.
pub fn open(plan: &Plan, image: &SimulatedOs) -> Result<Database, Wrong> {
    Database::open_on(Arc::new(image.clone()), DIR, plan.options()).map_err(fails("opening"))
}

/// Reads everything and returns the index of the state that it is.
///
/// Rows changed by prepared transactions must be locked.
///
/// # Errors
/// The difference from the closest state, the first of several equally close ones.
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

/// Checks that rows changed by prepared transactions are locked.
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

/// Decides the prepared transactions.
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
