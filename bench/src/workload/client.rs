//! A client: draws the parameters of transactions and runs them on a session, one after another.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use self::answer::Answer;
use super::counters::Counters;
use super::list::{List, Rows};
use super::read::Workload;
use super::step::{Ask, Batch, Block, Pick, Rounds, Step};
use super::transaction::Transaction;
use super::values::generator::{Draw, Step as SequenceStep, Surroundings};
use crate::normal::Answers;
use peregrine_harness::dice::Dice;
use peregrine_harness::engines::{Datum, Session};
use peregrine_harness::error::{HarnessError, Result};

/// Errors after which a client begins a transaction again with the same values: deadlock, lock wait timeout, and a
/// record that has changed since it was read.
pub const CONFLICTS: [u16; 3] = [1213, 1205, 1020];

/// A transaction fails after this many conflicts.
const MOST_RETRIES: u64 = 1_000;

/// The maximum number of parameters that a message shows.
const MOST_SHOWN: usize = 16;

/// A client of a workload.
#[derive(Debug)]
pub struct Client<'w> {
    workload: &'w Workload,
    counters: &'w Counters,
    dice: Dice,
    /// The client's number, from 0, and the number of clients.
    place: (u64, u64),
    variables: Vec<Datum>,
    parameters: Vec<Datum>,
    /// The rows of the transaction's lists.
    rows: Rows,
    /// The positions of each transaction in its sequential distributions.
    sequences: Vec<Vec<u64>>,
    answer: Answer<'w>,
    /// The right answers to queries on table `normal`, for workloads that have it.
    answers: Option<&'w Answers>,
    /// The transaction for which `answer` is prepared.
    expected: Option<usize>,
    /// The flag that ends a transaction early.
    stop: Option<&'w AtomicBool>,
    done: Done,
}

/// The outcome of a transaction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Done {
    /// Statements executed.
    pub statements: u64,
    /// Whether it ended with an intended rollback.
    pub rolled_back: bool,
    /// Conflicts after which the client began it again, by the server's error code.
    pub conflicts: BTreeMap<u16, u64>,
    /// The first wrong answer.
    pub wrong: Option<String>,
}

/// Whether a transaction continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flow {
    GoesOn,
    Ended,
}

impl<'w> Client<'w> {
    /// Creates client number `place.0`, from 0, of `place.1` clients.
    ///
    /// `seed` and `stream` determine its random numbers.
    #[must_use]
    pub fn new(
        workload: &'w Workload,
        counters: &'w Counters,
        answers: Option<&'w Answers>,
        (seed, stream): (u64, u64),
        place: (u64, u64),
    ) -> Self {
        Self {
            workload,
            counters,
            dice: Dice::new(seed, stream),
            place,
            variables: Vec::new(),
            parameters: Vec::new(),
            rows: Rows::default(),
            sequences: workload
                .transactions
                .iter()
                .map(|transaction| vec![0; transaction.sequences])
                .collect(),
            answer: Answer::default(),
            answers,
            expected: None,
            stop: None,
            done: Done::default(),
        }
    }

    /// Makes the client leave a transaction of many rounds, as interrupted, when `stop` is set.
    #[must_use]
    pub fn until(mut self, stop: &'w AtomicBool) -> Self {
        self.stop = Some(stop);
        self
    }

    /// Chooses one of the transactions by their weights.
    pub fn choose(&mut self, among: &[usize]) -> usize {
        if let [only] = among {
            return *only;
        }
        let weight = |at: &usize| self.workload.transactions.get(*at).map_or(0, |t| t.weight);
        let all: u64 = among.iter().map(weight).sum();
        let mut drawn = self.dice.below_wide(all);
        for at in among {
            let weight = self.workload.transactions.get(*at).map_or(0, |t| t.weight);
            if drawn < weight {
                return *at;
            }
            drawn -= weight;
        }
        among.first().copied().unwrap_or(0)
    }

    /// Draws the think time after a transaction, in milliseconds.
    pub fn think_ms(&mut self, transaction: usize) -> u64 {
        let Some(think) = self
            .workload
            .transactions
            .get(transaction)
            .and_then(|transaction| transaction.think.as_ref())
        else {
            return 0;
        };
        let mut around = Around::of(self.counters, &mut self.sequences, transaction, self.place);
        let time = think.draw(&mut self.dice, &self.variables, &mut around);
        time.integer().map_or(0, |time| time.max(0).unsigned_abs())
    }

