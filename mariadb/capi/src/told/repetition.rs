//! The messages sent lately, so that a repeated message does not fill the log.

use std::time::{Duration, Instant};

/// A message is not sent again within this time.
pub(super) const PAUSE: Duration = Duration::from_secs(10);
/// The most different messages that are sent within [`PAUSE`].
pub(super) const MOST_MESSAGES: usize = 32;

/// A message that has been sent.
#[derive(Clone, Copy)]
pub(super) struct Recent {
    hash: u64,
    pub told: Instant,
    /// Number of repetitions since then.
    again: u64,
}

/// The messages sent lately.
pub(super) struct Repetition {
    pub recent: [Option<Recent>; MOST_MESSAGES],
    /// Number of messages that were left out and are not counted in `recent`.
    others: u64,
}

impl Repetition {
    pub const fn new() -> Self {
        Repetition {
            recent: [None; MOST_MESSAGES],
            others: 0,
        }
    }

    /// Returns `None` when a message is left out; else how often it was left out, and how many others were.
    pub fn admit(&mut self, hash: u64, now: Instant) -> Option<(u64, u64)> {
        let is_past = |recent: &Recent| now.saturating_duration_since(recent.told) >= PAUSE;
        let of_it = |place: &Option<Recent>| place.is_some_and(|recent| recent.hash == hash);
        let can_go = |place: &Option<Recent>| place.as_ref().is_none_or(is_past);
        let known = self.recent.iter().position(of_it);
        let Some(place) = known.or_else(|| self.recent.iter().position(can_go)) else {
            self.others += 1;
            return None;
        };
        let place = &mut self.recent[place];
        let before = *place;
        let mut again = 0;
        match before {
            Some(recent) if recent.hash == hash && !is_past(&recent) => {
                *place = Some(Recent {
                    again: recent.again + 1,
                    ..recent
                });
                return None;
            }
            Some(recent) if recent.hash == hash => again = recent.again,
            Some(other) => self.others += other.again,
            None => {}
        }
        *place = Some(Recent {
            hash,
            told: now,
            again: 0,
        });
        Some((again, std::mem::take(&mut self.others)))
    }

    /// Returns the number of all messages that were left out and not reported yet, and resets the counts.
    pub fn take_left_out(&mut self) -> u64 {
        let again = self.recent.iter().flatten().map(|recent| recent.again);
        let left_out = self.others + again.sum::<u64>();
        *self = Repetition::new();
        left_out
    }
}
