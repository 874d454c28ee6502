//! The proof lets every call of a workload to the operating system fail, once or from that call on.
//!
//! It also lets the disk be full at every point where the workload needs space. It does the same while a database opens
//! that a workload has left.
//!
//! A fault may make the statement that meets it fail. It may never end the process, or lose or forge an
//! acknowledgement. If the engine stops (because it is unknown what is durable), it acknowledges nothing more, and the
//! next opening recovers. If the engine does not stop, and always when the disk was full, work continues without
//! another opening. An opening may fail; then the next one finds what was acknowledged. If an opening succeeds, the
//! next one finds the same contents.

use std::fmt;
use std::io::ErrorKind;
use std::sync::Arc;

use peregrine::os::simulated::{Call, FaultOn, Loss, Moment, SimulatedOs};
use peregrine::{Database, Error};

use super::image::{
    Depth, Wrong, DIR, {self},
};
use super::model::State;
use super::played;
use super::player::Player;
use super::work::{prove, Findings, Outcome, Totals, Workloads};
use super::workload::Plan;
use peregrine_harness::dice::Dice;
use peregrine_harness::error::{HarnessError, Result};

/// The maximum number of statements that meet a permanent fault, before the test heals the disk.
const MOST_ERRORS: u64 = 12;
/// The number of steps tried on a full disk before there is space again.
const WHILE_FULL: u32 = 4;
/// The number of moments of a workload whose disks are opened with every fault.
const OPENED: u32 = 2;

/// The size of a proof.
#[derive(Clone, Debug)]
pub struct Request {
    /// The workloads, each run with every fault.
    pub workloads: Workloads,
    /// One fault in this many (1: all).
    pub stride: u64,
}

/// A fault: the kind of call, its number, and whether only this call fails.
#[derive(Clone, Copy, Debug)]
enum Fault {
    Call { call: Call, at: u64, once: bool },
    NoSpace { at: u64 },
}

impl Fault {
    /// Returns the faults for everything done on a disk: each call and each growth.
    fn of(disk: &SimulatedOs) -> Vec<Fault> {
        let mut faults = Vec::new();
        for call in Call::ALL {
            for at in 0..disk.calls(call) {
                faults.extend([true, false].map(|once| Fault::Call { call, at, once }));
            }
        }
        faults.extend((0..disk.growths()).map(|at| Fault::NoSpace { at }));
        faults
    }

    /// Sets the fault on a disk on which nothing has been done yet.
    fn plant(self, disk: &SimulatedOs) {
        match self {
            Fault::Call { call, at, once } => {
                let on = FaultOn::Only(call);
                match once {
                    true => disk.fail_once(on, at, ErrorKind::Other),
                    false => disk.fail(on, at, ErrorKind::Other),
                }
            }
            Fault::NoSpace { at } => disk.fail(FaultOn::Growth, at, ErrorKind::StorageFull),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Call { call, at, once } => {
                let how = if *once { "once" } else { "from there on" };
                write!(f, "{} number {at} fails {how}", call.name())
            }
            Fault::NoSpace { at } => write!(f, "no space at growth number {at}"),
        }
    }
}

/// The findings of a proof.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// Runs with a failed call.
    pub io_faults: u64,
    /// Runs with a full disk.
    pub full: u64,
    /// Openings of a database with either fault.
    pub openings: u64,
    /// Openings that failed.
    pub refused: u64,
    /// Statements that failed.
    pub errors: u64,
    /// Runs in which the engine stopped and the next opening recovered.
    pub stopped: u64,
    /// Runs in which work continued without another opening.
    pub went_on: u64,
    /// Runs that ended before their fault.
    pub unmet: u64,
    /// Rollbacks that could not end before there was space again, because the pool was full of dirty pages.
    pub waited: u64,
    /// Acknowledgements after the engine had stopped.
    pub false_acknowledgements: u64,
}

impl Findings for Faults {
    const NAME: &'static str = "errors";
    const TRIED: &'static str = "runs";

    fn add(&mut self, other: Faults) {
        self.io_faults += other.io_faults;
        self.full += other.full;
        self.openings += other.openings;
        self.refused += other.refused;
        self.errors += other.errors;
        self.stopped += other.stopped;
        self.went_on += other.went_on;
        self.unmet += other.unmet;
        self.waited += other.waited;
        self.false_acknowledgements += other.false_acknowledgements;
    }

