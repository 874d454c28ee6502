//! Reads the steps of a transaction from a file.

use super::document::{Node, Section, Text};
use super::list::List;
use super::step::{Ask, Batch, Block, Pick, Rounds, Step};
use super::values::distribution;
use super::values::expression::{Expression, Slot};
use super::values::scope::Scope;
use peregrine_harness::engines::Statement;

/// The maximum number of rows that one statement sends to the server.
const MOST_ROWS: i64 = 10_000;

/// The maximum nesting of blocks of steps.
const DEEPEST: usize = 16;

/// Checks that a transaction that begins also ends.
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

/// Reads the steps of a transaction.
pub(super) struct Reader<'r> {
    scope: &'r mut Scope,
    statements: &'r mut Vec<Statement>,
    lists: &'r mut [List],
    /// The transaction's name.
    name: &'r str,
    /// The number of its statements that have been read.
    read: usize,
    depth: usize,
}

impl<'r> Reader<'r> {
    /// Creates the reader of the transaction with this name and these lists.
    ///
    /// It adds the statements to those of the file.
    pub(super) fn new(
        scope: &'r mut Scope,
        statements: &'r mut Vec<Statement>,
        lists: &'r mut [List],
        name: &'r str,
    ) -> Self {
        Self {
            scope,
            statements,
            lists,
            name,
            read: 0,
            depth: 0,
        }
    }

    /// The number of statements of the file so far.
    pub(super) fn statements(&self) -> usize {
        self.statements.len()
    }

    /// Reads steps that run after the transaction, when its lists do not exist any more.
    pub(super) fn after(&mut self, node: &Node<'_, '_>) -> Option<Vec<Step>> {
        self.lists = &mut [];
        self.steps(node)
    }

