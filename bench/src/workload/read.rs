//! Reads a workload file.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::beside::Beside;
use super::document::{parse, Complaints, Section};
use super::problem::Problems;
use super::table::{Source, Table};
use super::transaction::Transaction;
use super::values::scope::{is_name, Counter, Scope};
use crate::normal::Query;
use peregrine_harness::engines::Statement;
use peregrine_harness::error::{HarnessError, Result};

/// The cell name of a workload whose transactions are mixed.
pub const MIX: &str = "mix";

/// The unit of a transaction that runs once in each run: its time is shown, the inverse of its rate.
pub const SECONDS: &str = "s";

/// The profiles for which a file may have sizes.
const PROFILES: [&str; 3] = ["quick", "standard", "paper"];

/// A workload that is ready to run.
#[derive(Debug, Clone)]
pub struct Workload {
    /// Its name.
    pub name: String,
    /// Its description, in a sentence.
    pub about: String,
    /// The text of its file.
    pub text: String,
    /// The values of its parameters in this run.
    pub parameters: BTreeMap<String, i64>,
    /// How transactions are measured.
    pub mode: Mode,
    /// Its tables.
    pub tables: Vec<Table>,
    /// Its transactions.
    pub transactions: Vec<Transaction>,
    /// The statements of all transactions.
    pub statements: Arc<[Statement]>,
    /// The transaction that its figure counts, if that is not every transaction a second.
    pub figure: Option<Figure>,
    /// The conditions that must hold for the tables after each run.
    pub conditions: Vec<Condition>,
    /// The columns whose newest values clients share.
    pub counters: Vec<Counter>,
}

/// How transactions are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Each transaction by itself.
    Each,
    /// All transactions, mixed by their weights.
    Mix,
    /// Each transaction by itself and once in a run, by one client: the figure is its time.
    Once,
    /// No transactions: the loading of the tables is measured.
    Load,
}

/// A figure other than all transactions a second.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// The transaction that it counts.
    pub transaction: usize,
    /// Its unit, such as `new orders/min`.
    pub unit: String,
    /// The number of seconds in that unit.
    pub seconds: f64,
}

/// A condition for the tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// Its description.
    pub name: String,
    /// A statement that counts the rows that contradict it, so its answer must be 0.
    pub sql: String,
}

/// The options for reading a file.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The profile whose sizes apply.
    pub profile: Option<String>,
    /// Values of parameters that override those of the file.
    pub set: BTreeMap<String, i64>,
    /// The seed of the run.
    pub seed: u64,
}

/// Reads a file with the sizes of every profile, and returns all its problems.
///
/// # Errors
/// The problems.
pub fn check(text: &str, file: &str) -> Result<Workload, Problems> {
    let mut all = Vec::new();
    let mut read_well = None;
    for profile in PROFILES.into_iter().rev() {
        let options = Options {
            profile: Some(profile.to_owned()),
            ..Options::default()
        };
        match read(text, &options) {
            Ok(workload) => read_well = Some(workload),
            Err(problems) => all.extend(problems),
        }
    }
    all.sort();
    all.dedup();
    match read_well {
        Some(workload) if all.is_empty() => Ok(workload),
        _ => Err(Problems {
            file: file.to_owned(),
            all,
        }),
    }
}

impl Workload {
    /// Reads a file; messages call it `file`.
    ///
    /// # Errors
    /// [`HarnessError::Workload`], which lists all problems; [`HarnessError::Usage`] when the file lacks a parameter that
    /// is set.
    pub fn read(text: &str, file: &str, options: &Options) -> Result<Self> {
        let workload = read(text, options).map_err(|all| {
            let file = file.to_owned();
            HarnessError::Workload(Problems { file, all }.to_string())
        })?;
        for name in options.set.keys() {
            if !workload.parameters.contains_key(name) {
                let known: Vec<&str> = workload.parameters.keys().map(String::as_str).collect();
                return Err(HarnessError::Usage(format!(
                    "workload {} has no parameter '{name}': it has {}",
                    workload.name,
                    if known.is_empty() {
                        "none".to_owned()
                    } else {
                        known.join(", ")
                    }
                )));
            }
        }
        Ok(workload)
    }