    /// Returns the SQL of a transaction with one statement, with drawn parameters; `None` for others.
    pub fn sample(&mut self, transaction: usize) -> Option<String> {
        let workload = self.workload;
        let meant = workload.transactions.get(transaction)?;
        let ask = meant.single()?;
        self.variables.clear();
        self.variables.resize(meant.variables, Datum::Null);
        self.draw(transaction, &meant.draws);
        self.draw(transaction, &ask.draws);
        let values = ask
            .parameters
            .iter()
            .map(|given| given.value(&self.variables));
        let values: Vec<Datum> = values.collect();
        let mut text = String::new();
        workload
            .statements
            .get(ask.statement)?
            .write(&values, &mut text);
        Some(text)
    }

    /// Runs a transaction; repeats it with the same values after a conflict, until it is done.
    ///
    /// # Errors
    /// The first error that is no conflict. The transaction is rolled back then.
    pub fn run(&mut self, transaction: usize, session: &mut dyn Session) -> Result<Done> {
        let workload = self.workload;
        let Some(meant) = workload.transactions.get(transaction) else {
            return Err(HarnessError::Usage(format!(
                "there is no transaction of number {transaction}"
            )));
        };
        self.done = Done::default();
        if self.expected != Some(transaction) {
            self.answer.expect(meant, self.answers);
            self.expected = Some(transaction);
        }
        let begin = self.dice.clone();
        let sequences = self.sequences.get(transaction).cloned();
        loop {
            let error = match self.attempt(transaction, meant, session) {
                Ok(()) => return Ok(std::mem::take(&mut self.done)),
                Err(error) => error,
            };
            // A lost connection has rolled back already.
            let rolled_back = session.roll_back();
            let Some(code) = error.code().filter(|code| CONFLICTS.contains(code)) else {
                return Err(error);
            };
            rolled_back?;
            let met = self.done.conflicts.entry(code).or_default();
            *met += 1;
            if *met >= MOST_RETRIES {
                return Err(error);
            }
            self.dice = begin.clone();
            if let (Some(place), Some(before)) = (self.sequences.get_mut(transaction), &sequences) {
                place.clone_from(before);
            }
        }
    }

    /// Runs the checks of a transaction; [`Done::wrong`] has the first failure.
    ///
    /// # Errors
    /// When a statement fails.
    pub fn check(&mut self, transaction: usize, session: &mut dyn Session) -> Result<Done> {
        let workload = self.workload;
        self.done = Done::default();
        self.variables.clear();
        self.rows.clear();
        if let Some(meant) = workload.transactions.get(transaction) {
            self.variables.resize(meant.variables, Datum::Null);
            self.steps(transaction, &meant.checks, session)?;
        }
        Ok(std::mem::take(&mut self.done))
    }

    fn attempt(
        &mut self,
        number: usize,
        transaction: &'w Transaction,
        session: &mut dyn Session,
    ) -> Result<()> {
        self.variables.clear();
        self.variables.resize(transaction.variables, Datum::Null);
        self.done.rolled_back = false;
        self.draw(number, &transaction.draws);
        self.fill(number, &transaction.lists)?;
        self.steps(number, &transaction.steps, session)?;
        Ok(())
    }

    /// Draws the rows of the transaction's lists.
    fn fill(&mut self, transaction: usize, lists: &[List]) -> Result<()> {
        self.rows.clear();
        for list in lists {
            let length = list.length.integer(&self.variables).unwrap_or(0);
            if length > list.most {
                return Err(HarnessError::Usage(format!(
                    "list '{}' would have {length} rows, and its 'most' is {}",
                    list.name, list.most
                )));
            }
            self.rows.add();
            for row in 1..=length {
                if let Some(place) = list.counter.and_then(|slot| self.variables.get_mut(slot)) {
                    *place = Datum::Integer(row);
                }
                self.draw(transaction, &list.draws);
                self.rows.push(list, &self.variables);
            }
        }
        Ok(())
    }

    /// Returns the number of rounds.
    fn count(&self, rounds: &Rounds) -> i64 {
        match rounds {
            Rounds::Number(number) => number.integer(&self.variables).unwrap_or(0),
            Rounds::List(list) => i64::try_from(self.rows.length(*list)).unwrap_or(i64::MAX),
        }
    }

