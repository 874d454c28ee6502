//! A judge: asks the same query by many plans in one snapshot; all answers must be the same.

use mysql::prelude::Queryable;
use mysql::Conn;

use super::plan::{names, Plan};
use super::query::Asked;
use super::second_opinion::{copies, gone, SNAPSHOT_IS_LOST};
use super::shared::Shared;
use crate::pushdown::answer::{
    agree, brief, difference, Answer, {self},
};
use crate::pushdown::queries::Query;
use crate::pushdown::tables::TABLES;
use peregrine_harness::dice::Dice;
use peregrine_harness::engines::Engine;
use peregrine_harness::error::{Result, StatementContext};

/// A judge.
pub struct Judge<'a> {
    pub connection: Conn,
    pub dice: Dice,
    pub engine: Engine,
    pub shared: &'a Shared,
    /// The prefix of the schemas of its copies, and the number of copies so far.
    pub copies: (String, u32),
}

/// How a query is sent, the same for all its plans.
#[derive(Clone, Copy)]
enum Sent {
    Text,
    Prepared,
}

impl Judge<'_> {
    /// Judges until the life is over.
    ///
    /// # Errors
    /// When the server does not answer.
    pub fn work(&mut self) -> Result<()> {
        while self.shared.goes_on() {
            self.run("START TRANSACTION WITH CONSISTENT SNAPSHOT")?;
            self.snapshot()?;
            self.run("COMMIT")?;
        }
        Ok(())
    }

    fn run(&mut self, statement: &str) -> Result<()> {
        self.shared.count(1);
        self.connection.query_drop(statement).running(statement)
    }

    /// Asks queries in one snapshot, and at its end the first one again.
    fn snapshot(&mut self) -> Result<()> {
        let first = Asked::some(&mut self.dice);
        let Some((before, all)) = self.ask(&first)? else {
            return Ok(());
        };
        for _ in 0..1 + self.dice.below(6) {
            let done = match self.dice.below(10) {
                0 => self.ask_handler()?,
                _ => {
                    let asked = Asked::some(&mut self.dice);
                    self.ask(&asked)?.is_some()
                }
            };
            if !done {
                return Ok(());
            }
        }
        let query = first.with("");
        let reference = Plan::of_the_server(self.engine);
        let after = self.answer(&query, &reference, Sent::Text)?;
        if !is_lost(&after) && !agree(&query, &before, &after, all.as_ref()) {
            let told = difference(&before, &after);
            self.shared.wrong(format!(
                "{}; later in the same snapshot: {told}",
                query.text
            ));
        }
        Ok(())
    }

    fn answer(&mut self, query: &Query, plan: &Plan, sent: Sent) -> Result<Answer> {
        let setting = plan.setting();
        self.connection.query_drop(&setting).running(&setting)?;
        self.shared.count(1);
        let (sql, constants) = &query.prepared;
        match sent {
            Sent::Text => answer::text(&mut self.connection, &query.text, query.ordered),
            Sent::Prepared => answer::prepared(&mut self.connection, sql, constants, query.ordered),
        }
    }

    /// Asks by the server's own plan and by some others.
    ///
    /// Returns the answer as text, and the answer without LIMIT; `None` if the snapshot is lost.
    fn ask(&mut self, asked: &Asked) -> Result<Option<(Answer, Option<Answer>)>> {
        let reference = Plan::of_the_server(self.engine);
        let query = asked.with("");
        let wanted = self.answer(&query, &reference, Sent::Text)?;
        let prepared = self.answer(&query, &reference, Sent::Prepared)?;
        let all = self.answer_without_limit(&query, &reference, Sent::Text)?;
        let all_prepared = self.answer_without_limit(&query, &reference, Sent::Prepared)?;
        let answers = [
            Some(&wanted),
            Some(&prepared),
            all.as_ref(),
            all_prepared.as_ref(),
        ];
        if answers.into_iter().flatten().any(is_lost) {
            return Ok(None);
        }
        for _ in 0..1 + self.dice.below(4) {
            let plan = Plan::some(&mut self.dice, self.engine, asked.keys);
            let (sent, wanted, all) = match self.dice.below(2) {
                0 => (Sent::Text, &wanted, &all),
                _ => (Sent::Prepared, &prepared, &all_prepared),
            };
            let query = asked.with(&plan.hint);
            let got = self.answer(&query, &plan, sent)?;
            if is_lost(&got) {
                return Ok(None);
            }
            self.shared.judged();
            if !agree(&query, &got, wanted, all.as_ref()) {
                self.differs(asked, &plan, sent, difference(wanted, &got))?;
                return Ok(None);
            }
        }
        Ok(Some((wanted, all)))
    }

    /// Reads a table through an index with HANDLER, which must find the same as SELECT; returns false if the snapshot
    /// is lost.
    fn ask_handler(&mut self) -> Result<bool> {
        let (name, keys) = TABLES[self.dice.below(TABLES.len() as u32) as usize];
        let names = names(keys);
        let key = names[self.dice.below(names.len() as u32) as usize];
        let (first, next) = [("FIRST", "NEXT"), ("LAST", "PREV")][self.dice.below(2) as usize];
        let wanted = answer::text(&mut self.connection, &format!("SELECT * FROM {name}"), 0)?;
        if is_lost(&wanted) {
            return Ok(false);
        }
        self.run(&format!("HANDLER {name} OPEN"))?;
        let mut found = Vec::new();
        let mut read = format!("HANDLER {name} READ `{key}` {first}");
        let outcome = loop {
            let limit = 1 + self.dice.below(700);
            self.shared.count(1);
            match answer::text(&mut self.connection, &format!("{read} LIMIT {limit}"), 0)? {
                Answer::Rows(rows, _) if rows.is_empty() => break Answer::Rows(found, Vec::new()),
                Answer::Rows(rows, _) => found.extend(rows),
                error @ Answer::Error(_) => break error,
            }
            read = format!("HANDLER {name} READ `{key}` {next}");
        };
        self.run(&format!("HANDLER {name} CLOSE"))?;
        if is_lost(&outcome) {
            return Ok(false);
        }
        let outcome = match outcome {
            Answer::Rows(mut rows, order) => {
                rows.sort_unstable();
                Answer::Rows(rows, order)
            }
            error => error,
        };
        self.shared.judged();
        if outcome != wanted {
            self.shared.wrong(format!(
                "HANDLER {name} READ {key} {first}: {}, SELECT {}",
                brief(&outcome),
                brief(&wanted)
            ));
        }
        Ok(true)
    }

    /// Returns the answer without LIMIT, if the query has one.
    fn answer_without_limit(
        &mut self,
        query: &Query,
        plan: &Plan,
        sent: Sent,
    ) -> Result<Option<Answer>> {
        let Some((text, sql)) = &query.whole else {
            return Ok(None);
        };
        let whole = Query {
            text: text.clone(),
            prepared: (sql.clone(), query.prepared.1.clone()),
            whole: None,
            ordered: 0,
        };
        self.answer(&whole, plan, sent).map(Some)
    }

    /// Handles a plan that gives another answer: a fault, unless it does so on InnoDB with the same rows, too.
    ///
    /// This ends the snapshot. If the rows are lost, the case counts as undecided.
    fn differs(&mut self, asked: &Asked, plan: &Plan, sent: Sent, told: String) -> Result<()> {
        let (name, made) = &mut self.copies;
        *made += 1;
        let schema = format!("{name}_{made}");
        if !copies(&mut self.connection, &schema)? {
            let (text, setting) = (asked.with(&plan.hint).text, plan.setting());
            self.shared
                .undecided(format!("{text}; by another plan {told}; {setting}"));
            return Ok(());
        }
        let reference = Plan::of_the_server(self.engine);
        let (query, hinted) = (asked.with(""), asked.with(&plan.hint));
        let wanted = self.answer(&query, &reference, sent)?;
        let all = self.answer_without_limit(&query, &reference, sent)?;
        let got = self.answer(&hinted, plan, sent)?;
        if agree(&hinted, &got, &wanted, all.as_ref()) {
            let (text, setting) = (&hinted.text, plan.setting());
            let answer = brief(&wanted);
            self.shared.wrong(format!(
                "{text}; by another plan {told}; on InnoDB there is no difference: {answer}; {setting}"
            ));
        } else {
            self.shared.servers_own();
        }
        gone(&mut self.connection, &schema)
    }
}

fn is_lost(answer: &Answer) -> bool {
    matches!(answer, Answer::Error(code) if SNAPSHOT_IS_LOST.contains(code))
}
