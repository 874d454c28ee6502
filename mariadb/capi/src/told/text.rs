//! The text of a message.

use std::fmt::{self, Debug, Write};
use std::hash::{DefaultHasher, Hash, Hasher};

use tracing::field::{Field, Visit};
use tracing::Event;

/// The most bytes of a message; a line of the server's log has 1 KiB.
pub(super) const MOST_BYTES: usize = 980;
/// Bytes at the end that are reserved for the number of messages left out.
const COUNT_BYTES: usize = 100;

/// A message in a fixed buffer, since memory may be what is lacking.
pub(super) struct Text {
    bytes: [u8; MOST_BYTES],
    length: usize,
    most: usize,
    /// Whether fields are being listed in brackets.
    lists: bool,
}

impl Text {
    pub fn of(event: &Event<'_>) -> Text {
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
            // Writing to a text never fails.
            let _ = self.write_str(")");
        }
    }

    pub fn written(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    pub fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.written().hash(&mut hasher);
        hasher.finish()
    }
}

impl Write for Text {
    /// Drops the part that does not fit.
    ///
    /// A message is one line.
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
                // Writing to a text never fails.
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