    fn tried(&self) -> u64 {
        self.io_faults + self.full + self.openings
    }

    fn conclusive(&self) -> bool {
        self.io_faults > 0 && self.full > 0 && self.openings > 0
    }

    fn line(&self, totals: &Totals) -> String {
        format!(
            "{} runs of {} workloads with an I/O error, {} with a full disk ({} statements got an error, {} \
             times the engine stopped and recovered, {} times work went on, {} rollbacks had to wait for \
             space, {} faults lay behind the end), {} openings with either ({} gave an error): {} aborts, {} \
             lost, {} phantom, {} false acknowledgements, {} runs wrong",
            self.io_faults,
            totals.workloads,
            self.full,
            self.errors,
            self.stopped,
            self.went_on,
            self.waited,
            self.unmet,
            self.openings,
            self.refused,
            totals.panics,
            totals.lost,
            totals.phantom,
            self.false_acknowledgements,
            totals.wrong
        )
    }
}

/// Runs every workload with every fault.
///
/// # Errors
/// [`HarnessError::Interrupted`]; [`HarnessError::Server`] when a workload fails without a fault.
pub fn run(request: &Request, told: impl FnMut(&str)) -> Result<Outcome<Faults>> {
    let look = |plan: &Plan, outcome: &mut _| one(plan, request, outcome);
    prove(&request.workloads, |_| true, look, told)
}

/// Returns the faults of a workload: every call that it makes, and every growth.
fn faults(plan: &Plan) -> Result<Vec<Fault>> {
    let disk = disk_of(plan);
    let failed = |error: Error| HarnessError::Server(format!("without a fault: {error}"));
    let db = Database::open_on(Arc::new(disk.clone()), DIR, plan.options()).map_err(failed)?;
    let mut note = |_| ();
    let mut player = Player::new(plan, &mut note);
    player.play(&db).map_err(failed)?;
    player.drop_sessions();
    Ok(Fault::of(&disk))
}

fn disk_of(plan: &Plan) -> SimulatedOs {
    SimulatedOs::new(plan.seed ^ plan.number << 20)
}

fn one(plan: &Plan, request: &Request, outcome: &mut Outcome<Faults>) -> Result<()> {
    for (n, fault) in (0..).zip(faults(plan)?) {
        if !(n + plan.number).is_multiple_of(request.stride.max(1)) {
            continue;
        }
        if !request.workloads.go_on(outcome)? {
            return Ok(());
        }
        let found = &mut outcome.findings;
        match fault {
            Fault::Call { .. } => found.io_faults += 1,
            Fault::NoSpace { .. } => found.full += 1,
        }
        let mut run = Run { plan, fault, found };
        if let Err(wrong) = image::guarded(|| run.all(n)) {
            outcome.fail(&wrong, || {
                format!(
                    "workload {} ({}), {fault}: {wrong}\n    again: peregrine prove io-errors {}",
                    plan.number,
                    plan.family,
                    request.workloads.again(plan)
                )
            });
        }
    }
    openings(plan, request, outcome)
}

/// Opens some disks on which the workload was cut off, with every fault.
fn openings(plan: &Plan, request: &Request, outcome: &mut Outcome<Faults>) -> Result<()> {
    let played = played::play(plan)?;
    let mut dice = Dice::new(plan.seed, plan.number ^ 1 << 42);
    for _ in 0..OPENED {
        let number = dice.below(played.moments.len() as u32);
        let moment = &played.moments[number as usize];
        let left = Left {
            plan,
            moment,
            allowed: played.allowed(moment),
            loss: Loss::ALL[dice.below(Loss::ALL.len() as u32) as usize],
            seed: plan.seed ^ u64::from(number),
        };
        for (n, fault) in (0..).zip(left.faults()?) {
            if !(n + plan.number).is_multiple_of(request.stride.max(1)) {
                continue;
            }
            if !request.workloads.go_on(outcome)? {
                return Ok(());
            }
            let found = &mut outcome.findings;
            found.openings += 1;
            if let Err(wrong) = image::guarded(|| left.opened_with(fault, n, found)) {
                outcome.fail(&wrong, || {
                    format!(
                        "workload {} ({}), opened after {} at moment {number}, {fault}: {wrong}\n    again: \
                         peregrine prove io-errors {}",
                        plan.number,
                        plan.family,
                        left.loss.name(),
                        request.workloads.again(plan)
                    )
                });
            }
        }
    }
    Ok(())
}

