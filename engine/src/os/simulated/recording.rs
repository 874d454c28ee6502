//! What was on the disk after each call that changed it, so that one run of a program gives the
//! disks of a crash at every moment of it.

use std::path::PathBuf;
use std::sync::Arc;

use super::disk::Disk;
use super::loss::Loss;
use super::{Machine, SimulatedOs};

/// What happened to the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A file was written to: offset and length.
    Write(PathBuf, u64, u64),
    /// A file got another length.
    Length(PathBuf, u64),
    /// A file was created, renamed or removed: its name before.
    Name(PathBuf),
    /// A file or directory was synced.
    Sync(PathBuf),
    /// The program called [`SimulatedOs::set_note`].
    Note,
}

/// The disk at a moment.
#[derive(Clone, Debug)]
pub struct Moment {
    /// What had just happened.
    pub event: Event,
    /// What the program had set last by [`SimulatedOs::set_note`].
    pub note: u64,
    pub(super) disk: Disk,
    random: u64,
}

impl Moment {
    pub(super) fn new(event: Event, note: u64, disk: &Disk, random: u64) -> Moment {
        Moment {
            event,
            note,
            disk: disk.clone(),
            random,
        }
    }

    /// The disk that is found after a crash at this moment; `seed` decides what a loss takes.
    pub fn crash(&self, loss: Loss, seed: u64) -> SimulatedOs {
        SimulatedOs::of(Machine {
            used: 0,
            random: self.random ^ seed,
            ..Machine::default()
        })
        .with_disk(loss.strike(&self.disk, seed))
    }

    /// Whether all was synced: then a crash leaves the same whatever it takes.
    pub fn is_synced(&self) -> bool {
        self.disk.is_synced()
    }
}

impl SimulatedOs {
    pub(super) fn of(machine: Machine) -> SimulatedOs {
        SimulatedOs {
            machine: Arc::new(machine.into()),
            gate: Arc::default(),
            origin: crate::sync::now(),
        }
    }

    pub(super) fn with_disk(self, disk: Disk) -> SimulatedOs {
        {
            let mut machine = self.machine.lock();
            machine.used = disk.used();
            machine.disk = disk;
        }
        self
    }

    /// From now on the disk is kept as it is after each change and sync.
    pub fn record(&self) {
        let mut machine = self.machine.lock();
        let first = machine.moment(Event::Note);
        machine.recording = Some(vec![first]);
    }

    /// Ends [`SimulatedOs::record`]; returns the moments, the first being the one before any change.
    pub fn recorded(&self) -> Vec<Moment> {
        self.machine.lock().recording.take().unwrap_or_default()
    }

    /// Something that the program wants to find again in each [`Moment`], such as what it had been
    /// told by then. A recording gets a moment for it.
    pub fn set_note(&self, note: u64) {
        let mut machine = self.machine.lock();
        machine.note = note;
        machine.happened(|| Event::Note);
    }
}
