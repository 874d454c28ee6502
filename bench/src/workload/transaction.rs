//! Transactions: the statements that a client runs.

use super::beside::Beside;
use super::document::{Node, Section};
use super::list::List;
use super::step::{Ask, Step};
use super::step_reader::Reader;
use super::table::Table;
use super::values::distribution;
use super::values::generator::{Draw, Generator};
use super::values::scope::{is_name, Scope};
use peregrine_harness::engines::Statement;

/// A transaction, or a single query.
#[derive(Debug, Clone)]
pub struct Transaction {
    /// Its name.
    pub name: String,
    /// Its weight in a mix.
    pub weight: u64,
    /// The think time of a client after it, in milliseconds.
    pub think: Option<Generator>,
    /// Whether to leave out engines without transactions, because they would do something else.
    pub needs_transactions: bool,
    /// How it runs as background load, if it does; then it is not measured.
    pub beside: Option<Beside>,
    /// Variables drawn at its beginning.
    pub draws: Vec<Draw>,
    /// Its lists, filled after these draws.
    pub lists: Vec<List>,
    /// Its steps.
    pub steps: Vec<Step>,
    /// Tables, by their numbers, that are loaded again before each run of it alone.
    pub fresh: Vec<usize>,
    /// Statements that run after it, outside of the measured time, and must have right answers.
    pub checks: Vec<Step>,
    /// The number of its variables.
    pub variables: usize,
    /// The number of its sequential distributions.
    pub sequences: usize,
}

impl Transaction {
    /// Reads `[[transaction]]`, and adds its statements to those of the file.
    pub fn read(
        mut section: Section<'_, '_>,
        tables: &[Table],
        scope: &mut Scope,
        statements: &mut Vec<Statement>,
    ) -> Option<Self> {
        scope.begin_transaction();
        let name = section.needed_text("name");
        if let Some(text) = name.filter(|text| !is_name(text.text)) {
            section.complain(format!(
                "'{}' is no name: letters, digits and _, not beginning with a digit",
                text.text
            ));
        }
        let beside = section
            .take("beside")
            .map(|node| Beside::read(&node, scope));
        if let (Some(_), Some(node)) = (&beside, section.take("weight")) {
            node.complain("a transaction that runs 'beside' is not mixed, so it has no 'weight'");
        }
        if let (Some(_), Some(node)) = (&beside, section.take("think_ms")) {
            node.complain("a transaction that runs 'beside' has a rate instead of 'think_ms'");
        }
        let weight = match section.take("weight") {
            None => Some(1),
            Some(node) => match node.integer("'weight'") {
                Some(number @ 0..=1_000_000_000) => Some(number.unsigned_abs()),
                Some(_) => {
                    node.complain("'weight' is a whole number from 0 to 1000000000");
                    None
                }
                None => None,
            },
        };
        let think = section
            .take("think_ms")
            .map(|node| distribution::short_or_long(&node, scope));
        let needs_transactions = section
            .take("needs_transactions")
            .map_or(Some(false), |node| node.boolean("'needs_transactions'"));
        let fresh = section.take("fresh").map(|node| fresh(&node, tables));
        let draws = distribution::draws(&mut section, scope);
        let mut lists = Vec::new();
        for list in section.sections("list", "a list") {
            lists.extend(List::read(list, scope));
        }
        let first = statements.len();
        let name_of_statements = name.map_or("", |text| text.text);
        let mut reader = Reader::new(scope, statements, &mut lists, name_of_statements);
        // A transaction with one statement may have the keys of a step itself.
        let steps = if section.take("sql").is_some() {
            let ask = reader.ask(&mut section, None);
            ask.map(|ask| vec![Step::Ask(Box::new(ask))])
        } else {
            let node = section.need("steps");
            node.and_then(|node| reader.whole(&node))
        };
        let asked = reader.statements();
        let checks = section.take("check").map(|node| reader.after(&node));
        section.end();
        if asked == first + 1 {
            if let (Some(statement), Some(name)) = (statements.get_mut(first), name) {
                statement.name = name.text.to_owned();
            }
        }
        Some(Self {
            name: name?.text.to_owned(),
            weight: weight?,
            think: match think {
                None => None,
                Some(think) => Some(think?),
            },
            needs_transactions: needs_transactions?,
            beside: match beside {
                None => None,
                Some(beside) => Some(beside?),
            },
            draws,
            lists,
            steps: steps?,
            fresh: match fresh {
                None => Vec::new(),
                Some(fresh) => fresh?,
            },
            checks: match checks {
                None => Vec::new(),
                Some(checks) => checks?,
            },
            variables: scope.slots,
            sequences: scope.sequences,
        })
    }

    /// Returns its only step, if that is a single statement.
    #[must_use]
    pub fn single(&self) -> Option<&Ask> {
        match self.steps.as_slice() {
            [Step::Ask(ask)] if ask.batch.is_none() => Some(ask),
            _ => None,
        }
    }
}

/// Returns the numbers of the tables that `fresh` names.
fn fresh(node: &Node<'_, '_>, tables: &[Table]) -> Option<Vec<usize>> {
    let mut found = Vec::new();
    for name in node.array("'fresh'")? {
        let text = name.text("a table's name")?.text;
        let Some(at) = tables.iter().position(|table| table.name == text) else {
            let known: Vec<&str> = tables.iter().map(|table| table.name.as_str()).collect();
            name.complain(format!(
                "there is no table '{text}': there are {}",
                known.join(", ")
            ));
            return None;
        };
        found.push(at);
    }
    Some(found)
}