    /// Returns the names of the cells: the transactions, or [`MIX`].
    ///
    /// The background load is no cell.
    #[must_use]
    pub fn cells(&self) -> Vec<&str> {
        match self.mode {
            Mode::Each | Mode::Once => self
                .transactions
                .iter()
                .filter(|transaction| transaction.beside.is_none())
                .map(|transaction| transaction.name.as_str())
                .collect(),
            Mode::Mix => vec![MIX],
            Mode::Load => Vec::new(),
        }
    }

    /// Returns the numbers of a cell's transactions.
    #[must_use]
    pub fn transactions_of(&self, cell: &str) -> Vec<usize> {
        let all = self.transactions.iter().enumerate();
        let all = all.filter(|(_, transaction)| transaction.beside.is_none());
        match self.mode {
            Mode::Each | Mode::Once => all
                .filter(|(_, transaction)| transaction.name == cell)
                .map(|(at, _)| at)
                .collect(),
            Mode::Mix => all
                .filter(|(_, transaction)| cell == MIX && transaction.weight > 0)
                .map(|(at, _)| at)
                .collect(),
            Mode::Load => Vec::new(),
        }
    }

    /// Returns whether a target without SQL can run a cell: the cell is one of the thirteen queries on table `normal`,
    /// and the workload needs SQL for nothing else.
    #[must_use]
    pub fn is_normal_query(&self, cell: &str) -> bool {
        let is_single = |at: &usize| {
            let transaction = self.transactions.get(*at);
            transaction.is_some_and(|transaction| transaction.single().is_some())
        };
        self.mode == Mode::Each
            && self.normal_rows().is_some()
            && self.conditions.is_empty()
            && self.counters.is_empty()
            && self.running_beside().is_empty()
            && Query::parse(cell).is_ok()
            && matches!(&self.transactions_of(cell)[..], [only] if is_single(only))
    }

    /// Returns the transactions of the background load.
    #[must_use]
    pub fn running_beside(&self) -> Vec<(usize, Beside)> {
        let all = self.transactions.iter().enumerate();
        all.filter_map(|(at, transaction)| Some((at, transaction.beside?)))
            .filter(|(_, beside)| beside.sessions > 0)
            .collect()
    }

    /// Returns whether an engine without transactions can't run a cell, because of the cell or of the background load.
    #[must_use]
    pub fn needs_transactions(&self, cell: &str) -> bool {
        let beside = self.running_beside().into_iter().map(|(at, _)| at);
        self.transactions_of(cell)
            .into_iter()
            .chain(beside)
            .any(|at| {
                self.transactions
                    .get(at)
                    .is_some_and(|transaction| transaction.needs_transactions)
            })
    }

    /// Returns the unit of a cell's figure.
    #[must_use]
    pub fn unit(&self, cell: &str) -> String {
        if let (Some(figure), MIX) = (&self.figure, cell) {
            return figure.unit.clone();
        }
        if self.mode == Mode::Once {
            return SECONDS.to_owned();
        }
        let single = self.transactions_of(cell).into_iter().all(|at| {
            self.transactions
                .get(at)
                .is_some_and(|transaction| transaction.single().is_some())
        });
        if single {
            "queries/s"
        } else {
            "transactions/s"
        }
        .to_owned()
    }

    /// Returns the SQL of a cell with one statement; for others, the names of its transactions.
    #[must_use]
    pub fn described(&self, cell: &str) -> String {
        let transactions = self.transactions_of(cell);
        if let [only] = transactions.as_slice() {
            if let Some(ask) = self.transactions.get(*only).and_then(Transaction::single) {
                return self
                    .statements
                    .get(ask.statement)
                    .map(Statement::sql)
                    .unwrap_or_default();
            }
        }
        let names: Vec<String> = transactions
            .iter()
            .filter_map(|at| self.transactions.get(*at))
            .map(|transaction| match self.mode {
                Mode::Each | Mode::Once | Mode::Load => transaction.name.clone(),
                Mode::Mix => format!("{} × {}", transaction.weight, transaction.name),
            })
            .collect();
        names.join(", ")
    }

