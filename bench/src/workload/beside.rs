//! The background load: transactions that run beside the measured ones, at a rate of their own.

use super::document::Node;
use super::values::scope::Scope;

/// The maximum number of sessions of one such transaction.
const MOST_SESSIONS: u32 = 1_000;
/// The maximum rate of one such transaction, a second.
const HIGHEST_RATE: u32 = 1_000_000;

/// The sessions and rate of a transaction of the background load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Beside {
    /// The number of sessions that run it; 0 means that it does not run.
    pub sessions: u32,
    /// The number of its beginnings a second, in all its sessions together.
    pub rate: u32,
}

impl Beside {
    /// Reads `beside = { sessions = …, rate = … }`.
    ///
    /// Both are numbers or expressions of parameters.
    pub fn read(node: &Node<'_, '_>, scope: &Scope) -> Option<Self> {
        let mut section = node.section("'beside'")?;
        let mut number = |key: &'static str, minimum: u32, most: u32| {
            let node = section.need(key)?;
            let expression = scope.expression(&node, &format!("'{key}'"))?;
            let value = expression.integer(&[]);
            let number = value.and_then(|value| u32::try_from(value).ok());
            let number = number.filter(|number| (minimum..=most).contains(number));
            if number.is_none() {
                let is = value.map_or("no number".to_owned(), |value| value.to_string());
                node.complain(format!(
                    "'{key}' is a whole number from {minimum} to {most}, and this is {is}"
                ));
            }
            number
        };
        let sessions = number("sessions", 0, MOST_SESSIONS);
        let rate = number("rate", 1, HIGHEST_RATE);
        section.end();
        Some(Self {
            sessions: sessions?,
            rate: rate?,
        })
    }
}
