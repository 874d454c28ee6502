//! Keeps the disk as it was after each call that changed it: one run of a program gives the disks of a crash at each
//! moment of the run.

use std::path::PathBuf;
use std::sync::Arc;

use super::disk::Disk;
use super::loss::Loss;
use super::{Machine, SimulatedOs};

/// A change of the disk.
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

/// The disk at one moment of a run.
#[derive(Clone, Debug)]
pub struct Moment {
    /// The latest event.
    pub event: Event,
    /// The note last set with [`SimulatedOs::set_note`].
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

    /// The disk as found after a crash at this moment; `seed` decides which unsynced changes are lost.
    pub fn crash(&self, loss: Loss, seed: u64) -> SimulatedOs {
        SimulatedOs::of(Machine {
            used: 0,
            random: self.random ^ seed,
            ..Machine::default()
        })
        .with_disk(loss.strike(&self.disk, seed))
    }

    /// Returns whether all was synced: a crash then loses nothing, whatever the kind of loss.
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

    /// From now on keeps the disk as it is after each change and sync.
    pub fn record(&self) {
        let mut machine = self.machine.lock();
        let first = machine.moment(Event::Note);
        machine.recording = Some(vec![first]);
    }

    /// Ends [`SimulatedOs::record`]; returns the moments, the first from before any change.
    pub fn recorded(&self) -> Vec<Moment> {
        self.machine.lock().recording.take().unwrap_or_default()
    }

    /// Sets a note that the program wants to find in each later [`Moment`], such as what was acknowledged to it by
    /// then. A recording gets a moment for the note.
    pub fn set_note(&self, note: u64) {
        let mut machine = self.machine.lock();
        machine.note = note;
        machine.happened(|| Event::Note);
    }
}
