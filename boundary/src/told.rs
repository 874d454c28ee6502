//! What the engine tells of where no statement gets an error for an answer: its own threads, an opening, an end.
//!
//! The engine tells by `tracing`. Errors, warnings and notes go on to a function of the server's, which writes them to
//! its error log. Any thread may tell, with any lock of the engine held: that function calls nothing of the engine.

use std::cell::Cell;
use std::ffi::c_char;
use std::fmt::{self, Debug, Write};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant};

use peregrine::sync::{now, Mutex};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Event, Level, Metadata, Subscriber};

use crate::c_types::Tell;
use crate::guard;

/// For so long a message that has been told is not told again.
const PAUSE: Duration = Duration::from_secs(10);
/// So many different messages are told in that time.
const MOST_MESSAGES: usize = 32;
/// A message has at most so many bytes; a line of the server's log has 1 KiB.
const MOST_BYTES: usize = 980;
/// Of these the end is kept for how many messages were left out.
const COUNT_BYTES: usize = 100;

/// `peregrine_message_level`.
const ERROR: u32 = 0;
const WARNING: u32 = 1;
const NOTE: u32 = 2;

/// A message, in memory that is there: memory may be what is lacking.
struct Text {
    bytes: [u8; MOST_BYTES],
    length: usize,
    most: usize,
    /// What it is of is being listed, in brackets.
    lists: bool,
}

impl Text {
    fn of(event: &Event<'_>) -> Text {
        let mut text = Text {
            bytes: [0; MOST_BYTES],
            length: 0,
            most: MOST_BYTES - COUNT_BYTES,
            lists: false,
        };
        event.record(&mut text);
        text.end_list();
        text.most = MOST_BYTES;
        text
    }

    fn end_list(&mut self) {
        if std::mem::take(&mut self.lists) {
            // What can be written to a text always is.
            let _ = self.write_str(")");
        }
    }

    fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.bytes[..self.length].hash(&mut hasher);
        hasher.finish()
    }
}

impl Write for Text {
    /// What there is no room for is left out. A message is one line.
    fn write_str(&mut self, more: &str) -> fmt::Result {
        for char in more.chars() {
            let char = if char.is_control() { ' ' } else { char };
            let (from, to) = (self.length, self.length + char.len_utf8());
            if to > self.most {
                return Ok(());
            }
            char.encode_utf8(&mut self.bytes[from..to]);
            self.length = to;
        }
        Ok(())
    }
}

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let before = match field.name() {
            "message" => "",
            "error" => {
                self.end_list();
                ": "
            }
            name => {
                let before = if self.lists { ", " } else { " (" };
                self.lists = true;
                // What can be written to a text always is.
                let _ = write!(self, "{before}{name}");
                " "
            }
        };
        let _ = write!(self, "{before}{value:?}");
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }
}

/// A message that has been told.
#[derive(Clone, Copy)]
struct Recent {
    hash: u64,
    told: Instant,
    /// How often it has come since.
    again: u64,
}

/// Which messages were told of late.
struct Repetition {
    recent: [Option<Recent>; MOST_MESSAGES],
    /// Messages that are told nowhere, and whose own count is gone.
    others: u64,
}

impl Repetition {
    const fn new() -> Self {
        Repetition {
            recent: [None; MOST_MESSAGES],
            others: 0,
        }
    }

    /// Whether a message is told now; then how often it was not, and how many others were not.
    fn admit(&mut self, hash: u64, now: Instant) -> Option<(u64, u64)> {
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

    /// How many messages were left out, and are not counted anywhere any more.
    fn take_left_out(&mut self) -> u64 {
        let again = self.recent.iter().flatten().map(|recent| recent.again);
        let left_out = self.others + again.sum::<u64>();
        *self = Repetition::new();
        left_out
    }
}

/// Who is told, and what was.
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
            // SAFETY: the server has promised that any thread may call it, until it gives another.
            unsafe { tell(level, text.as_ptr().cast::<c_char>(), text.len()) };
        }
    }

    fn tell(&mut self, level: u32, mut text: Text, now: Instant) {
        let Some((again, others)) = self.repetition.admit(text.hash(), now) else {
            return;
        };
        // What can be written to a text always is.
        if again != 0 {
            let _ = write!(text, " (left out since the last time: {again})");
        }
        if others != 0 {
            let _ = write!(text, " (other messages left out: {others})");
        }
        self.write(level, &text.bytes[..text.length]);
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

/// Of the server that has loaded the plug-in.
static TOLD: Mutex<Told> = Mutex::new(Told::new());

thread_local! {
    /// Whether the thread is telling: what comes of that is not told.
    static TELLING: Cell<bool> = const { Cell::new(false) };
}

/// A thread is telling.
struct Telling;

impl Telling {
    /// `None`: it is already.
    fn begin() -> Option<Telling> {
        (!TELLING.replace(true)).then_some(Telling)
    }
}

impl Drop for Telling {
    fn drop(&mut self) {
        TELLING.set(false);
    }
}

/// Who listens to the engine.
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
        // In a process that has loaded the plug-in before, the listener may be there. Whoever else listens goes on.
        let _ = tracing::subscriber::set_global_default(Listener(&TOLD));
        TOLD.lock().change(tell);
        Ok(true)
    });
}

#[cfg(test)]
mod tests;
