//! Bytes that a device said it had, and does not give back: flipped bits, writes that never happened or
//! went to another place. Every one must be noticed, or not matter.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use peregrine::os::simulated::{Event, Loss, Moment, SimulatedOs};
use peregrine::os::Os;

use super::found::Found;
use super::image::{self, Wrong};
use super::power_loss::{play, Played};
use super::work::share_out;
use super::workload::Plan;
use crate::error::{Result, SuiteError};
use crate::normal::queries::Dice;
use crate::runner::interrupt;

/// Failures that are kept with their text.
const MOST_FAILURES: usize = 20;
/// Moments of a workload at which the disk is damaged.
const MOMENTS: u32 = 12;
/// Bytes of a log segment's header.
const HEADER: u64 = 4_096;
/// Damages of each kind at a moment.
const EACH: u32 = 12;

/// What is to be proven, and how much of it.
#[derive(Clone, Debug)]
pub struct Request {
    /// Workloads.
    pub workloads: u64,
    /// Seed of everything.
    pub seed: u64,
    /// Length of the workloads, in percent.
    pub size: u32,
    /// Threads that work beside each other.
    pub threads: u32,
    /// Stops at the first failure.
    pub stop_when_found: bool,
}

/// What a device does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Damage {
    /// Flips a bit.
    Flip,
    /// Loses a write, or a part of it, and gives back what stood there before.
    Stale,
    /// Writes, or a part of it, to another place too.
    Misplaced,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Workloads.
    pub workloads: u64,
    /// Flipped bits.
    pub flips: u64,
    /// Writes lost by the device.
    pub stale: u64,
    /// Writes that went to another place.
    pub misplaced: u64,
    /// Damages that were noticed.
    pub detected: u64,
    /// Damages that did not matter.
    pub harmless: u64,
    /// Damages of the log's last write: they look as if the power had gone before its sync, which nobody
    /// can tell apart. Whole transactions from the log's end are missing then.
    pub end_of_log: u64,
    /// Damages that were not noticed and changed what is read.
    pub undetected: u64,
    /// Panics.
    pub panics: u64,
    /// The first of them.
    pub failures: Vec<String>,
    /// How long it took.
    pub took: Duration,
}

impl Outcome {
    /// All damages.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.flips + self.stale + self.misplaced
    }

    /// Whether nothing was overlooked, and something was damaged.
    #[must_use]
    pub fn held(&self) -> bool {
        self.held_so_far() && self.detected > 0
    }

    fn held_so_far(&self) -> bool {
        self.undetected == 0 && self.panics == 0
    }

    fn add(&mut self, other: Outcome) {
        self.workloads += other.workloads;
        self.flips += other.flips;
        self.stale += other.stale;
        self.misplaced += other.misplaced;
        self.detected += other.detected;
        self.harmless += other.harmless;
        self.end_of_log += other.end_of_log;
        self.undetected += other.undetected;
        self.panics += other.panics;
        self.failures.extend(other.failures);
        self.failures.truncate(MOST_FAILURES);
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: damage: {} flipped bits, {} stale and {} misplaced writes on {} workloads: {} detected, {} \
             harmless, {} undetectable by design (the end of the log, as if the power had gone earlier), {} \
             undetected, {} panics; {:.0} s",
            if self.held() { "held" } else { "NOT HELD" },
            self.flips,
            self.stale,
            self.misplaced,
            self.workloads,
            self.detected,
            self.harmless,
            self.end_of_log,
            self.undetected,
            self.panics,
            self.took.as_secs_f64()
        )
    }
}

