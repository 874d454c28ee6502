//! Losing power at every moment of many small workloads, and of the recoveries after it.
//!
//! A workload runs once; the disk is kept as it is after each write, sync and change of a name. From
//! each of these, and each kind of loss, comes the disk that a machine would find. It is checked,
//! recovered, and must have every acknowledged change and nothing else; a change whose acknowledgement
//! was on its way may be there as a whole.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use peregrine::os::simulated::{Loss, Moment, SimulatedOs};
use peregrine::Database;

use super::image::{self, Depth, Wrong, DIR};
use super::model::State;
use super::player::Player;
use super::work::share_out;
use super::workload::Plan;
use crate::error::{Result, SuiteError};
use crate::runner::interrupt;

/// One image out of so many crashes again at every moment of its recovery.
const AGAIN: u64 = 80;
/// One image out of so many is worked on after its recovery.
const GO_ON: u64 = 8;
/// Failures that are kept with their text.
const MOST_FAILURES: usize = 20;

/// What is to be proven, and how much of it.
#[derive(Clone, Debug)]
pub struct Request {
    /// At least so many crash images …
    pub images: u64,
    /// … of at least so many workloads.
    pub workloads: u64,
    /// Seed of everything.
    pub seed: u64,
    /// Length of the workloads, in percent.
    pub size: u32,
    /// Threads that work beside each other.
    pub threads: u32,
    /// Only this workload …
    pub workload: Option<u64>,
    /// … and only this moment of it.
    pub moment: Option<u64>,
    /// Stops at the first failure.
    pub stop_when_found: bool,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Workloads that ran.
    pub workloads: u64,
    /// Moments at which the power went.
    pub moments: u64,
    /// Acknowledged changes in the workloads.
    pub acknowledged: u64,
    /// Images by kind of loss; also those of crashes during a recovery.
    pub images: BTreeMap<&'static str, u64>,
    /// Those of crashes during a recovery.
    pub again: u64,
    /// Images on which work went on.
    pub went_on: u64,
    /// Rows and tables that were lost.
    pub lost: u64,
    /// Rows and tables that nobody committed.
    pub phantom: u64,
    /// Images that are wrong.
    pub wrong: u64,
    /// The first of them, with how to see them again.
    pub failures: Vec<String>,
    /// How long it took.
    pub took: Duration,
}

impl Outcome {
    /// All images.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.images.values().sum()
    }

    /// Whether nothing was wrong, and something was looked at.
    #[must_use]
    pub fn held(&self) -> bool {
        self.wrong == 0 && self.total() > 0
    }

    fn add(&mut self, other: Outcome) {
        self.workloads += other.workloads;
        self.moments += other.moments;
        self.acknowledged += other.acknowledged;
        for (loss, images) in other.images {
            *self.images.entry(loss).or_default() += images;
        }
        self.again += other.again;
        self.went_on += other.went_on;
        self.lost += other.lost;
        self.phantom += other.phantom;
        self.wrong += other.wrong;
        self.failures.extend(other.failures);
        self.failures.truncate(MOST_FAILURES);
    }

    fn note(&mut self, wrong: &Wrong, text: impl FnOnce() -> String) {
        self.wrong += 1;
        if let Wrong::Differs(difference) = wrong {
            self.lost += difference.lost;
            self.phantom += difference.phantom;
        }
        if self.failures.len() < MOST_FAILURES {
            self.failures.push(text());
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds: Vec<String> = self
            .images
            .iter()
            .map(|(loss, images)| format!("{loss} {images}"))
            .collect();
        write!(
            f,
            "{}: power loss: {} crash images of {} workloads ({} acknowledged changes, crashes after {} \
             I/Os, {} images of crashes during recovery, {} worked on afterwards; {}): {} lost, {} \
             phantom, {} images wrong; {:.0} s",
            if self.held() { "held" } else { "NOT HELD" },
            self.total(),
            self.workloads,
            self.acknowledged,
            self.moments,
            self.again,
            self.went_on,
            kinds.join(", "),
            self.lost,
            self.phantom,
            self.wrong,
            self.took.as_secs_f64()
        )
    }
}

/// Runs workloads until there are enough images.
///
/// # Errors
/// [`SuiteError::Interrupted`]; [`SuiteError::Server`] when a workload itself fails.
pub fn run(request: &Request, told: impl FnMut(&str)) -> Result<Outcome> {
    interrupt::flag();
    let begun = Instant::now();
    let all = Mutex::new(Outcome::default());
    let enough = |number: u64| match request.workload {
        _ if request.stop_when_found && all.lock().wrong > 0 => true,
        Some(_) => number > 0,
        None => number >= request.workloads && all.lock().total() >= request.images,
    };
    let work = |number: u64| {
        let number = request.workload.unwrap_or(number);
        let plan = Plan::new(request.seed, number, request.size);
        let outcome = one(&plan, request)?;
        all.lock().add(outcome);
        Ok(())
    };
    let progress = || {
        let all = all.lock();
        format!(
            "{} images of {} workloads so far, {} wrong",
            all.total(),
            all.workloads,
            all.wrong
        )
    };
    share_out(request.threads, enough, work, progress, told)?;
    let mut outcome = all.into_inner();
    outcome.took = begun.elapsed();
    Ok(outcome)
}

