//! A workload on a disk that works: the disk at each of its moments, and what was acknowledged.

use std::sync::Arc;

use peregrine::os::simulated::{Moment, SimulatedOs};
use peregrine::Database;

use super::image::DIR;
use super::model::State;
use super::player::Player;
use super::workload::Plan;
use peregrine_harness::error::{HarnessError, Result};

/// A workload that ran: the disk at every moment, and what had been acknowledged.
pub struct Played {
    /// The disk after each change of it.
    pub moments: Vec<Moment>,
    /// The state after each acknowledged change; the first is empty.
    pub states: Vec<State>,
}

impl Played {
    /// Returns the states that may be found after a crash at a moment.
    #[must_use]
    pub fn allowed(&self, moment: &Moment) -> Vec<&State> {
        let acknowledged = (moment.note / 2) as usize;
        let last = acknowledged + (moment.note % 2) as usize;
        self.states[acknowledged..=last.min(self.states.len() - 1)]
            .iter()
            .collect()
    }
}

/// Runs a workload and keeps the disk of every moment.
///
/// # Errors
/// [`HarnessError::Server`] when a statement fails, since none may fail on a disk that works.
pub fn play(plan: &Plan) -> Result<Played> {
    let failed = |error: peregrine::Error| {
        HarnessError::Server(format!(
            "workload {} of seed {} ({}) fails on a disk that works: {error}",
            plan.number, plan.seed, plan.family
        ))
    };
    let disk = SimulatedOs::new(plan.seed ^ plan.number << 20);
    disk.record();
    let db = Database::open_on(Arc::new(disk.clone()), DIR, plan.options()).map_err(failed)?;
    let mut note = |note| disk.set_note(note);
    let mut player = Player::new(plan, &mut note);
    player.play(&db).map_err(failed)?;
    if plan.number.is_multiple_of(2) {
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
