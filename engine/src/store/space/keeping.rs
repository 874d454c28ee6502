//! Room for the next checkpoint.
//!
//! Pages are never overwritten, so a checkpoint needs room for all that it writes before it can free
//! anything, the log that it makes dispensable included. When others have filled the disk, the log above all, it must
//! find that room: so the file always has as much free space as the pages take that are newer in memory
//! than on disk. A checkpoint would take it anyway; here it is only taken earlier.
//!
//! The pool counts how many more pages may become newer (`PoolWithThreads::check_room`): who changes rows has to wait for
//! room, or is refused, before there would be one too many. Writing a page takes as much as it was counted for, and
//! so changes nothing about that number.

use crate::error::{Error, Result};
use crate::knobs;
use crate::planted::{is_planted, PlantedFault};
use crate::store::place::{units_for, UNIT};
use crate::store::space::extents::LONGEST;
use crate::store::table::CHUNK;
use crate::store::Store;
use crate::sync::atomic::Ordering;

/// What room there is.
pub struct KeptRoom {
    /// For so many more pages, than are newer in memory now, or for fewer; `None` where that is not looked after.
    pub more_pages: Option<i64>,
    /// Why there is not as much as wanted.
    pub short: Option<Error>,
}

impl Store {
    /// Sees to it that there is room for a checkpoint of `dirty` pages, and for some that become so
    /// soon in a pool of `frames`; a quarter as much again, where they become `many`.
    ///
    /// # Errors
    /// [`Error::Stopped`]. That the disk has no room is none.
    pub fn keep_room(&self, dirty: u64, frames: u64, many: bool) -> Result<KeptRoom> {
        if is_planted(PlantedFault::NoRoomKept) {
            return Ok(KeptRoom {
                more_pages: None,
                short: None,
            });
        }
        // Until the store is closed: the file may be another's then.
        let unguarded = is_planted(PlantedFault::KeepAfterClose);
        let _writing = (!unguarded).then(|| self.writing.read());
        self.writable()?;
        // No more pages than there are frames can be newer.
        let ahead = (frames / knobs::room_ahead_part() * LONGEST)
            .clamp(knobs::least_room_ahead(), knobs::most_room_ahead())
            .min(frames * LONGEST);
        let chunks = self.table.ids().div_ceil(CHUNK as u64);
        // The record grows with the number of chunks and tables.
        let record = 2 * self.record_units.load(Ordering::Relaxed) + units_for(chunks as usize * 8);
        // Where room is scarce each chunk has a piece as an image of a page has.
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
        // Without its record no checkpoint comes to an end.
        let most = match short.is_none() || self.space.has_for_record(record) {
            true => i64::MAX,
            false => 0,
        };
        Ok(KeptRoom {
            more_pages: Some(more.min(most)),
            short,
        })
    }

    /// Gives the room back that lies behind the last image: no checkpoint comes any more. Where the engine has
    /// stopped, the file stays as it is.
    pub fn give_room_back(&self) {
        let _none_writes = self.writing.write();
        if self.writable().is_err() {
            return;
        }
        if let Err(error) = self.space.keep_none(&*self.file) {
            tracing::warn!("{error}");
        }
    }

    /// Notes that somebody was refused room.
    pub fn note_refused(&self) {
        self.refused.store(true, Ordering::Relaxed);
    }

    /// Whether anybody has been refused room since this was last asked.
    pub fn take_refused(&self) -> bool {
        self.refused.swap(false, Ordering::Relaxed)
    }
}