/// A workload that ran: the disk at every moment, and what had been acknowledged.
pub struct Played {
    /// The disk after each change of it.
    pub moments: Vec<Moment>,
    /// What was there after each acknowledged change, the first being nothing.
    pub states: Vec<State>,
}

impl Played {
    /// What may be found after a crash at a moment.
    #[must_use]
    pub fn allowed(&self, moment: &Moment) -> Vec<&State> {
        let acknowledged = (moment.note / 2) as usize;
        let last = acknowledged + (moment.note % 2) as usize;
        self.states[acknowledged..=last.min(self.states.len() - 1)]
            .iter()
            .collect()
    }
}

/// Runs a workload, keeping the disk of every moment.
///
/// # Errors
/// [`SuiteError::Server`] when a statement fails: on a disk that works none may.
pub fn play(plan: &Plan) -> Result<Played> {
    let failed = |error: peregrine::Error| {
        SuiteError::Server(format!(
            "workload {} of seed {} ({}) fails on a disk that works: {error}",
            plan.number, plan.seed, plan.family
        ))
    };
    let disk = SimulatedOs::new(plan.seed ^ plan.number << 20);
    disk.record();
    let db = Database::open_on(Arc::new(disk.clone()), DIR, plan.options()).map_err(failed)?;
    let mut note = |note| disk.set_note(note);
    let mut player = Player::new(plan, &mut note);
    player.fill(&db).map_err(failed)?;
    for _ in 0..plan.steps {
        player.step(&db).map_err(failed)?;
    }
    if plan.number % 2 == 0 {
        db.close().map_err(failed)?;
    } else {
        drop(db);
    }
    player.drop_sessions();
    let states = std::mem::take(&mut player.states);
    Ok(Played {
        moments: disk.recorded(),
        states,
    })
}

/// The kinds of loss that make a difference at a moment.
fn losses(moment: &Moment) -> &'static [Loss] {
    match moment.is_synced() {
        true => &[Loss::Nothing],
        false => &Loss::ALL,
    }
}

fn seed_of(plan: &Plan, moment: u64, loss: Loss) -> u64 {
    let mut seed = plan.seed;
    for part in [plan.number, moment, loss as u64] {
        seed = (seed ^ part)
            .wrapping_mul(0x9E37_79B9_7F4A_7C15)
            .rotate_left(29);
    }
    seed
}

fn one(plan: &Plan, request: &Request) -> Result<Outcome> {
    let (only, size) = (request.moment, request.size);
    let played = play(plan)?;
    let mut outcome = Outcome {
        workloads: 1,
        acknowledged: played.states.len() as u64 - 1,
        ..Outcome::default()
    };
    for (number, moment) in (0..).zip(&played.moments) {
        if moment.note % 2 == 1 && moment.event == peregrine::os::simulated::Event::Note {
            // The disk is as at the moment before, and more is allowed.
            continue;
        }
        if request.stop_when_found && outcome.wrong > 0 {
            break;
        }
        outcome.moments += 1;
        for &loss in losses(moment) {
            if only.is_some_and(|only| only != number) {
                continue;
            }
            if interrupt::requested() {
                return Err(SuiteError::Interrupted);
            }
            let seed = seed_of(plan, number, loss);
            let again = seed % AGAIN == 0 || only.is_some();
            let allowed = played.allowed(moment);
            let tell = |again: &str, wrong: &Wrong| {
                format!(
                    "workload {} ({}), {} after moment {number} ({:?}){again}: {wrong}\n    again: \
                     peregrine bench power-loss --seed {} --size {size} --workload {} --moment {number}",
                    plan.number,
                    plan.family,
                    loss.name(),
                    moment.event,
                    plan.seed,
                    plan.number
                )
            };
            *outcome.images.entry(loss.name()).or_default() += 1;
            let image = moment.crash(loss, seed);
            let depth = match seed / AGAIN % GO_ON == 0 || only.is_some() {
                true => Depth::GoOn,
                false => Depth::Read,
            };
            outcome.went_on += u64::from(depth == Depth::GoOn);
            if again {
                image.record();
            }
            if let Err(wrong) = image::examine(plan, &image, &allowed, depth) {
                outcome.note(&wrong, || tell("", &wrong));
                continue;
            }
            if again {
                crash_again(plan, &image, &allowed, seed, &mut outcome, &tell);
            }
        }
    }
    Ok(outcome)
}

/// Crashes at every moment of the recovery that `image` has recorded.
fn crash_again(
    plan: &Plan,
    image: &SimulatedOs,
    allowed: &[&State],
    seed: u64,
    outcome: &mut Outcome,
    tell: &dyn Fn(&str, &Wrong) -> String,
) {
    for (number, moment) in (0..).zip(&image.recorded()) {
        if moment.note == image::RECOVERED {
            break;
        }
        for (n, &loss) in (0..).zip(losses(moment)) {
            let seed = seed ^ (number << 8 | n);
            *outcome.images.entry(loss.name()).or_default() += 1;
            outcome.again += 1;
            let after = moment.crash(loss, seed);
            if let Err(wrong) = image::examine(plan, &after, allowed, Depth::Read) {
                let again = format!(
                    ", and {} after moment {number} of the recovery",
                    loss.name()
                );
                outcome.note(&wrong, || tell(&again, &wrong));
            }
        }
    }
}