    /// Returns the number of rows of the built-in table `normal`, if the workload has it.
    #[must_use]
    pub fn normal_rows(&self) -> Option<u32> {
        self.tables.iter().find_map(|table| match table.source {
            Source::Normal(rows) => Some(rows),
            Source::Generated(_) => None,
        })
    }
}

fn read(text: &str, options: &Options) -> Result<Workload, Vec<super::problem::Problem>> {
    let complaints = Complaints::new(text);
    let workload = parse(text, &complaints).and_then(|document| {
        let section = Section::new(document.get_ref(), 0, "a workload", &complaints);
        whole(section, text, options)
    });
    let problems = complaints.into_problems();
    match workload {
        Some(workload) if problems.is_empty() => Ok(workload),
        _ => Err(problems),
    }
}

fn whole(mut file: Section<'_, '_>, text: &str, options: &Options) -> Option<Workload> {
    let name = file.needed_text("name");
    if let Some(name) = name.filter(|name| !is_name(name.text)) {
        file.complain(format!("'{}' is no name of a workload", name.text));
    }
    let about = file.needed_text("about");
    let mode = file.need("run").and_then(|node| {
        match node.text("'run'")?.text {
            "each" => Some(Mode::Each),
            "mix" => Some(Mode::Mix),
            "once" => Some(Mode::Once),
            "load" => Some(Mode::Load),
            other => {
                node.complain(format!(
                    "unknown 'run' \"{other}\": it is \"each\" (every transaction by itself), \"mix\" (by their weights), \
                     \"once\" (every transaction by itself and once a run) or \"load\" (no transactions: how tables are loaded)"
                ));
                None
            }
        }
    });
    let parameters = Arc::new(parameters(&mut file, options));
    let mut scope = Scope::new(Arc::clone(&parameters), options.seed);
    let mut tables: Vec<Table> = Vec::new();
    for section in file.sections("table", "a table") {
        let table = Table::read(section, &tables, &scope);
        tables.extend(table);
    }
    let mut statements = Vec::new();
    let mut transactions: Vec<Transaction> = Vec::new();
    for section in file.sections("transaction", "a transaction") {
        let offset = section.offset();
        if let Some(read) = Transaction::read(section, &tables, &mut scope, &mut statements) {
            if mode.is_some_and(|mode| mode != Mode::Once)
                && !(read.fresh.is_empty() && read.checks.is_empty())
            {
                file.complain_at(
                    offset,
                    "'fresh' and 'check' are for workloads whose 'run' is \"once\"",
                );
            }
            if mode == Some(Mode::Once) && read.think.is_some() {
                file.complain_at(offset, "a transaction that is done once has no 'think_ms'");
            }
            if transactions.iter().any(|other| other.name == read.name) {
                file.complain_at(
                    offset,
                    format!("there is a transaction '{}' already", read.name),
                );
            }
            transactions.push(read);
        }
    }
    if tables.is_empty() && file.take("table").is_none() {
        file.complain("a workload needs a [[table]]");
    }
    if mode == Some(Mode::Load) {
        if let Some(node) = file.take("transaction") {
            node.complain("a workload whose 'run' is \"load\" has no transactions");
        }
    } else if transactions.is_empty() && file.take("transaction").is_none() {
        file.complain("a workload needs a [[transaction]]");
    }
    counters_exist(&file, &scope, &tables);
    let figure = file.take("figure").map(|node| {
        let mut section = node.section("'figure'")?;
        let figure = figure(&mut section, &transactions);
        section.end();
        figure
    });
    let conditions = file
        .sections("condition", "a condition")
        .into_iter()
        .filter_map(|mut section| {
            let name = section.needed_text("name");
            let sql = section.needed_text("sql");
            section.end();
            Some(Condition {
                name: name?.text.to_owned(),
                sql: sql?.text.trim().replace('\n', " "),
            })
        })
        .collect();
    let measured = |transaction: &&Transaction| transaction.beside.is_none();
    if !transactions.is_empty() && transactions.iter().filter(measured).count() == 0 {
        file.complain("every transaction runs 'beside' others, so there is nothing to measure");
    } else if mode == Some(Mode::Mix)
        && transactions.iter().filter(measured).all(|t| t.weight == 0)
        && !transactions.is_empty()
    {
        file.complain("every transaction has weight 0, so there is nothing to run");
    }
    file.end();
    Some(Workload {
        name: name?.text.to_owned(),
        about: about?.text.trim().to_owned(),
        text: text.to_owned(),
        parameters: parameters.as_ref().clone(),
        mode: mode?,
        tables,
        transactions,
        statements: statements.into(),
        figure: match figure {
            None => None,
            Some(figure) => Some(figure?),
        },
        conditions,
        counters: scope.counters,
    })
}

