//! Space for the next checkpoint.
//!
//! Pages are never overwritten, so a checkpoint needs space for all that it writes before it can free anything: old
//! images, and the log that it makes dispensable. It must find that space even when other files, above all the log,
//! have filled the disk. So the file always has as much free space as the dirty pages need. A checkpoint would take
//! that space anyway; the store takes it earlier.
//!
//! The pool counts how many more pages may become dirty (`PoolWithThreads::check_room`). A session that changes rows
//! waits for space, or is refused, before one page too many becomes dirty. The write of a page takes as much space as
//! was counted for it, so it does not change that number.

use crate::error::{Error, Result};
use crate::knobs;
use crate::planted::{is_planted, PlantedFault};
use crate::store::place::{units_for, UNIT};
use crate::store::space::extents::LONGEST;
use crate::store::table::CHUNK;
use crate::store::Store;
use crate::sync::atomic::Ordering;

/// How much space there is.
pub struct KeptRoom {
    /// Pages that may become dirty besides those that are; negative if there are too many now. `None` if space is not
    /// kept.
    pub more_pages: Option<i64>,
    /// Why there is less than wanted.
    pub short: Option<Error>,
}

impl Store {
    /// Keeps space for a checkpoint of `dirty` pages, and for those that soon become dirty in a pool of `frames`
    /// frames; for a quarter more pages if `many` become dirty.
    ///
    /// # Errors
    /// [`Error::Stopped`]. A full disk is no error; see [`KeptRoom::short`].
    pub fn keep_room(&self, dirty: u64, frames: u64, many: bool) -> Result<KeptRoom> {
        if is_planted(PlantedFault::NoRoomKept) {
            return Ok(KeptRoom {
                more_pages: None,
                short: None,
            });
        }
        // Not after the store is closed: another process may have the file then.
        let unguarded = is_planted(PlantedFault::KeepAfterClose);
        let _writing = (!unguarded).then(|| self.writing.read());
        self.writable()?;
        // No more pages than frames can be dirty.
        let ahead = (frames / knobs::room_ahead_part() * LONGEST)
            .clamp(knobs::least_room_ahead(), knobs::most_room_ahead())
            .min(frames * LONGEST);
        let chunks = self.table.ids().div_ceil(CHUNK as u64);
        // The record grows with the number of chunks and tables.
        let record = 2 * self.record_units.load(Ordering::Relaxed) + units_for(chunks as usize * 8);
        // If space is scarce, each chunk gets a piece as long as that of a page's image.
        debug_assert!(units_for(CHUNK * 8 + UNIT) <= LONGEST);
        let parts = chunks * LONGEST;
        let pages = match many {
            true => (dirty + dirty / 4).min(frames),
            false => dirty,
        };
        let kept = self
            .space
            .keep(pages * LONGEST + ahead + parts, record, &*self.file);
        let short = match kept {
            Ok(()) => None,
            Err(error @ Error::NoSpace { .. }) => Some(error),
            Err(error) => return Err(error),
        };
        let uncounted = parts + ahead - ahead / knobs::room_counted_part();
        let units = self.space.roomy_units() as i64 - uncounted as i64;
        let more = units / LONGEST as i64 - dirty as i64;
        // A checkpoint can't end without space for its record.
        let most = match short.is_none() || self.space.has_for_record(record) {
            true => i64::MAX,
            false => 0,
        };
        Ok(KeptRoom {
            more_pages: Some(more.min(most)),
            short,
        })
    }

    /// Gives the space behind the last image back, as no checkpoint comes any more. If the engine has stopped, the file
    /// stays as it is.
    pub fn give_room_back(&self) {
        let _none_writes = self.writing.write();
        if self.writable().is_err() {
            return;
        }
        if let Err(error) = self.space.keep_none(&*self.file) {
            tracing::warn!("{error}");
        }
    }

    /// Notes that a thread was refused space.
    pub fn note_refused(&self) {
        self.refused.store(true, Ordering::Relaxed);
    }

    /// Returns whether a thread was refused space since the last call.
    pub fn take_refused(&self) -> bool {
        self.refused.swap(false, Ordering::Relaxed)
    }
}
