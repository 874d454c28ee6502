//! The author of a script: its dice, its tables, and the session that it writes for.

use super::schema::Table;
use super::values::chance;
use super::{BINARY, LOOK};
use peregrine_harness::dice::Dice;

/// The number of sessions in a script with several sessions.
pub const SESSIONS: u32 = 3;

/// How often a statement uses the binary protocol, in a hundred.
const BY_BINARY_PROTOCOL: u32 = 20;

/// Generates statements.
pub struct Author<'a> {
    pub dice: &'a mut Dice,
    pub tables: &'a [Table],
    /// The session of the statements, if there are several.
    pub session: Option<u32>,
    /// Whether statements may give values that raise an AUTO_INCREMENT counter.
    pub raises_counters: bool,
}

impl Author<'_> {
    pub(super) fn chance(&mut self, percent: u32) -> bool {
        chance(self.dice, percent)
    }

    /// Marks some statements for the binary protocol.
    pub(super) fn as_sent(&mut self, mut unit: Vec<String>) -> Vec<String> {
        for sql in &mut unit {
            if sql != LOOK && self.chance(BY_BINARY_PROTOCOL) {
                sql.insert_str(0, BINARY);
            }
        }
        unit
    }
}
