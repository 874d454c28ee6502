//! Bytes that a device does not return as written: flipped bits, and writes that were lost or went to another place.
//!
//! The engine must detect each such damage, or it must be harmless.

use std::fmt;
use std::path::{Path, PathBuf};

use peregrine::os::simulated::{Event, Loss, Moment, SimulatedOs};
use peregrine::os::Os;

use super::found::Found;
use super::image::{
    Wrong, {self},
};
use super::played::{play, Played};
use super::work::{prove, Findings, Outcome, Totals, Workloads};
use super::workload::Plan;
use peregrine_harness::dice::Dice;
use peregrine_harness::error::Result;

/// The number of moments of a workload at which the disk is damaged.
const MOMENTS: u32 = 12;
/// The size of a log segment's header, in bytes.
const HEADER: u64 = 4_096;
/// The number of damages of each kind at a moment.
const EACH: u32 = 12;

/// A device's fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Damage {
    /// Flips a bit.
    Flip,
    /// Loses a write, or a part of it, and returns the previous contents.
    Stale,
    /// Writes the data, or a part of it, to another place too.
    Misplaced,
}

/// The findings of a proof.
#[derive(Clone, Debug, Default)]
pub struct Damages {
    /// Flipped bits.
    pub flips: u64,
    /// Writes that the device lost.
    pub stale: u64,
    /// Writes that the device also put in another place.
    pub misplaced: u64,
    /// Damages that the engine detected.
    pub detected: u64,
    /// Damages that were harmless.
    pub harmless: u64,
    /// Damages of the log's last write.
    ///
    /// The engine can't distinguish them from a power loss before the write's sync. Whole transactions are missing at
    /// the log's end then.
    pub end_of_log: u64,
}

impl Findings for Damages {
    const NAME: &'static str = "disk faults";
    const TRIED: &'static str = "damages";

    fn add(&mut self, other: Damages) {
        self.flips += other.flips;
        self.stale += other.stale;
        self.misplaced += other.misplaced;
        self.detected += other.detected;
        self.harmless += other.harmless;
        self.end_of_log += other.end_of_log;
    }

    fn tried(&self) -> u64 {
        self.flips + self.stale + self.misplaced
    }

    fn conclusive(&self) -> bool {
        self.detected > 0
    }

    fn line(&self, totals: &Totals) -> String {
        format!(
            "{} flipped bits, {} stale and {} misplaced writes on {} workloads: {} detected, {} harmless, {} \
             undetectable by design (the end of the log, as if the power had gone earlier), {} undetected, \
             {} panics",
            self.flips,
            self.stale,
            self.misplaced,
            totals.workloads,
            self.detected,
            self.harmless,
            self.end_of_log,
            totals.wrong - totals.panics,
            totals.panics
        )
    }
}

/// Damages the disk of every workload.
///
/// # Errors
/// [`HarnessError::Interrupted`](peregrine_harness::error::HarnessError::Interrupted);
/// [`HarnessError::Server`](peregrine_harness::error::HarnessError::Server) when a workload itself fails.
pub fn run(workloads: &Workloads, told: impl FnMut(&str)) -> Result<Outcome<Damages>> {
    let look = |plan: &Plan, outcome: &mut _| one(plan, workloads, outcome);
    prove(workloads, |_| true, look, told)
}

/// A write of a workload, all of which is still in its place.
struct Written {
    /// The number of its moment.
    at: usize,
    path: PathBuf,
    offset: u64,
    len: u64,
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} at {}, {} bytes, written at moment {}",
            self.path.display(),
            self.offset,
            self.len,
            self.at
        )
    }
}

/// The workload up to a moment.
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

    /// Picks a write, or a part of it, that no later write has changed.
    fn pick(&self, dice: &mut Dice) -> Option<Written> {
        for _ in 0..40 {
            let at = dice.below(self.moments.len() as u32) as usize;
            let Event::Write(path, offset, len) = &self.moments[at].event else {
                continue;
            };
            // A whole write, or a part of a page, a sector or less.
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

    /// Returns whether the write belongs to the log, and no later write of the log proves that it was durable.
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
                    // The stream is behind the segment's header, and each of its writes begins with a mark.
                    Event::Write(path, offset, _) => synced && log(path) && *offset >= HEADER,
                    _ => false,
                })
    }
}