/// Damages the disk of every workload.
///
/// # Errors
/// [`SuiteError::Interrupted`]; [`SuiteError::Server`] when a workload itself fails.
pub fn run(request: &Request, told: impl FnMut(&str)) -> Result<Outcome> {
    interrupt::flag();
    let begun = Instant::now();
    let all = Mutex::new(Outcome::default());
    let work = |number: u64| {
        let plan = Plan::new(request.seed, number, request.size);
        let outcome = one(&plan)?;
        all.lock().add(outcome);
        Ok(())
    };
    let progress = || {
        let all = all.lock();
        format!(
            "{} damages on {} workloads so far, {} undetected",
            all.total(),
            all.workloads,
            all.undetected
        )
    };
    let enough = |number: u64| {
        number >= request.workloads || request.stop_when_found && !all.lock().held_so_far()
    };
    share_out(request.threads, enough, work, progress, told)?;
    let mut outcome = all.into_inner();
    outcome.took = begun.elapsed();
    Ok(outcome)
}

/// A write of a workload, of which all is still where it was written.
struct Written {
    /// The number of its moment.
    at: usize,
    path: PathBuf,
    offset: u64,
    len: u64,
}

/// The part of the workload up to a moment.
struct Scene<'a> {
    moments: &'a [Moment],
    image: SimulatedOs,
}

impl Scene<'_> {
    fn touches(event: &Event, written: &Written) -> bool {
        let path = match event {
            Event::Write(path, offset, len) => {
                let apart =
                    offset + len <= written.offset || written.offset + written.len <= *offset;
                return *path == written.path && !apart;
            }
            Event::Length(path, _) | Event::Name(path) => path,
            Event::Sync(_) | Event::Note => return false,
        };
        *path == written.path
    }

    /// A write, or a part of it, that nothing has changed since.
    fn pick(&self, dice: &mut Dice) -> Option<Written> {
        for _ in 0..40 {
            let at = dice.below(self.moments.len() as u32) as usize;
            let Event::Write(path, offset, len) = &self.moments[at].event else {
                continue;
            };
            // A whole write, or what a page, a sector or less of it takes.
            let unit = [*len, 4_096, 1_024, 512][dice.below(4) as usize]
                .min(*len)
                .max(1);
            let parts = u32::try_from(len / unit).unwrap_or(u32::MAX);
            let written = Written {
                at,
                path: path.clone(),
                offset: offset + u64::from(dice.below(parts)) * unit,
                len: unit,
            };
            let later = &self.moments[at + 1..];
            if later.iter().any(|m| Scene::touches(&m.event, &written)) {
                continue;
            }
            if self.image.exists(&written.path).unwrap_or(false) {
                return Some(written);
            }
        }
        None
    }

    /// Whether it belongs to the log, and no later write of the log can say that it was durable.
    fn is_end_of_log(&self, written: &Written) -> bool {
        let log = |path: &Path| path.parent().is_some_and(|dir| dir.ends_with("log"));
        let mut synced = false;
        log(&written.path)
            && !self.moments[written.at + 1..]
                .iter()
                .any(|m| match &m.event {
                    Event::Sync(path) => {
                        synced |= *path == written.path;
                        false
                    }
                    // Behind a segment's header stands the stream, of which each write begins with a mark.
                    Event::Write(path, offset, _) => synced && log(path) && *offset >= HEADER,
                    _ => false,
                })
    }
}

fn one(plan: &Plan) -> Result<Outcome> {
    let played = play(plan)?;
    let mut outcome = Outcome {
        workloads: 1,
        ..Outcome::default()
    };
    let mut dice = Dice::new(plan.seed, plan.number ^ 2 << 40);
    for _ in 0..MOMENTS {
        let at = dice.below(played.moments.len() as u32) as usize;
        if played.moments[at].note % 2 == 1 || played.moments[at].note == 0 {
            continue;
        }
        for damage in [Damage::Flip, Damage::Stale, Damage::Misplaced] {
            for _ in 0..EACH {
                if interrupt::requested() {
                    return Err(SuiteError::Interrupted);
                }
                spoil(plan, &played, at, damage, &mut dice, &mut outcome);
            }
        }
    }
    Ok(outcome)
}