    /// Reads the steps of the transaction.
    pub(super) fn whole(&mut self, node: &Node<'_, '_>) -> Option<Vec<Step>> {
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
        // Reads all steps before it fails, so that all problems are reported.
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
            let (pieces, parameters) = self.cut(&sql, node)?;
            return Some(Step::Ask(Box::new(Ask {
                statement: self.add(&[pieces]),
                parameters,
                ..Ask::default()
            })));
        }
        let mut section = node.section("a step")?;
        let step = if section.take("steps").is_some() {
            self.block(&mut section)
                .map(|block| Step::Block(Box::new(block)))
        } else {
            let values = section.take("values");
            // The draws for each row of values are read with the values.
            let draws = match &values {
                None => distribution::draws(&mut section, self.scope),
                Some(_) => Vec::new(),
            };
            self.ask(&mut section, values.as_ref())
                .map(|ask| Step::Ask(Box::new(Ask { draws, ..ask })))
        };
        section.end();
        step
    }

    fn block(&mut self, section: &mut Section<'_, '_>) -> Option<Block> {
        let rounds = match self.each(section) {
            Some(list) => list.map(Rounds::List),
            None => match section.take("repeat") {
                None => Some(Expression::number(1)),
                Some(node) => self.scope.expression(&node, "'repeat'"),
            }
            .map(Rounds::Number),
        };
        let counter = self.scope.counter_variable(section);
        let when = section
            .take("when")
            .map(|node| self.scope.expression(&node, "'when'"));
        let draws = distribution::draws(section, self.scope);
        let steps = section.need("steps").and_then(|node| self.steps(&node));
        Some(Block {
            rounds: rounds?,
            counter,
            when: match when {
                None => None,
                Some(when) => Some(when?),
            },
            draws,
            steps: steps?,
        })
    }

    /// Returns the list of a step, if the step names one.
    fn each(&mut self, section: &mut Section<'_, '_>) -> Option<Option<usize>> {
        let node = section.take("each")?;
        if let Some(also) = section.take("repeat") {
            also.complain("a step has 'repeat' or 'each', not both");
        }
        let name = node.text("'each'").map(|text| text.text);
        let found = name.and_then(|name| self.lists.iter().position(|list| list.name == name));
        if let (Some(name), None) = (name, found) {
            let known: Vec<&str> = self.lists.iter().map(|list| list.name.as_str()).collect();
            node.complain(if known.is_empty() {
                format!("there is no list '{name}': there are none here")
            } else {
                format!("there is no list '{name}': there are {}", known.join(", "))
            });
        }
        Some(found)
    }

    /// Reads the keys of a statement with several rows of `values`: `repeat` rows, or one for each row of a list.
    ///
    /// Each row has draws of its own.
    fn batch(
        &mut self,
        section: &mut Section<'_, '_>,
        values: &Node<'_, '_>,
    ) -> Option<(usize, Vec<Expression>, Batch)> {
        let rounds = match self.each(section) {
            Some(list) => list.map(Rounds::List),
            None => section.need("repeat").and_then(|node| {
                let size = self.scope.expression(&node, "'repeat'")?.integer(&[]);
                let size = size.filter(|size| (1..=MOST_ROWS).contains(size));
                if size.is_none() {
                    node.complain(format!(
                        "'repeat' beside 'values' is a number, or an expression of parameters, from 1 to {MOST_ROWS}"
                    ));
                }
                Some(Rounds::Number(Expression::number(size?)))
            }),
        };
        let head = section.need("sql").and_then(|node| self.text(&node));
        let counter = self.scope.counter_variable(section);
        let draws = distribution::draws(section, self.scope);
        let row = self.text(values);
        let end = section.take("end").map(|node| self.text(&node));
        let ((head, parameters), (row, of_row)) = (head?, row?);
        let (end, behind) = match end {
            None => (Vec::new(), Vec::new()),
            Some(end) => end?,
        };
        let rounds = rounds?;
        let sizes = match &rounds {
            Rounds::Number(size) => size.integer(&[])?..=size.integer(&[])?,
            Rounds::List(list) => 1..=self.lists.get(*list)?.most,
        };
        let variants: Vec<Vec<String>> = sizes
            .map(|size| with_rows(&head, &row, size, &end))
            .collect();
        let batch = Batch {
            rounds,
            counter,
            draws,
            parameters: of_row,
            behind,
        };
        Some((self.add(&variants), parameters, batch))
    }

    /// Reads the keys of a statement with these rows of `values`; without `values`, the caller reads its `draw`.
    pub(super) fn ask(
        &mut self,
        section: &mut Section<'_, '_>,
        values: Option<&Node<'_, '_>>,
    ) -> Option<Ask> {
        let statement = match values {
            Some(values) => self
                .batch(section, values)
                .map(|(statement, parameters, batch)| (statement, parameters, Some(batch))),
            None => section.need("sql").and_then(|node| {
                let (pieces, parameters) = self.text(&node)?;
                Some((self.add(&[pieces]), parameters, None))
            }),
        };
        let about = match &statement {
            Some((_, _, Some(batch))) => batch.rounds.list(),
            _ => None,
        };
        let by = section
            .take("by")
            .map_or(Some(Vec::new()), |node| self.by(&node, about));
        let rows = section
            .take("rows")
            .map_or(Some(None), |node| self.rows(&node).map(Some));
        let answer = section.take("answer").map_or(Some(None), |node| {
            self.scope.expression(&node, "'answer'").map(Some)
        });
        let into = section
            .take("into")
            .map_or(Some(Vec::new()), |node| self.into(&node));
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
        let (statement, parameters, batch) = statement?;
        let (into, by) = (into?, by?);
        // The values that an answer gives for a row of a list belong to that row.
        if let Some(list) = about.filter(|_| !by.is_empty()) {
            self.lists.get_mut(list)?.owns(&into);
        }
        Some(Ask {
            statement,
            draws: Vec::new(),
            parameters,
            into,
            by,
            pick: pick?,
            rows: rows?,
            answer: answer?,
            batch,
            ends_if_empty: if_empty?,
        })
    }

    /// Reads the values that identify the answer's row for each row of a list.
    fn by(&mut self, node: &Node<'_, '_>, about: Option<usize>) -> Option<Vec<Expression>> {
        if about.is_none() {
            node.complain("'by' is for statements with 'values' for 'each' row of a list");
            return None;
        }
        let mut names = Vec::new();
        for name in node.array("'by'")? {
            let text = name.text("a name")?;
            match self.scope.lookup(text.text) {
                Ok(expression) => names.push(expression),
                Err(problem) => {
                    name.complain_at(text.at(0), problem);
                    return None;
                }
            }
        }
        if names.is_empty() {
            node.complain("'by' must have a name");
            return None;
        }
        Some(names)
    }

    fn rows(&mut self, node: &Node<'_, '_>) -> Option<(Expression, Expression)> {
        if node.as_integer().is_some() || node.as_text().is_some() {
            let rows = self.scope.expression(node, "'rows'")?;
            return Some((rows.clone(), rows));
        }
        match node.array("'rows'")?.as_slice() {
            [minimum, most] => Some((
                self.scope.expression(minimum, "the minimum rows")?,
                self.scope.expression(most, "the most rows")?,
            )),
            _ => {
                node.complain(
                    "'rows' is the number of rows of a right answer, or [minimum, maximum]",
                );
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

    /// Adds a statement to those of the file, or its variants for each number of rows.
    fn add(&mut self, variants: &[Vec<String>]) -> usize {
        let statement = self.statements.len();
        self.read += 1;
        let name = format!("{}.{}", self.name, self.read);
        self.statements
            .extend(variants.iter().map(|pieces| Statement {
                name: name.clone(),
                pieces: pieces.clone(),
            }));
        statement
    }

    /// Returns the text of a piece of SQL, cut at its parameters.
    fn text(&mut self, node: &Node<'_, '_>) -> Option<(Vec<String>, Vec<Expression>)> {
        let text = node.text("SQL")?;
        self.cut(&text, node)
    }

    /// Cuts SQL at its parameters, which are written as `:name`, but not in quotes.
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
        if matches!(pieces.as_slice(), [only] if only.trim().is_empty()) {
            node.complain("this statement is empty");
            return None;
        }
        Some((pieces, parameters?))
    }
}

/// Returns the pieces of a statement with this many rows of values between its head and its end.
fn with_rows(head: &[String], row: &[String], size: i64, end: &[String]) -> Vec<String> {
    let mut pieces = head.to_vec();
    let mut append = |before: &str, more: &[String]| {
        let Some((first, rest)) = more.split_first() else {
            return;
        };
        if let Some(last) = pieces.last_mut() {
            last.push_str(before);
            last.push_str(first);
        }
        pieces.extend_from_slice(rest);
    };
    for number in 1..=size {
        append(if number == 1 { " " } else { ", " }, row);
    }
    append(" ", end);
    pieces
}
