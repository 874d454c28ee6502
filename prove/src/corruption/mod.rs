//! Deliberate damage of every kind: the engine must find each fault and contain it.
//!
//! The database is in memory and has crashed in the middle of work. The tests damage it by one fault at a time: they
//! flip every bit of sampled parts of each kind, undo writes so that old bytes remain, and put writes in the wrong
//! place. After each fault they read the part as the engine reads it. For some faults they also open, check and dump
//! the whole database, and compare the rows with the expected ones.

pub mod disk;
pub mod flips;
pub mod outcome;
pub mod planted;
pub mod world;

use peregrine::dump::Dump;
use peregrine::store::Store;

pub use outcome::Outcome;

use peregrine_harness::error::{HarnessError, Result};
use peregrine_harness::interrupt;

/// A request for damage.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// How many parts of each kind are damaged bit by bit.
    pub samples: usize,
    /// How many parts of each kind are damaged with a test of the whole database.
    pub planted: usize,
    /// The seed of the content, and of the choice of parts.
    pub seed: u64,
}

/// Turns an error of the engine on undamaged data into the harness's error.
pub(crate) fn unexpected(error: &peregrine::Error) -> HarnessError {
    HarnessError::Server(format!("the engine, without any damage: {error}"))
}

/// Damages the database and counts the faults found.
///
/// # Errors
/// [`HarnessError::Interrupted`]; errors of the engine on undamaged data.
pub fn run(request: &Request, told: impl Fn(&str) + Sync) -> Result<Outcome> {
    told("making a database, and crashing it");
    let world = world::make(request.seed)?;
    let mut outcome = Outcome::new(request.seed);
    planted::sound(&world)?;
    flips::run(request, &world, &told, &mut outcome)?;
    planted::run(request, &world, &told, &mut outcome)?;
    Ok(outcome)
}

fn interrupted() -> Result<()> {
    if interrupt::requested() {
        return Err(HarnessError::Interrupted);
    }
    Ok(())
}

/// Returns up to `most` of the items, spread evenly over all of them, from an offset that the seed gives.
fn sampled<T: Clone>(items: &[T], most: usize, seed: u64) -> Vec<T> {
    if items.len() <= most {
        return items.to_vec();
    }
    let offset = seed as usize % items.len();
    (0..most)
        .map(|n| items[(offset + n * items.len() / most) % items.len()].clone())
        .collect()
}

/// Opens the store of a disk read-only.
fn store(disk: &disk::Disk) -> peregrine::Result<Store> {
    Ok(Store::open_read_only(disk.os(), world::dir())?.0)
}

/// Opens a disk's database for a dump.
fn dump(disk: &disk::Disk) -> peregrine::Result<Dump> {
    Dump::open_on(disk.os(), world::dir())
}
