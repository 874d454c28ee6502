//! Time in a schedule: counted in points.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What a point costs of the counted time.
const POINT: Duration = Duration::from_micros(1);

/// The points so far and the time, for who has the turn: nobody else changes them, so that a point at which nothing
/// is to be chosen takes no mutex.
#[derive(Debug, Default)]
pub(super) struct Clock {
    points: AtomicU64,
    /// The point at which there is something to be chosen, or to be told.
    due: AtomicU64,
    /// Nanoseconds by which time has leapt.
    leapt: AtomicU64,
}

impl Clock {
    pub fn points(&self) -> u64 {
        self.points.load(Ordering::Relaxed)
    }

    /// One more point; whether it is one that is due.
    pub fn tick(&self) -> bool {
        let points = self.points() + 1;
        self.points.store(points, Ordering::Relaxed);
        points >= self.due.load(Ordering::Relaxed)
    }

    pub fn set_due(&self, point: u64) {
        self.due.store(point, Ordering::Relaxed);
    }

    pub fn now(&self) -> Duration {
        let leapt = Duration::from_nanos(self.leapt.load(Ordering::Relaxed));
        leapt + Duration::from_nanos(self.points() * POINT.as_nanos() as u64)
    }

    /// Time leaps to a moment, unless it has passed.
    pub fn leap(&self, moment: Duration) {
        let by = moment.saturating_sub(self.now()).as_nanos() as u64;
        let leapt = self.leapt.load(Ordering::Relaxed);
        self.leapt.store(leapt + by, Ordering::Relaxed);
    }
}
