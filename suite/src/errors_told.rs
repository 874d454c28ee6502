//! What the engine tells of as an error where nobody gets one for an answer: threads of its own, the end of a database,
//! a transaction that is dropped. It tells by `tracing`; a proof in which nothing provokes such an event must see none.

use std::fmt::{Debug, Write};

use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Events that nobody has taken. No point of a schedule lies where it is locked.
static KEPT: Mutex<Vec<String>> = Mutex::new(Vec::new());
/// Of so many the text is kept.
const MOST_KEPT: usize = 20;

/// Who is told of each event at the level of errors.
struct Listener(fn(String));

/// The text of an event.
#[derive(Default)]
struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        // What can be written to a string always is.
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

/// From now on each such event of this process is told to `tell`, which may be called by any thread, with any lock of the
/// engine held. The first to ask in a process is the only one.
pub fn tell_to(tell: fn(String)) {
    // Whoever listens already goes on.
    let _ = tracing::subscriber::set_global_default(Listener(tell));
}

/// From now on such events of this process are kept for [`taken`].
pub fn keep() {
    tell_to(|text| {
        let mut kept = KEPT.lock();
        if kept.len() < MOST_KEPT {
            kept.push(text);
        }
    });
}

/// The events since this was last asked. None where nobody has asked to [`keep`] them.
#[must_use]
pub fn taken() -> Vec<String> {
    std::mem::take(&mut *KEPT.lock())
}

/// Whether no event has come since [`taken`] was asked.
///
/// # Errors
/// The first of them.
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