/// Does one damage at a moment and looks what becomes of it.
fn spoil(
    plan: &Plan,
    played: &Played,
    at: usize,
    damage: Damage,
    dice: &mut Dice,
    outcome: &mut Outcome,
) {
    let moment = &played.moments[at];
    let scene = Scene {
        moments: &played.moments[..=at],
        image: moment.crash(Loss::Nothing, u64::from(dice.below(u32::MAX))),
    };
    let Some(mut written) = scene.pick(dice) else {
        return;
    };
    let path = written.path.clone();
    let before = scene
        .image
        .bytes(&path, written.offset, written.len as usize);
    match damage {
        Damage::Flip => {
            outcome.flips += 1;
            let byte = dice.below(written.len as u32);
            let flipped = before[byte as usize] ^ 1 << dice.below(8);
            written = Written {
                offset: written.offset + u64::from(byte),
                len: 1,
                ..written
            };
            scene.image.overwrite(&path, written.offset, &[flipped]);
        }
        Damage::Stale => {
            let earlier = &played.moments[written.at - 1];
            let mut stale = earlier.bytes(&path, written.offset, written.len as usize);
            stale.resize(written.len as usize, 0);
            if stale == before {
                return;
            }
            outcome.stale += 1;
            scene.image.overwrite(&path, written.offset, &stale);
        }
        Damage::Misplaced => {
            let Some(other) = scene.pick(dice).filter(|other| other.path == path) else {
                return;
            };
            let len = written.len.min(other.len) as usize;
            if scene.image.bytes(&path, other.offset, len) == before[..len] {
                return;
            }
            outcome.misplaced += 1;
            scene.image.overwrite(&path, other.offset, &before[..len]);
            written = other;
        }
    }
    let acknowledged = (moment.note / 2) as usize;
    let verdict = image::guarded(|| judge(plan, &scene.image, played, acknowledged));
    let text = |what: &str| {
        format!(
            "workload {} ({}), seed {}, at moment {at}: {damage:?} in {} at {}, {} bytes, written at moment {}: \
             {what}",
            plan.number,
            plan.family,
            plan.seed,
            path.display(),
            written.offset,
            written.len,
            written.at
        )
    };
    let failure = match verdict {
        Ok(Seen::Detected) => return outcome.detected += 1,
        Ok(Seen::Same) => return outcome.harmless += 1,
        Ok(Seen::Earlier(_)) if scene.is_end_of_log(&written) => return outcome.end_of_log += 1,
        Ok(Seen::Earlier(state)) => {
            outcome.undetected += 1;
            text(&format!(
                "the state after change {state} of {acknowledged} is read"
            ))
        }
        Err(Wrong::Panics(what)) => {
            outcome.panics += 1;
            text(&format!("panics: {what}"))
        }
        Err(wrong) => {
            outcome.undetected += 1;
            text(&wrong.to_string())
        }
    };
    if outcome.failures.len() < MOST_FAILURES {
        outcome.failures.push(failure);
    }
}

/// What a damage leads to.
enum Seen {
    Detected,
    Same,
    /// The state after so many acknowledged changes, not all.
    Earlier(usize),
}

fn judge(
    plan: &Plan,
    image: &SimulatedOs,
    played: &Played,
    acknowledged: usize,
) -> Result<Seen, Wrong> {
    match image::check(image) {
        Ok(()) => {}
        Err(Wrong::Panics(what)) => return Err(Wrong::Panics(what)),
        Err(_) => return Ok(Seen::Detected),
    }
    let Ok(db) = image::open(plan, image) else {
        return Ok(Seen::Detected);
    };
    let Ok(found) = Found::read(&db) else {
        return Ok(Seen::Detected);
    };
    let Some(difference) = found.against(&played.states[acknowledged]) else {
        return Ok(Seen::Same);
    };
    let earlier = played.states[..acknowledged].iter();
    match earlier
        .rev()
        .position(|state| found.against(state).is_none())
    {
        Some(back) => Ok(Seen::Earlier(acknowledged - 1 - back)),
        None => Err(Wrong::Differs(difference)),
    }
}
