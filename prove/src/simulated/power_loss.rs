//! Power loss at every moment of many small workloads, and of the recoveries after them.
//!
//! The proof runs a workload once and keeps the disk as it is after each write, sync and change of a name. From each of
//! these moments and each kind of loss it makes the disk that a machine would find. It checks and recovers this disk,
//! which must have every acknowledged change and nothing else. A change whose acknowledgement was in progress may be
//! there as a whole.

use std::collections::BTreeMap;

use peregrine::os::simulated::{Event, Loss, Moment, SimulatedOs};

use super::image::{
    Depth, Wrong, {self},
};
use super::model::State;
use super::played;
use super::work::{prove, Findings, Outcome, Totals, Workloads};
use super::workload::Plan;
use peregrine_harness::error::Result;

/// One image in this many crashes again at every moment of its recovery.
const AGAIN: u64 = 80;
/// On one image in this many, work continues after its recovery; also on every image that a killed process left.
const GO_ON: u64 = 8;

/// The size of a proof.
#[derive(Clone, Debug)]
pub struct Request {
    /// The workloads.
    pub workloads: Workloads,
    /// The proof adds workloads until there are this many crash images.
    pub images: u64,
    /// Only this moment of each workload.
    pub moment: Option<u64>,
}

/// The findings of a proof.
#[derive(Clone, Debug, Default)]
pub struct Crashes {
    /// Moments with a power loss.
    pub moments: u64,
    /// Acknowledged changes of the workloads.
    pub acknowledged: u64,
    /// Images by kind of loss, including those of crashes during a recovery.
    pub images: BTreeMap<&'static str, u64>,
    /// Images of crashes during a recovery.
    pub again: u64,
    /// Images on which work continued.
    pub went_on: u64,
}

impl Findings for Crashes {
    const NAME: &'static str = "power loss";
    const TRIED: &'static str = "images";

    fn add(&mut self, other: Crashes) {
        self.moments += other.moments;
        self.acknowledged += other.acknowledged;
        for (loss, images) in other.images {
            *self.images.entry(loss).or_default() += images;
        }
        self.again += other.again;
        self.went_on += other.went_on;
    }

    fn tried(&self) -> u64 {
        self.images.values().sum()
    }

    fn line(&self, totals: &Totals) -> String {
        let images = self.images.iter();
        let kinds: Vec<String> = images.map(|(loss, n)| format!("{loss} {n}")).collect();
        format!(
            "{} crash images of {} workloads ({} acknowledged changes, crashes after {} I/Os, {} images of \
             crashes during recovery, {} worked on afterwards; {}): {} lost, {} phantom, {} images wrong",
            self.tried(),
            totals.workloads,
            self.acknowledged,
            self.moments,
            self.again,
            self.went_on,
            kinds.join(", "),
            totals.lost,
            totals.phantom,
            totals.wrong
        )
    }
}

/// Runs workloads until there are enough images.
///
/// # Errors
/// [`HarnessError::Interrupted`](peregrine_harness::error::HarnessError::Interrupted);
/// [`HarnessError::Server`](peregrine_harness::error::HarnessError::Server) when a workload itself fails.
pub fn run(request: &Request, told: impl FnMut(&str)) -> Result<Outcome<Crashes>> {
    let enough = |found: &Crashes| found.tried() >= request.images;
    let look = |plan: &Plan, outcome: &mut _| one(plan, request, outcome);
    prove(&request.workloads, enough, look, told)
}

/// The kinds of loss that make a difference at this moment.
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

fn one(plan: &Plan, request: &Request, outcome: &mut Outcome<Crashes>) -> Result<()> {
    let only = request.moment;
    let played = played::play(plan)?;
    outcome.findings.acknowledged = played.states.len() as u64 - 1;
    for (number, moment) in (0..).zip(&played.moments) {
        if moment.note % 2 == 1 && moment.event == Event::Note {
            // A note: the disk is the same as at the moment before, but more states are allowed.
            continue;
        }
        outcome.findings.moments += 1;
        if only.is_some_and(|only| only != number) {
            continue;
        }
        for &loss in losses(moment) {
            if !request.workloads.go_on(outcome)? {
                return Ok(());
            }
            let seed = seed_of(plan, number, loss);
            let again = seed.is_multiple_of(AGAIN) || only.is_some();
            let allowed = played.allowed(moment);
            let tell = |again: &str, wrong: &Wrong| {
                format!(
                    "workload {} ({}), {} after moment {number} ({:?}){again}: {wrong}\n    again: \
                     peregrine prove power-loss {} --moment {number}",
                    plan.number,
                    plan.family,
                    loss.name(),
                    moment.event,
                    request.workloads.again(plan)
                )
            };
            let image = moment.crash(loss, seed);
            // After a process was killed, the next one must not rely on what the killed process had not synced.
            let unsynced = loss == Loss::Nothing && !moment.is_synced();
            let chosen = (seed / AGAIN).is_multiple_of(GO_ON) || only.is_some();
            let depth = match unsynced || chosen {
                true => Depth::GoOn,
                false => Depth::Read,
            };
            *outcome.findings.images.entry(loss.name()).or_default() += 1;
            outcome.findings.went_on += u64::from(depth == Depth::GoOn);
            if again {
                image.record();
            }
            if let Err(wrong) = image::examine(plan, &image, &allowed, depth, seed) {
                outcome.fail(&wrong, || tell("", &wrong));
                continue;
            }
            if again {
                crash_again(plan, &image, &allowed, seed, outcome, &tell);
            }
        }
    }
    Ok(())
}

/// Crashes at every moment of the recovery that `image` recorded.
fn crash_again(
    plan: &Plan,
    image: &SimulatedOs,
    allowed: &[&State],
    seed: u64,
    outcome: &mut Outcome<Crashes>,
    tell: &dyn Fn(&str, &Wrong) -> String,
) {
    for (number, moment) in (0..).zip(&image.recorded()) {
        if moment.note == image::RECOVERED {
            break;
        }
        for (n, &loss) in (0..).zip(losses(moment)) {
            let seed = seed ^ (number << 8 | n);
            *outcome.findings.images.entry(loss.name()).or_default() += 1;
            outcome.findings.again += 1;
            let after = moment.crash(loss, seed);
            if let Err(wrong) = image::examine(plan, &after, allowed, Depth::Read, seed) {
                let again = format!(
                    ", and {} after moment {number} of the recovery",
                    loss.name()
                );
                outcome.fail(&wrong, || tell(&again, &wrong));
            }
        }
    }
}
