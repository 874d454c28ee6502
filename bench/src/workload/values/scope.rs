//! The meaning of names: parameters of the file, and variables of a transaction or of a table's rows.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::expression::{Expression, Slot};
use crate::workload::document::{Node, Section, Text};

/// A counter that all clients of an engine share.
///
/// It begins at the maximum of a column, and clients draw the next values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counter {
    /// The table.
    pub table: String,
    /// The column.
    pub column: String,
}

/// The names that are valid at a place of the file.
#[derive(Debug, Clone)]
pub struct Scope {
    parameters: Arc<BTreeMap<String, i64>>,
    names: Vec<(String, Slot)>,
    /// The number of variables so far.
    pub slots: usize,
    /// The number of sequential distributions so far; each client has a position in each.
    pub sequences: usize,
    /// The counters of the whole file so far.
    pub counters: Vec<Counter>,
    /// Whether this is a transaction; else it is a table's rows.
    pub in_transaction: bool,
    /// The seed of everything that is fixed for the whole run, such as permutations.
    pub seed: u64,
}

impl Scope {
    /// Creates a scope with a file's parameters.
    #[must_use]
    pub fn new(parameters: Arc<BTreeMap<String, i64>>, seed: u64) -> Self {
        Self {
            parameters,
            names: Vec::new(),
            slots: 0,
            sequences: 0,
            counters: Vec::new(),
            in_transaction: false,
            seed,
        }
    }

    /// Forgets all variables, for another transaction.
    pub fn begin_transaction(&mut self) {
        self.names.clear();
        self.slots = 0;
        self.sequences = 0;
        self.in_transaction = true;
    }

    /// Declares a variable.
    ///
    /// In a transaction, a variable of the same name is used again.
    pub fn declare(&mut self, name: &Text<'_>, at: &Node<'_, '_>) -> Slot {
        if !is_name(name.text) {
            at.complain_at(
                name.offset,
                format!(
                    "'{}' is no name: letters, digits and _, not beginning with a digit",
                    name.text
                ),
            );
        } else if self.parameters.contains_key(name.text) {
            at.complain_at(
                name.offset,
                format!("'{}' is a parameter of this file already", name.text),
            );
        } else if RESERVED.contains(&name.text) && self.in_transaction {
            at.complain_at(
                name.offset,
                format!(
                    "'{}' has a meaning in expressions, as have {}",
                    name.text,
                    RESERVED.join(", ")
                ),
            );
        }
        // A table with a parent may have a column with the parent's name; both columns have their own values.
        match self.slot(name.text).filter(|_| self.in_transaction) {
            Some(slot) => slot,
            None => self.fresh(name.text),
        }
    }

    /// Returns the variable that `count` names, if the section has `count`.
    pub fn counter_variable(&mut self, section: &mut Section<'_, '_>) -> Option<Slot> {
        let node = section.take("count")?;
        let name = node.text("'count'")?;
        Some(self.declare(&name, &node))
    }

    /// Creates a variable of this name, which replaces an earlier one.
    pub fn fresh(&mut self, name: &str) -> Slot {
        self.names.retain(|(known, _)| known != name);
        let slot = self.slots;
        self.slots += 1;
        self.names.push((name.to_owned(), slot));
        slot
    }

    fn slot(&self, name: &str) -> Option<Slot> {
        self.names
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, slot)| *slot)
    }

    /// Returns the meaning of a name.
    ///
    /// # Errors
    /// Text that lists the known names.
    pub fn lookup(&self, name: &str) -> Result<Expression, String> {
        if let Some(slot) = self.slot(name) {
            return Ok(Expression::Variable(slot));
        }
        if let Some(number) = self.parameters.get(name) {
            return Ok(Expression::number(*number));
        }
        let variables = self.names.iter().map(|(known, _)| known.as_str());
        let parameters = self.parameters.keys().map(String::as_str);
        let known: Vec<&str> = variables.chain(parameters).collect();
        Err(if known.is_empty() {
            format!("unknown name '{name}': no names are known here")
        } else {
            format!("unknown name '{name}': known here are {}", known.join(", "))
        })
    }

    /// Returns the expression of a value: parses a string, and takes a whole number as it is.
    pub fn expression(&self, node: &Node<'_, '_>, what: &str) -> Option<Expression> {
        if let Some(number) = node.as_integer() {
            return Some(Expression::number(number));
        }
        let Some(text) = node.as_text() else {
            node.complain(format!(
                "{what} must be a whole number or an expression in quotes, and this is {}",
                node.kind()
            ));
            return None;
        };
        match Expression::parse(text.text, &|name| self.lookup(name)) {
            Ok(expression) => Some(expression),
            Err((at, problem)) => {
                node.complain_at(text.at(at), problem);
                None
            }
        }
    }

    /// Returns the number of a column's counter, and creates the counter if it is new.
    pub fn counter(&mut self, table: &str, column: &str) -> usize {
        let counter = Counter {
            table: table.to_owned(),
            column: column.to_owned(),
        };
        match self.counters.iter().position(|known| *known == counter) {
            Some(at) => at,
            None => {
                self.counters.push(counter);
                self.counters.len() - 1
            }
        }
    }

    /// Creates a sequential distribution, and returns its number.
    pub fn sequence(&mut self) -> usize {
        self.sequences += 1;
        self.sequences - 1
    }
}

/// Words with a meaning in expressions.
const RESERVED: [&str; 7] = ["and", "or", "not", "if", "min", "max", "null"];

/// Returns whether a text can be a name.
#[must_use]
pub fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
