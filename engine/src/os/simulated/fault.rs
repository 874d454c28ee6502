//! Calls that fail: which ones, for how long, and how.

use std::io;

use crate::random::{below, next, one_of};

/// A call to the operating system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// Reading from a file.
    Read,
    /// Writing to a file.
    Write,
    /// Reserving space.
    Allocate,
    /// Setting a file's length.
    Truncate,
    /// Creating, renaming or removing a file.
    Name,
    /// Syncing a file or a directory.
    Sync,
}

impl Call {
    /// All calls that can fail.
    pub const ALL: [Call; 6] = [
        Call::Read,
        Call::Write,
        Call::Allocate,
        Call::Truncate,
        Call::Name,
        Call::Sync,
    ];

    /// The call's name in reports and on command lines.
    pub fn name(self) -> &'static str {
        match self {
            Call::Read => "read",
            Call::Write => "write",
            Call::Allocate => "allocate",
            Call::Truncate => "truncate",
            Call::Name => "name",
            Call::Sync => "sync",
        }
    }
}

/// The operations that an injected fault hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultOn {
    /// Writes, reservations, length changes, and changes of names.
    Write,
    /// File and directory syncs.
    Sync,
    /// Reads.
    Read,
    /// Any call.
    Any,
    /// Calls of one kind.
    Only(Call),
    /// Calls that take new space, which a full disk refuses.
    Growth,
}

impl FaultOn {
    fn covers(self, call: Call, grows: bool) -> bool {
        match self {
            FaultOn::Write => !matches!(call, Call::Read | Call::Sync),
            FaultOn::Sync => call == Call::Sync,
            FaultOn::Read => call == Call::Read,
            FaultOn::Any => true,
            FaultOn::Only(only) => call == only,
            FaultOn::Growth => grows,
        }
    }
}

/// A planned fault.
#[derive(Clone, Debug)]
pub struct Fault {
    pub on: FaultOn,
    /// Calls still to be passed before the fault.
    pub after: u64,
    pub once: bool,
    /// After those, one in so many calls fails.
    pub once_in: u64,
    pub kind: io::ErrorKind,
}

impl Fault {
    /// Returns whether this call fails.
    pub fn strikes(&mut self, call: Call, grows: bool, random: &mut u64) -> bool {
        if !self.on.covers(call, grows) {
            return false;
        }
        match self.after {
            0 => self.once_in <= 1 || one_of(random, self.once_in),
            _ => {
                self.after -= 1;
                false
            }
        }
    }
}

/// The number of bytes that a failed write has written all the same.
pub fn written_in_vain(len: usize, state: &mut u64) -> usize {
    match next(state) % 4 {
        0 => below(state, len + 1) / 512 * 512,
        1 => len,
        _ => 0,
    }
}