fn one(plan: &Plan, workloads: &Workloads, outcome: &mut Outcome<Damages>) -> Result<()> {
    let played = play(plan)?;
    let mut dice = Dice::new(plan.seed, plan.number ^ 2 << 40);
    for _ in 0..MOMENTS {
        let at = dice.below(played.moments.len() as u32) as usize;
        if played.moments[at].note % 2 == 1 || played.moments[at].note == 0 {
            continue;
        }
        for damage in [Damage::Flip, Damage::Stale, Damage::Misplaced] {
            for _ in 0..EACH {
                if !workloads.go_on(outcome)? {
                    return Ok(());
                }
                let Some(spoilt) = spoil(&played, at, damage, &mut dice) else {
                    continue;
                };
                let found = &mut outcome.findings;
                match damage {
                    Damage::Flip => found.flips += 1,
                    Damage::Stale => found.stale += 1,
                    Damage::Misplaced => found.misplaced += 1,
                }
                match image::guarded(|| judge(plan, &played, &spoilt)) {
                    Ok(Seen::Detected) => found.detected += 1,
                    Ok(Seen::Same) => found.harmless += 1,
                    Ok(Seen::EndOfLog) => found.end_of_log += 1,
                    Err(wrong) => outcome.fail(&wrong, || {
                        format!(
                            "workload {} ({}), at moment {at}: {damage:?} in {}: {wrong}\n    again: \
                             peregrine prove disk-faults {}",
                            plan.number,
                            plan.family,
                            spoilt.written,
                            workloads.again(plan)
                        )
                    }),
                }
            }
        }
    }
    Ok(())
}

/// A disk after a damage.
struct Spoilt<'a> {
    scene: Scene<'a>,
    written: Written,
    acknowledged: usize,
}

/// Does one damage at a moment, if the bytes that the dice choose would change.
fn spoil<'a>(played: &'a Played, at: usize, damage: Damage, dice: &mut Dice) -> Option<Spoilt<'a>> {
    let moment = &played.moments[at];
    let scene = Scene {
        moments: &played.moments[..=at],
        image: moment.crash(Loss::Nothing, u64::from(dice.below(u32::MAX))),
    };
    let mut written = scene.pick(dice)?;
    let path = written.path.clone();
    let before = scene
        .image
        .bytes(&path, written.offset, written.len as usize);
    match damage {
        Damage::Flip => {
            let byte = dice.below(written.len as u32);
            let flipped = before[byte as usize] ^ 1 << dice.below(8);
            written.offset += u64::from(byte);
            written.len = 1;
            scene.image.overwrite(&path, written.offset, &[flipped]);
        }
        Damage::Stale => {
            let earlier = &played.moments[written.at - 1];
            let mut stale = earlier.bytes(&path, written.offset, written.len as usize);
            stale.resize(written.len as usize, 0);
            if stale == before {
                return None;
            }
            scene.image.overwrite(&path, written.offset, &stale);
        }
        Damage::Misplaced => {
            let other = scene.pick(dice).filter(|other| other.path == path)?;
            let len = written.len.min(other.len) as usize;
            if scene.image.bytes(&path, other.offset, len) == before[..len] {
                return None;
            }
            scene.image.overwrite(&path, other.offset, &before[..len]);
            written = other;
        }
    }
    Some(Spoilt {
        scene,
        written,
        acknowledged: (moment.note / 2) as usize,
    })
}

/// The allowed effects of a damage.
enum Seen {
    Detected,
    Same,
    /// An earlier state, as if power had been lost before the log's last sync.
    EndOfLog,
}

fn judge(plan: &Plan, played: &Played, spoilt: &Spoilt<'_>) -> Result<Seen, Wrong> {
    let image = &spoilt.scene.image;
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
    let acknowledged = spoilt.acknowledged;
    let Some(difference) = found.against(&played.states[acknowledged]) else {
        return Ok(Seen::Same);
    };
    let is = |state| found.against(state).is_none();
    match played.states[..acknowledged].iter().rposition(is) {
        Some(_) if spoilt.scene.is_end_of_log(&spoilt.written) => Ok(Seen::EndOfLog),
        Some(state) => Err(Wrong::Fails(format!(
            "the state after change {state} of {acknowledged} is read"
        ))),
        None => Err(Wrong::Differs(difference)),
    }
}