/// The state at which a workload is cut off.
struct Left<'a> {
    plan: &'a Plan,
    moment: &'a Moment,
    /// The states that may be found.
    allowed: Vec<&'a State>,
    loss: Loss,
    seed: u64,
}

impl Left<'_> {
    fn disk(&self) -> SimulatedOs {
        self.moment.crash(self.loss, self.seed)
    }

    /// Returns the faults of an opening.
    fn faults(&self) -> Result<Vec<Fault>> {
        let disk = self.disk();
        let opened = Database::open_on(Arc::new(disk.clone()), DIR, self.plan.options());
        let failed = |error: Error| HarnessError::Server(format!("without a fault: {error}"));
        let _db = opened.map_err(failed)?;
        Ok(Fault::of(&disk))
    }

    /// Opens the database with a fault and then without, both on the same machine and after a power loss.
    fn opened_with(&self, fault: Fault, seed: u64, found: &mut Faults) -> Result<(), Wrong> {
        let disk = self.disk();
        fault.plant(&disk);
        let opened = Database::open_on(Arc::new(disk.clone()), DIR, self.plan.options());
        let struck = disk.struck() > 0;
        disk.heal();
        let mut allowed = self.allowed.clone();
        match opened {
            Ok(db) => allowed = vec![allowed[image::compare(&db, &allowed)?]],
            Err(error) if !struck => return Err(wrong("opening, and nothing failed", &error)),
            Err(_) => found.refused += 1,
        }
        let after = disk.crash_with(Loss::ALL[(seed % Loss::ALL.len() as u64) as usize], seed);
        image::examine(self.plan, &disk, &allowed, Depth::GoOn, seed)?;
        image::examine(self.plan, &after, &allowed, Depth::Read, seed).map(drop)
    }
}

struct Run<'a> {
    plan: &'a Plan,
    fault: Fault,
    found: &'a mut Faults,
}

/// The end of a run.
enum End {
    /// The engine works.
    Works,
    /// The engine has stopped.
    Stopped,
}

fn wrong(what: &str, error: &Error) -> Wrong {
    Wrong::Fails(format!("{what}: {error}"))
}