    /// Begins a round, counted from 1: sets the counter to its number, and the list's variables to the values of the
    /// list's row.
    fn begin_round(
        &mut self,
        transaction: usize,
        rounds: &Rounds,
        counter: Option<usize>,
        round: i64,
    ) {
        if let Some(place) = counter.and_then(|slot| self.variables.get_mut(slot)) {
            *place = Datum::Integer(round);
        }
        if let Some((number, list, row)) = self.row(transaction, rounds, round) {
            self.rows.load(number, list, row, &mut self.variables);
        }
    }

    /// Ends a round: stores the list's variables in the list's row.
    fn end_round(&mut self, transaction: usize, rounds: &Rounds, round: i64) {
        if let Some((number, list, row)) = self.row(transaction, rounds, round) {
            self.rows.keep(number, list, row, &self.variables);
        }
    }

    /// Returns the list of a round, and its row, from 0.
    fn row(
        &self,
        transaction: usize,
        rounds: &Rounds,
        round: i64,
    ) -> Option<(usize, &'w List, usize)> {
        let number = rounds.list()?;
        let list = self
            .workload
            .transactions
            .get(transaction)?
            .lists
            .get(number)?;
        Some((number, list, usize::try_from(round - 1).ok()?))
    }

    fn draw(&mut self, transaction: usize, draws: &[Draw]) {
        let mut around = Around::of(self.counters, &mut self.sequences, transaction, self.place);
        for draw in draws {
            let value = draw
                .generator
                .draw(&mut self.dice, &self.variables, &mut around);
            if let Some(place) = self.variables.get_mut(draw.slot) {
                *place = value;
            }
        }
    }

    fn steps(
        &mut self,
        transaction: usize,
        steps: &'w [Step],
        session: &mut dyn Session,
    ) -> Result<Flow> {
        for step in steps {
            let flow = match step {
                Step::Ask(ask) => self.ask(transaction, ask, session)?,
                Step::Block(block) => self.block(transaction, block, session)?,
            };
            if flow == Flow::Ended {
                return Ok(Flow::Ended);
            }
        }
        Ok(Flow::GoesOn)
    }

