//! Errors that the engine reports by `tracing`, because no caller gets them as a result.
//!
//! They come from the engine's own threads, from the end of a database and from a dropped transaction. A proof in which
//! nothing provokes such an event must see none.

use std::fmt::{Debug, Write};

use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Events that [`taken`] has not taken yet; no scheduling point lies within this lock.
static KEPT: Mutex<Vec<String>> = Mutex::new(Vec::new());
/// The largest number of events that [`KEPT`] holds.
const MOST_KEPT: usize = 20;

/// A subscriber that passes the text of each event at level ERROR to its function.
struct Listener(fn(String));

/// The text of an event.
#[derive(Default)]
struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        // Writing to a `String` never fails.
        let _ = match field.name() {
            "message" => write!(self.0, "{value:?} "),
            name => write!(self.0, "{name}: {value:?} "),
        };
    }
}

impl Subscriber for Listener {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() == Level::ERROR
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::ERROR)
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = Text::default();
        event.record(&mut text);
        (self.0)(text.0.trim_end().replace('\n', "; "));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Passes the text of each further event at level ERROR in this process to `tell`.
///
/// Any thread may call `tell`, and may hold any lock of the engine meanwhile. Only the first call in a process has an
/// effect.
pub fn tell_to(tell: fn(String)) {
    // A listener that is already set stays.
    let _ = tracing::subscriber::set_global_default(Listener(tell));
}

/// Keeps the texts of further events of this process for [`taken`].
pub fn keep() {
    tell_to(|text| {
        let mut kept = KEPT.lock();
        if kept.len() < MOST_KEPT {
            kept.push(text);
        }
    });
}

/// Returns the events since the last call; none unless [`keep`] was called.
#[must_use]
pub fn taken() -> Vec<String> {
    std::mem::take(&mut *KEPT.lock())
}

/// Checks that no event has come since the last [`taken`], and takes the events.
///
/// # Errors
/// The first event's text.
pub fn none() -> Result<(), String> {
    match taken().first() {
        None => Ok(()),
        Some(text) => Err(format!("the engine tells of an error: {text}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_kept_and_warnings_are_not() {
        tracing::subscriber::with_default(Listener(|text| KEPT.lock().push(text)), || {
            tracing::warn!("a warning");
            assert_eq!(none(), Ok(()));
            tracing::error!(table = 7, "the table is {}", "damaged");
            let told = none().expect_err("an event");
            assert!(told.ends_with("the table is damaged table: 7"), "{told}");
            assert_eq!(none(), Ok(()), "it was taken");
        });
    }
}
