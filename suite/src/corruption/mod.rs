//! Damage of every kind, done on purpose: each must be found, and must not reach further than it has
//! to.
//!
//! A database in memory, crashed in the middle of work, is damaged one fault at a time: every bit of
//! sampled parts of each kind is flipped; writes are lost, so that something old stands there;
//! writes go to the wrong place. After each the part is read as the engine reads it. For some of the
//! faults the whole database is opened, checked and dumped too, and what comes out compared with what
//! must be there.

pub mod disk;
pub mod flips;
pub mod outcome;
pub mod planted;
pub mod world;

use peregrine::dump::Dump;
use peregrine::store::Store;

pub use outcome::Outcome;

use crate::error::{Result, SuiteError};
use crate::runner::interrupt;

/// What to do.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// How many parts of each kind are damaged bit by bit.
    pub samples: usize,
    /// How many parts of each kind are damaged with a look at the whole database.
    pub planted: usize,
    /// Of the content, and of which parts are taken.
    pub seed: u64,
}

/// The engine's errors where none must be.
pub(crate) fn unexpected(error: &peregrine::Error) -> SuiteError {
    SuiteError::Server(format!("the engine, without any damage: {error}"))
}

/// Damages, and counts what was found.
///
/// # Errors
/// [`SuiteError::Interrupted`]; errors of the engine where nothing is damaged.
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
        return Err(SuiteError::Interrupted);
    }
    Ok(())
}

/// `most` of the items, spread by the seed over all of them.
fn sampled<T: Clone>(items: &[T], most: usize, seed: u64) -> Vec<T> {
    if items.len() <= most {
        return items.to_vec();
    }
    let offset = seed as usize % items.len();
    (0..most)
        .map(|n| items[(offset + n * items.len() / most) % items.len()].clone())
        .collect()
}

/// Opens the store of a disk to look at it.
fn store(disk: &disk::Disk) -> peregrine::Result<Store> {
    Ok(Store::open_read_only(disk.os(), world::dir())?.0)
}

/// Opens a disk's database to dump it.
fn dump(disk: &disk::Disk) -> peregrine::Result<Dump> {
    Dump::open_on(disk.os(), world::dir())
}
