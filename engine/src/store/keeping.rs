//! Room for the next checkpoint.
//!
//! Pages are never overwritten, so a checkpoint needs room for all that it writes before it can free
//! anything, the log that it makes dispensable included. When others have filled the disk, the log above all, it must
//! find that room: so the file always has as much free space as the pages take that are newer in memory
//! than on disk. A checkpoint would take it anyway; here it is only taken earlier. What pages
//! take that are changed between two looks comes on top.

use std::sync::atomic::Ordering;

use super::extents::LONGEST;
use super::place::units_for;
use super::table::CHUNK;
use super::Store;
use crate::error::Result;
use crate::planted::{is_planted, PlantedFault};

/// Room for pages that change between two looks: for one frame in so many, at least and at most so many
/// units (1 MiB, 256 MiB).
const AT_ONCE: u64 = 32;
const LEAST: u64 = 1 << 10;
const MOST: u64 = 256 << 10;

impl Store {
    /// Sees to it that there is room for a checkpoint of `dirty` pages, and for some that become dirty soon
    /// in a pool of `frames`.
    ///
    /// # Errors
    /// [`crate::Error::NoSpace`] where the disk has not so much room: a checkpoint should begin while there
    /// is as much as before.
    pub fn keep_room(&self, dirty: u64, frames: u64) -> Result<()> {
        if is_planted(PlantedFault::NoRoomKept) {
            return Ok(());
        }
        self.writable()?;
        let soon = (frames / AT_ONCE * LONGEST).clamp(LEAST, MOST);
        let chunks = self.table.ids().div_ceil(CHUNK as u64);
        // The record grows with the number of chunks and tables.
        let record = 2 * self.durable.lock().record.1 + units_for(chunks as usize * 8);
        let parts = chunks * units_for(CHUNK * 8 + super::UNIT) + record;
        self.space.keep(dirty * LONGEST + soon + parts, &*self.file)
    }

    /// Whether a write has found no room on the disk since this was last asked.
    pub fn take_refused(&self) -> bool {
        self.refused.swap(false, Ordering::Relaxed)
    }
}
