//! Transactions: what a client does, statement by statement.

use super::beside::Beside;
use super::document::{Node, Section};
use super::list::List;
use super::steps;
use super::table::Table;
use super::values::distribution;
use super::values::expression::{Expression, Slot};
use super::values::generator::{Draw, Generator};
use super::values::scope::{is_name, Scope};
use crate::engines::Statement;

/// A transaction, or a single query.
#[derive(Debug, Clone)]
pub struct Transaction {
    /// Its name.
    pub name: String,
    /// Its share among those that are mixed.
    pub weight: u64,
    /// How long a client waits after it, in milliseconds.
    pub think: Option<Generator>,
    /// Whether engines without transactions are left out, because they would do something else.
    pub needs_transactions: bool,
    /// How it runs beside what is measured; then it is not measured itself.
    pub beside: Option<Beside>,
    /// Variables drawn as it begins.
    pub draws: Vec<Draw>,
    /// Its lists, filled after that.
    pub lists: Vec<List>,
    /// What is done.
    pub steps: Vec<Step>,
    /// Tables, by their numbers, that are loaded anew before each time that it is run by itself.
    pub fresh: Vec<usize>,
    /// What is asked after it, outside of the measured time, and must have right answers.
    pub checks: Vec<Step>,
    /// How many variables it has.
    pub variables: usize,
    /// How many sequential distributions it has.
    pub sequences: usize,
}

/// A step.
#[derive(Debug, Clone)]
pub enum Step {
    /// A statement.
    Ask(Box<Ask>),
    /// Steps that are repeated, or done on a condition.
    Block(Box<Block>),
}

/// A statement to be executed.
#[derive(Debug, Clone, Default)]
pub struct Ask {
    /// Which of the workload's statements; of one about all of a list, that for a list of one row, behind which
    /// come those for longer ones.
    pub statement: usize,
    /// Variables drawn before it.
    pub draws: Vec<Draw>,
    /// Its parameters.
    pub parameters: Vec<Expression>,
    /// Where the columns of a row of the answer go.
    pub into: Vec<Slot>,
    /// What the columns before those are in the row for each of the list, if the statement is about a list and
    /// its answer has rows for it.
    pub by: Vec<Expression>,
    /// Which row that is, if it is one for all.
    pub pick: Pick,
    /// How many rows the answer must have: the minimum and the maximum.
    pub rows: Option<(Expression, Expression)>,
    /// What the first column of the answer's first row must be.
    pub answer: Option<Expression>,
    /// The rows of values that it gives to the server, if it gives several.
    pub batch: Option<Batch>,
    /// Whether an answer without rows (or without one for a row of the list) ends the transaction, which is
    /// rolled back.
    pub ends_if_empty: bool,
}

/// Rows of values that one statement gives to the server.
#[derive(Debug, Clone)]
pub struct Batch {
    /// For what there is a row each.
    pub rounds: Rounds,
    /// The number of the row among them, from 1.
    pub counter: Option<Slot>,
    /// Variables drawn for each row.
    pub draws: Vec<Draw>,
    /// The parameters of each row.
    pub parameters: Vec<Expression>,
    /// The parameters behind the rows.
    pub behind: Vec<Expression>,
}

/// What something is done for.
#[derive(Debug, Clone)]
pub enum Rounds {
    /// So many times.
    Number(Expression),
    /// For each row of the transaction's list of this number.
    List(usize),
}

impl Rounds {
    /// The number of the list, if it is one.
    #[must_use]
    pub fn list(&self) -> Option<usize> {
        match self {
            Self::Number(_) => None,
            Self::List(list) => Some(*list),
        }
    }
}

/// Which row of an answer is meant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Pick {
    /// The first.
    #[default]
    First,
    /// The one in the middle; of an even number the first of the two.
    Middle,
}

/// Steps that belong together.
#[derive(Debug, Clone)]
pub struct Block {
    /// What they are done for.
    pub rounds: Rounds,
    /// The number of the round, from 1.
    pub counter: Option<Slot>,
    /// On which condition, asked before each round.
    pub when: Option<Expression>,
    /// Variables drawn as each round begins.
    pub draws: Vec<Draw>,
    /// What is done in each.
    pub steps: Vec<Step>,
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
        let mut reader = steps::Reader::new(scope, statements, &mut lists, name_of_statements);
        // A transaction that is one statement may have the keys of a step itself.
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

    /// Its only step, if it is a single statement.
    #[must_use]
    pub fn single(&self) -> Option<&Ask> {
        match self.steps.as_slice() {
            [Step::Ask(ask)] if ask.batch.is_none() => Some(ask),
            _ => None,
        }
    }
}

/// The numbers of the tables named in `fresh`.
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
