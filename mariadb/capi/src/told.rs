//! Messages of the engine about events for which no statement gets an error: in its own threads, at an opening, at a
//! shutdown.
//!
//! The engine sends its messages through `tracing`. Errors, warnings and notes go to a function of the server, which
//! writes them to its error log. Any thread may send a message with any lock of the engine held, so that function must
//! not call the engine.

use std::cell::Cell;
use std::ffi::c_char;
use std::fmt::Write;
use std::time::Instant;

use peregrine::sync::{now, Mutex};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Event, Level, Metadata, Subscriber};

use crate::c_types::Tell;
use crate::guard;

mod repetition;
mod text;

use repetition::Repetition;
use text::Text;

/// `peregrine_message_level`.
pub(crate) const ERROR: u32 = 0;
pub(crate) const WARNING: u32 = 1;
pub(crate) const NOTE: u32 = 2;

/// The receiver of messages, and the messages sent lately.
struct Told {
    tell: Option<Tell>,
    repetition: Repetition,
}

impl Told {
    const fn new() -> Self {
        Told {
            tell: None,
            repetition: Repetition::new(),
        }
    }

    fn write(&self, level: u32, text: &[u8]) {
        if let Some(tell) = self.tell {
            // SAFETY: the server has promised that any thread may call it, until it gives another function.
            unsafe { tell(level, text.as_ptr().cast::<c_char>(), text.len()) };
        }
    }

    fn tell(&mut self, level: u32, mut text: Text, now: Instant) {
        let Some((again, others)) = self.repetition.admit(text.hash(), now) else {
            return;
        };
        // Writing to a text never fails.
        if again != 0 {
            let _ = write!(text, " (left out since the last time: {again})");
        }
        if others != 0 {
            let _ = write!(text, " (other messages left out: {others})");
        }
        self.write(level, text.written());
    }

    fn change(&mut self, tell: Option<Tell>) {
        let left_out = self.repetition.take_left_out();
        if left_out != 0 {
            self.write(
                NOTE,
                format!("messages left out at last: {left_out}").as_bytes(),
            );
        }
        self.tell = tell;
    }
}

/// The state for the server that has loaded the plug-in.
static TOLD: Mutex<Told> = Mutex::new(Told::new());

thread_local! {
    /// Whether the thread is sending a message: a message that results from that is dropped.
    static TELLING: Cell<bool> = const { Cell::new(false) };
}

/// Marks the thread as sending a message, until it is dropped.
struct Telling;

impl Telling {
    /// Returns `None` when the thread is sending a message already.
    fn begin() -> Option<Telling> {
        (!TELLING.replace(true)).then_some(Telling)
    }
}

impl Drop for Telling {
    fn drop(&mut self) {
        TELLING.set(false);
    }
}

/// The subscriber that receives the engine's `tracing` events.
struct Listener(&'static Mutex<Told>);

impl Subscriber for Listener {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        match self.enabled(metadata) {
            true => Interest::always(),
            false => Interest::never(),
        }
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && *metadata.level() <= Level::INFO
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::INFO)
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let Some(_telling) = Telling::begin() else {
            return;
        };
        let level = match *event.metadata().level() {
            Level::ERROR => ERROR,
            Level::WARN => WARNING,
            _ => NOTE,
        };
        let text = Text::of(event);
        self.0.lock().tell(level, text, now());
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// See the header.
///
/// # Safety
/// `tell` must be null, or any thread may call it until this is called again.
#[no_mangle]
pub unsafe extern "C" fn peregrine_tell_to(tell: Option<Tell>) {
    guard::reading(|| {
        // When the process has loaded the plug-in before, the listener may be set already. Another subscriber stays.
        let _ = tracing::subscriber::set_global_default(Listener(&TOLD));
        TOLD.lock().change(tell);
        Ok(true)
    });
}

#[cfg(test)]
mod tests;
