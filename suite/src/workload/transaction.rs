//! Transactions: what a client does, statement by statement.

use super::beside::Beside;
use super::distribution;
use super::document::{Node, Section, Text};
use super::expression::{Expression, Slot};
use super::generator::{Draw, Generator};
use super::scope::{is_name, Scope};
use super::table::Table;
use crate::target::Statement;

/// The most rows that one statement gives to the server.
const MOST_ROWS: i64 = 10_000;

/// The deepest that blocks of steps stand in each other.
const DEEPEST: usize = 16;

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
#[derive(Debug, Clone)]
pub struct Ask {
    /// Which of the workload's statements.
    pub statement: usize,
    /// Variables drawn before it.
    pub draws: Vec<Draw>,
    /// Its parameters.
    pub parameters: Vec<Expression>,
    /// Where the columns of a row of the answer go.
    pub into: Vec<Slot>,
    /// Which row that is.
    pub pick: Pick,
    /// How many rows the answer must have: the least and the most.
    pub rows: Option<(Expression, Expression)>,
    /// What the first column of the answer's first row must be.
    pub answer: Option<Expression>,
    /// The rows that it gives to the server, if it is an `INSERT` of several.
    pub batch: Option<Batch>,
    /// Whether an answer without rows ends the transaction, which is rolled back.
    pub ends_if_empty: bool,
}

/// Rows that one statement gives to the server.
#[derive(Debug, Clone)]
pub struct Batch {
    /// How many.
    pub size: i64,
    /// The number of the row among them, from 1.
    pub counter: Option<Slot>,
    /// Variables drawn for each row.
    pub draws: Vec<Draw>,
    /// The parameters of each row.
    pub parameters: Vec<Expression>,
}

/// Which row of an answer is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pick {
    /// The first.
    First,
    /// The one in the middle; of an even number the first of the two.
    Middle,
}

/// Steps that belong together.
#[derive(Debug, Clone)]
pub struct Block {
    /// How often they are done.
    pub repeat: Expression,
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
        let first = statements.len();
        let mut reader = Reader {
            scope,
            before: first,
            statements,
            name: name.map_or("", |text| text.text),
            depth: 0,
        };
        // A transaction that is one statement may have the keys of a step itself.
        let steps = if section.take("sql").is_some() {
            let ask = reader.ask(&mut section);
            ask.map(|ask| vec![Step::Ask(Box::new(ask))])
        } else {
            let node = section.need("steps");
            node.and_then(|node| reader.whole(&node))
        };
        let asked = reader.statements.len();
        let checks = section.take("check").map(|node| reader.steps(&node));
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
            [Step::Ask(ask)] => Some(ask),
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

/// Whether a transaction that begins ends, too.
fn must_end(node: &Node<'_, '_>, steps: &[Step], statements: &[Statement]) -> Option<()> {
    let word = |step: Option<&Step>| -> String {
        match step {
            Some(Step::Ask(ask)) => statements
                .get(ask.statement)
                .and_then(|statement| statement.pieces.first())
                .and_then(|sql| sql.split_whitespace().next())
                .unwrap_or_default()
                .to_ascii_uppercase(),
            _ => String::new(),
        }
    };
    let begins = ["BEGIN", "START"].contains(&word(steps.first()).as_str());
    if begins && !["COMMIT", "ROLLBACK"].contains(&word(steps.last()).as_str()) {
        node.complain(
            "this transaction begins, so its last step must be \"COMMIT\" or \"ROLLBACK\"",
        );
        return None;
    }
    Some(())
}

struct Reader<'r> {
    scope: &'r mut Scope,
    statements: &'r mut Vec<Statement>,
    /// The transaction's name.
    name: &'r str,
    /// The statements before this transaction's.
    before: usize,
    depth: usize,
}