fn parameters(file: &mut Section<'_, '_>, options: &Options) -> BTreeMap<String, i64> {
    let mut found = BTreeMap::new();
    let given = file
        .take("parameters")
        .and_then(|node| node.section("'parameters'"));
    for (name, node) in given.iter().flat_map(Section::entries) {
        if !is_name(name.text) || name.text == "row" {
            node.complain_at(
                name.offset,
                format!("'{}' is no name of a parameter", name.text),
            );
        }
        if let Some(value) = node.integer("a parameter") {
            found.insert(name.text.to_owned(), value);
        }
    }
    let profiles = file
        .take("profiles")
        .and_then(|node| node.section("'profiles'"));
    for (profile, node) in profiles.iter().flat_map(Section::entries) {
        if !PROFILES.contains(&profile.text) {
            node.complain_at(
                profile.offset,
                format!(
                    "unknown profile '{}': the profiles are {}",
                    profile.text,
                    PROFILES.join(", ")
                ),
            );
        }
        let counts = options.profile.as_deref() == Some(profile.text);
        let sizes = node.section("a profile");
        for (name, node) in sizes.iter().flat_map(Section::entries) {
            let value = node.integer("a parameter");
            match found.get_mut(name.text) {
                None => node.complain_at(
                    name.offset,
                    format!("there is no parameter '{}' under [parameters]", name.text),
                ),
                Some(parameter) if counts => *parameter = value.unwrap_or(*parameter),
                Some(_) => {}
            }
        }
    }
    for (name, value) in &options.set {
        if let Some(parameter) = found.get_mut(name) {
            *parameter = *value;
        }
    }
    found
}

fn figure(section: &mut Section<'_, '_>, transactions: &[Transaction]) -> Option<Figure> {
    let counted = section.need("count").and_then(|node| {
        let name = node.text("'count'")?.text;
        let found = transactions.iter().position(|other| other.name == name);
        match found.and_then(|at| transactions.get(at)) {
            None => {
                let known: Vec<&str> = transactions.iter().map(|t| t.name.as_str()).collect();
                node.complain(format!(
                    "there is no transaction '{name}': there are {}",
                    known.join(", ")
                ));
            }
            Some(counted) if counted.beside.is_some() => {
                node.complain(format!(
                    "'{name}' runs 'beside' others, and is not measured"
                ));
            }
            Some(_) => {}
        }
        found
    });
    let unit = section.needed_text("unit");
    let seconds = section
        .need("per")
        .and_then(|node| match node.text("'per'")?.text {
            "second" => Some(1.0),
            "minute" => Some(60.0),
            other => {
                node.complain(format!(
                    "unknown 'per' \"{other}\": it is \"second\" or \"minute\""
                ));
                None
            }
        });
    Some(Figure {
        transaction: counted?,
        unit: unit?.text.to_owned(),
        seconds: seconds?,
    })
}

fn counters_exist(file: &Section<'_, '_>, scope: &Scope, tables: &[Table]) {
    for counter in &scope.counters {
        let known = tables.iter().any(|table| {
            table.name == counter.table
                && table
                    .columns
                    .iter()
                    .any(|column| column.name == counter.column)
        });
        if !known {
            file.complain(format!(
                "a transaction counts on {}.{}, and there is no such table or column",
                counter.table, counter.column
            ));
        }
    }
}

#[cfg(test)]
mod tests;