    fn block(
        &mut self,
        transaction: usize,
        block: &'w Block,
        session: &mut dyn Session,
    ) -> Result<Flow> {
        for round in 1..=self.count(&block.rounds) {
            if self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
                return Err(HarnessError::Interrupted);
            }
            self.begin_round(transaction, &block.rounds, block.counter, round);
            if block
                .when
                .as_ref()
                .is_some_and(|when| !when.holds(&self.variables))
            {
                continue;
            }
            self.draw(transaction, &block.draws);
            if self.steps(transaction, &block.steps, session)? == Flow::Ended {
                return Ok(Flow::Ended);
            }
            self.end_round(transaction, &block.rounds, round);
        }
        Ok(Flow::GoesOn)
    }

    fn ask(&mut self, transaction: usize, ask: &'w Ask, session: &mut dyn Session) -> Result<Flow> {
        self.draw(transaction, &ask.draws);
        self.parameters.clear();
        let variables = &self.variables;
        let parameters = ask.parameters.iter().map(|given| given.value(variables));
        self.parameters.extend(parameters);
        let mut statement = ask.statement;
        if let Some(batch) = &ask.batch {
            self.batch(transaction, batch);
            if let Some(list) = batch.rounds.list() {
                // A list without rows needs no statement.
                let Some(more) = self.rows.length(list).checked_sub(1) else {
                    return Ok(Flow::GoesOn);
                };
                statement += more;
            }
        }
        self.answer.begin(ask);
        session.execute(statement, &self.parameters, &mut self.answer)?;
        self.done.statements += 1;
        let missing = self.give_each(transaction, ask);
        if let Err(what) = self.verdict(ask, missing) {
            let name = self.name(ask);
            let given = shown(
                self.parameters
                    .get(..MOST_SHOWN)
                    .unwrap_or(&self.parameters),
            );
            self.done
                .wrong
                .get_or_insert_with(|| format!("wrong answer to {name} with [{given}]: {what}"));
        }
        if ask.ends_if_empty && (self.answer.count == 0 || missing > 0) {
            session.roll_back()?;
            self.done.statements += 1;
            self.done.rolled_back = true;
            return Ok(Flow::Ended);
        }
        if !ask.into.is_empty() && ask.by.is_empty() {
            let row = self.answer.picked(ask.pick);
            for (at, slot) in ask.into.iter().enumerate() {
                if let Some(place) = self.variables.get_mut(*slot) {
                    *place = row.get(at).cloned().unwrap_or_default();
                }
            }
        }
        Ok(Flow::GoesOn)
    }

    fn name(&self, ask: &Ask) -> &'w str {
        let statement = self.workload.statements.get(ask.statement);
        statement.map_or("", |statement| statement.name.as_str())
    }

    /// Adds the parameters of every row of a batch, and those after the rows.
    fn batch(&mut self, transaction: usize, batch: &Batch) {
        for round in 1..=self.count(&batch.rounds) {
            self.begin_round(transaction, &batch.rounds, batch.counter, round);
            self.draw(transaction, &batch.draws);
            let variables = &self.variables;
            let parameters = batch.parameters.iter().map(|given| given.value(variables));
            self.parameters.extend(parameters);
            self.end_round(transaction, &batch.rounds, round);
        }
        let behind = batch
            .behind
            .iter()
            .map(|given| given.value(&self.variables));
        self.parameters.extend(behind);
    }

    /// Stores the answer's values in each row of a list, and returns the number of rows for which the answer has none.
    fn give_each(&mut self, transaction: usize, ask: &Ask) -> usize {
        let Some(batch) = ask.batch.as_ref().filter(|_| !ask.by.is_empty()) else {
            return 0;
        };
        let mut missing = 0;
        for round in 1..=self.count(&batch.rounds) {
            self.begin_round(transaction, &batch.rounds, None, round);
            let meant: Vec<Datum> = ask.by.iter().map(|by| by.value(&self.variables)).collect();
            let found = self.answer.rows.iter().find(|row| row.starts_with(&meant));
            missing += usize::from(found.is_none());
            for (at, slot) in ask.into.iter().enumerate() {
                if let Some(place) = self.variables.get_mut(*slot) {
                    let value = found.and_then(|row| row.get(meant.len() + at));
                    *place = value.cloned().unwrap_or_default();
                }
            }
            self.end_round(transaction, &batch.rounds, round);
        }
        missing
    }

    fn verdict(&mut self, ask: &Ask, missing: usize) -> Result<(), String> {
        if missing > 0 && !ask.ends_if_empty {
            return Err(format!("no row for {missing} of the list's"));
        }
        if let Some((minimum, most)) = &ask.rows {
            let count = i64::try_from(self.answer.count).unwrap_or(i64::MAX);
            let minimum = minimum.integer(&self.variables).unwrap_or(0);
            let most = most.integer(&self.variables).unwrap_or(i64::MAX);
            if !(minimum..=most).contains(&count) {
                return Err(if minimum == most {
                    format!("{count} rows, {minimum} expected")
                } else {
                    format!("{count} rows, {minimum} to {most} expected")
                });
            }
        }
        if let Some(expected) = &ask.answer {
            let expected = expected.value(&self.variables);
            let row = self.answer.picked(Pick::First);
            let found = row.first().cloned().unwrap_or_default();
            if found != expected {
                let [found, expected] = [found, expected].map(|datum| shown(&[datum]));
                return Err(format!("{found}, {expected} expected"));
            }
        }
        match &mut self.answer.check {
            Some(check) => check.verdict(&self.parameters),
            None => Ok(()),
        }
    }
}

fn shown(parameters: &[Datum]) -> String {
    let texts: Vec<String> = parameters
        .iter()
        .map(|parameter| {
            let mut text = String::new();
            parameter.write_sql(&mut text);
            text
        })
        .collect();
    texts.join(", ")
}

/// The state that a client uses when it draws.
struct Around<'a> {
    counters: &'a Counters,
    sequences: &'a mut [u64],
    place: (u64, u64),
}

impl<'a> Around<'a> {
    fn of(
        counters: &'a Counters,
        sequences: &'a mut [Vec<u64>],
        transaction: usize,
        place: (u64, u64),
    ) -> Self {
        let sequences = sequences.get_mut(transaction);
        Self {
            counters,
            sequences: sequences.map_or(&mut [], Vec::as_mut_slice),
            place,
        }
    }
}

impl Surroundings for Around<'_> {
    fn next(&mut self, counter: usize) -> i64 {
        self.counters.next(counter)
    }

    fn newest(&self, counter: usize) -> i64 {
        self.counters.newest(counter)
    }

    fn step(&mut self, sequence: usize) -> SequenceStep {
        let taken = self.sequences.get_mut(sequence).map_or(0, |taken| {
            *taken = taken.wrapping_add(1);
            taken.wrapping_sub(1)
        });
        SequenceStep {
            taken,
            client: self.place.0,
            clients: self.place.1,
        }
    }
}

mod answer;
#[cfg(test)]
mod tests;