impl Reader<'_> {
    /// The steps of the transaction.
    fn whole(&mut self, node: &Node<'_, '_>) -> Option<Vec<Step>> {
        let steps = self.steps(node)?;
        if steps.is_empty() {
            node.complain("'steps' must have a step");
            return None;
        }
        must_end(node, &steps, self.statements)?;
        Some(steps)
    }

    fn steps(&mut self, node: &Node<'_, '_>) -> Option<Vec<Step>> {
        self.depth += 1;
        if self.depth > DEEPEST {
            node.complain(format!(
                "steps stand in each other more than {DEEPEST} deep"
            ));
            return None;
        }
        // All are read before the first mistake counts, so that all mistakes are told.
        let read: Vec<Option<Step>> = node
            .array("'steps'")?
            .iter()
            .map(|step| self.step(step))
            .collect();
        self.depth -= 1;
        read.into_iter().collect()
    }

    fn step(&mut self, node: &Node<'_, '_>) -> Option<Step> {
        if let Some(sql) = node.as_text() {
            let (statement, parameters) = self.statement(&sql, node)?;
            return Some(Step::Ask(Box::new(Ask {
                statement,
                draws: Vec::new(),
                parameters,
                into: Vec::new(),
                pick: Pick::First,
                rows: None,
                answer: None,
                batch: None,
                ends_if_empty: false,
            })));
        }
        let mut section = node.section("a step")?;
        let step = if section.take("steps").is_some() {
            self.block(&mut section)
                .map(|block| Step::Block(Box::new(block)))
        } else if let Some(values) = section.take("values") {
            self.batch(&mut section, &values)
                .map(|ask| Step::Ask(Box::new(ask)))
        } else {
            let draws = distribution::draws(&mut section, self.scope);
            self.ask(&mut section)
                .map(|ask| Step::Ask(Box::new(Ask { draws, ..ask })))
        };
        section.end();
        step
    }

    fn block(&mut self, section: &mut Section<'_, '_>) -> Option<Block> {
        let repeat = match section.take("repeat") {
            None => Some(Expression::number(1)),
            Some(node) => self.scope.expression(&node, "'repeat'"),
        };
        let counter = self.counter(section);
        let when = section
            .take("when")
            .map(|node| self.scope.expression(&node, "'when'"));
        let draws = distribution::draws(section, self.scope);
        let steps = section.need("steps").and_then(|node| self.steps(&node));
        Some(Block {
            repeat: repeat?,
            counter,
            when: match when {
                None => None,
                Some(when) => Some(when?),
            },
            draws,
            steps: steps?,
        })
    }

    /// The keys of an `INSERT` of several rows: its `values` are written as often as `repeat` says, each
    /// time with draws of their own.
    fn batch(&mut self, section: &mut Section<'_, '_>, values: &Node<'_, '_>) -> Option<Ask> {
        let size = section.need("repeat").and_then(|node| {
            let size = self.scope.expression(&node, "'repeat'")?.integer(&[]);
            let size = size.filter(|size| (1..=MOST_ROWS).contains(size));
            if size.is_none() {
                node.complain(format!(
                    "'repeat' beside 'values' is a number, or an expression of parameters, from 1 to {MOST_ROWS}"
                ));
            }
            size
        });
        let head = section.need("sql").and_then(|node| {
            let text = node.text("'sql'")?;
            self.cut(&text, &node)
        });
        let counter = self.counter(section);
        let draws = distribution::draws(section, self.scope);
        let row = values
            .text("'values'")
            .and_then(|text| self.cut(&text, values));
        let ((mut pieces, parameters), (row, of_row)) = (head?, row?);
        let (first, rest) = row.split_first()?;
        for number in 1..=size? {
            let before = if number == 1 { " " } else { ", " };
            if let Some(last) = pieces.last_mut() {
                last.push_str(before);
                last.push_str(first);
            }
            pieces.extend_from_slice(rest);
        }
        Some(Ask {
            statement: self.add(pieces),
            draws: Vec::new(),
            parameters,
            into: Vec::new(),
            pick: Pick::First,
            rows: None,
            answer: None,
            batch: Some(Batch {
                size: size?,
                counter,
                draws,
                parameters: of_row,
            }),
            ends_if_empty: false,
        })
    }

    /// The variable that counts rounds, if there is to be one.
    fn counter(&mut self, section: &mut Section<'_, '_>) -> Option<Slot> {
        let node = section.take("count")?;
        let name = node.text("'count'")?;
        Some(self.scope.declare(&name, &node))
    }

    /// The keys of a statement, without `draw`.
    fn ask(&mut self, section: &mut Section<'_, '_>) -> Option<Ask> {
        let sql = section.need("sql");
        let statement = sql.and_then(|node| {
            let text = node.text("'sql'")?;
            self.statement(&text, &node)
        });
        let rows = section.take("rows").map(|node| self.rows(&node));
        let answer = section
            .take("answer")
            .map(|node| self.scope.expression(&node, "'answer'"));
        let into = section.take("into").map(|node| self.into(&node));
        let pick = section.take("pick").map_or(Some(Pick::First), |node| {
            match node.text("'pick'")?.text {
                "first" => Some(Pick::First),
                "middle" => Some(Pick::Middle),
                other => {
                    node.complain(format!(
                        "unknown 'pick' \"{other}\": it is \"first\" or \"middle\""
                    ));
                    None
                }
            }
        });
        let if_empty = section.take("if_empty").map_or(Some(false), |node| {
            match node.text("'if_empty'")?.text {
                "rollback" => Some(true),
                other => {
                    node.complain(format!(
                        "unknown 'if_empty' \"{other}\": it is \"rollback\""
                    ));
                    None
                }
            }
        });
        let (statement, parameters) = statement?;
        Some(Ask {
            statement,
            draws: Vec::new(),
            parameters,
            into: match into {
                None => Vec::new(),
                Some(into) => into?,
            },
            pick: pick?,
            rows: match rows {
                None => None,
                Some(rows) => Some(rows?),
            },
            answer: match answer {
                None => None,
                Some(answer) => Some(answer?),
            },
            batch: None,
            ends_if_empty: if_empty?,
        })
    }

    fn rows(&mut self, node: &Node<'_, '_>) -> Option<(Expression, Expression)> {
        if node.as_integer().is_some() || node.as_text().is_some() {
            let rows = self.scope.expression(node, "'rows'")?;
            return Some((rows.clone(), rows));
        }
        match node.array("'rows'")?.as_slice() {
            [least, most] => Some((
                self.scope.expression(least, "the least rows")?,
                self.scope.expression(most, "the most rows")?,
            )),
            _ => {
                node.complain("'rows' is the number of rows of a right answer, or [least, most]");
                None
            }
        }
    }

    fn into(&mut self, node: &Node<'_, '_>) -> Option<Vec<Slot>> {
        let mut slots = Vec::new();
        for name in node.array("'into'")? {
            let text = name.text("a name")?;
            slots.push(self.scope.declare(&text, &name));
        }
        Some(slots)
    }

    /// A statement, and its parameters.
    fn statement(
        &mut self,
        sql: &Text<'_>,
        node: &Node<'_, '_>,
    ) -> Option<(usize, Vec<Expression>)> {
        let (pieces, parameters) = self.cut(sql, node)?;
        Some((self.add(pieces), parameters))
    }

    /// Adds a statement to those of the file.
    fn add(&mut self, pieces: Vec<String>) -> usize {
        let statement = self.statements.len();
        self.statements.push(Statement {
            name: format!("{}.{}", self.name, statement - self.before + 1),
            pieces,
        });
        statement
    }

    /// Cuts SQL at its parameters, which are written as `:name`. What stands in quotes is left.
    fn cut(
        &mut self,
        sql: &Text<'_>,
        node: &Node<'_, '_>,
    ) -> Option<(Vec<String>, Vec<Expression>)> {
        let mut pieces = vec![String::new()];
        let mut parameters = Some(Vec::new());
        let mut quote: Option<char> = None;
        let mut characters = sql.text.char_indices().peekable();
        while let Some((at, character)) = characters.next() {
            let begins_name = |c: &(usize, char)| c.1.is_ascii_alphabetic() || c.1 == '_';
            if quote.is_none() && character == ':' && characters.peek().is_some_and(begins_name) {
                let rest = &sql.text[at + 1..];
                let end = rest
                    .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                    .unwrap_or(rest.len());
                for _ in 0..end {
                    characters.next();
                }
                match self.scope.lookup(&rest[..end]) {
                    Ok(expression) => {
                        if let Some(known) = parameters.as_mut() {
                            known.push(expression);
                        }
                    }
                    Err(problem) => {
                        node.complain_at(sql.at(at + 1), problem);
                        parameters = None;
                    }
                }
                pieces.push(String::new());
                continue;
            }
            if quote.is_none() && character == '?' {
                node.complain_at(
                    sql.at(at),
                    "parameters are written as :name, after a draw of that name",
                );
                parameters = None;
            }
            match quote {
                None if ['\'', '"', '`'].contains(&character) => quote = Some(character),
                Some(open) if open == character => quote = None,
                _ => {}
            }
            if let Some(piece) = pieces.last_mut() {
                piece.push(if character == '\n' { ' ' } else { character });
            }
        }
        if let Some(open) = quote {
            node.complain(format!("a {open} of this statement has no end"));
            return None;
        }
        if pieces.iter().all(|piece| piece.trim().is_empty()) {
            node.complain("this statement is empty");
            return None;
        }
        Some((pieces, parameters?))
    }
}