impl Run<'_> {
    fn all(&mut self, seed: u64) -> Result<(), Wrong> {
        let disk = disk_of(self.plan);
        self.fault.plant(&disk);
        let loss = Loss::ALL[(seed % Loss::ALL.len() as u64) as usize];
        let opened = Database::open_on(Arc::new(disk.clone()), DIR, self.plan.options());
        let db = match opened {
            Ok(db) => db,
            Err(_) => {
                // Creating the database can be repeated.
                self.found.errors += 1;
                disk.heal();
                image::open(self.plan, &disk)?;
                let after = disk.crash_with(loss, seed);
                let nothing = State::default();
                return image::examine(self.plan, &after, &[&nothing], Depth::GoOn, seed).map(drop);
            }
        };
        let mut note = |_| ();
        let mut player = Player::new(self.plan, &mut note);
        let end = self.play(&disk, &db, &mut player)?;
        self.found.unmet += u64::from(disk.struck() == 0);
        disk.heal();
        let mut allowed = vec![player.state().clone()];
        match &end {
            End::Stopped => {
                self.found.stopped += 1;
                allowed.extend(player.in_doubt.clone());
                self.stays_stopped(&db, &mut player, &allowed)?;
            }
            End::Works => {
                self.found.went_on += 1;
                player
                    .roll_back_all()
                    .map_err(|error| wrong("rolling back after the fault", &error))?;
                // Purge finishes what a rollback could not, and the rows stay locked until then.
                db.purge()
                    .map_err(|error| wrong("purging after the fault", &error))?;
                image::compare(&db, &[player.state()])?;
                player
                    .go_on(&db)
                    .map_err(|error| wrong("going on after the fault", &error))?;
                image::compare(&db, &[player.state()])?;
                allowed = vec![player.state().clone()];
            }
        }
        let after = disk.crash_with(loss, seed);
        player.drop_sessions();
        drop(db);
        let allowed: Vec<&State> = allowed.iter().collect();
        image::examine(self.plan, &after, &allowed, Depth::GoOn, seed)?;
        if let End::Stopped = end {
            // The machine goes on: the next process finds the disk without what a failed sync has dropped, and loses
            // power later.
            image::examine(self.plan, &disk, &allowed, Depth::GoOn, seed)?;
        }
        Ok(())
    }

    /// Plays the workload, whether statements fail or not.
    fn play(
        &mut self,
        disk: &SimulatedOs,
        db: &Database,
        player: &mut Player<'_>,
    ) -> Result<End, Wrong> {
        let (mut met, mut left) = (0, self.plan.steps);
        let mut outcome = player.fill(db);
        loop {
            if let Err(error) = outcome {
                met += 1;
                self.found.errors += 1;
                match (&self.fault, &error) {
                    (Fault::NoSpace { .. }, Error::Stopped(_)) => {
                        return Err(wrong("a full disk stops the engine", &error));
                    }
                    (_, Error::Stopped(_)) => return Ok(End::Stopped),
                    (Fault::NoSpace { .. }, _) => self.on_full_disk(disk, db, player, &error)?,
                    // A failed sync drops pages, and a reader may see that before the engine stops. If the engine works
                    // and a checkpoint succeeds, no page was dropped, so such an error is a fault.
                    (_, Error::Corrupt { .. } | Error::Internal(_)) if db.checkpoint().is_ok() => {
                        return Err(wrong("the engine works", &error));
                    }
                    // After this many errors the test heals a permanent fault, and work must continue.
                    _ if met >= MOST_ERRORS => disk.heal(),
                    _ => {}
                }
            }
            if left == 0 {
                return Ok(End::Works);
            }
            left -= 1;
            outcome = player.step(db);
        }
    }

    /// Handles a full disk: rolls back, tries more steps, and continues when there is space.
    fn on_full_disk(
        &mut self,
        disk: &SimulatedOs,
        db: &Database,
        player: &mut Player<'_>,
        error: &Error,
    ) -> Result<(), Wrong> {
        if !matches!(error, Error::NoSpace { .. }) {
            return Err(wrong("a full disk gives another error", error));
        }
        if disk.struck() == 0 {
            return Err(wrong("no space, though the disk was not full", error));
        }
        for _ in 0..WHILE_FULL {
            match player.step(db) {
                Ok(()) => {}
                Err(Error::NoSpace { .. }) => self.found.errors += 1,
                Err(error) => return Err(wrong("on a full disk", &error)),
            }
        }
        match player.roll_back_all() {
            // The rollback needed frames, and the pool was full of dirty pages that could not be written.
            Err(Error::NoSpace { .. }) => self.found.waited += 1,
            outcome => outcome.map_err(|error| wrong("rolling back on a full disk", &error))?,
        }
        disk.heal();
        player
            .roll_back_all()
            .map_err(|error| wrong("rolling back when there is space again", &error))?;
        // Purge finishes what a rollback could not, and the rows stay locked until then.
        db.purge()
            .map_err(|error| wrong("purging when there is space again", &error))?;
        image::compare(db, &[player.state()]).map(drop)
    }

    /// Checks that the stopped engine acknowledges nothing more, though the disk works again, and that its reads are
    /// right.
    fn stays_stopped(
        &mut self,
        db: &Database,
        player: &mut Player<'_>,
        allowed: &[State],
    ) -> Result<(), Wrong> {
        let allowed: Vec<&State> = allowed.iter().collect();
        player.drop_sessions();
        if let Ok(found) = super::found::Found::read(db) {
            let differs = allowed.iter().map(|state| found.against(state));
            if let Some(Some(difference)) = differs.min_by_key(Option::is_some) {
                return Err(Wrong::Differs(difference));
            }
        }
        let before = player.acknowledged();
        let outcome = player.go_on(db);
        player.drop_sessions();
        if outcome.is_ok() || player.acknowledged() > before {
            self.found.false_acknowledgements += 1;
            return Err(Wrong::Fails(
                "a commit was acknowledged after the engine had stopped".to_owned(),
            ));
        }
        Ok(())
    }
}
