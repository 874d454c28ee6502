//! The time in a schedule, counted in points.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Counted time that a point takes.
const POINT: Duration = Duration::from_micros(1);

/// The points so far and the time. Only the thread that has the turn changes them, so a point without a choice takes no
/// mutex.
#[derive(Debug, Default)]
pub(super) struct Clock {
    points: AtomicU64,
    /// The next point at which there is a choice, or a failure to be noticed.
    due: AtomicU64,
    /// Nanoseconds by which the time has leapt.
    leapt: AtomicU64,
}

impl Clock {
    pub fn points(&self) -> u64 {
        self.points.load(Ordering::Relaxed)
    }

    /// Counts a point; returns whether it is due.
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

    /// Moves the time to `moment`, unless that has passed.
    pub fn leap(&self, moment: Duration) {
        let by = moment.saturating_sub(self.now()).as_nanos() as u64;
        let leapt = self.leapt.load(Ordering::Relaxed);
        self.leapt.store(leapt + by, Ordering::Relaxed);
    }
}
