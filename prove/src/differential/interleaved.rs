//! Generates random statements of several sessions in one order, in which a seed picks the next session.
//!
//! It omits statements on which the engines may differ by their locks alone, or for which the manual leaves the answer
//! open: READ UNCOMMITTED, `SKIP LOCKED`, HANDLER between changes of other sessions, and procedures that end half done.
//! It also omits tables with a period, because InnoDB overlooks other sessions' rows there.

use std::collections::VecDeque;

use super::author::{Author, SESSIONS};
use super::schema::{tables, Table};
use super::values::one_of;
use super::{of_session, LOOK};
use peregrine_harness::dice::Dice;

/// The isolation levels; those at which engines differ more are listed more often.
const LEVELS: [&str; 6] = [
    "REPEATABLE READ",
    "REPEATABLE READ",
    "REPEATABLE READ",
    "READ COMMITTED",
    "READ COMMITTED",
    "SERIALIZABLE",
];

/// Returns tables of which sessions see the same on both engines, and the statements that create them.
pub fn tables_of_sessions(dice: &mut Dice) -> (Vec<Table>, Vec<String>) {
    loop {
        let (tables, script) = tables(dice);
        if !tables.iter().any(|table| table.has_period) {
            return (tables, script);
        }
    }
}

/// Returns at least `statements` statements in one order; each session completes the units that it has begun.
pub fn interleaved(dice: &mut Dice, tables: &[Table], statements: usize) -> Vec<String> {
    let mut all = Vec::new();
    let mut waiting = vec![VecDeque::new(); SESSIONS as usize];
    loop {
        let session = dice.below(SESSIONS);
        let own: &mut VecDeque<String> = &mut waiting[session as usize];
        if own.is_empty() && all.len() < statements {
            let mut author = Author {
                dice,
                tables,
                session: Some(session),
                // A statement that one engine refuses because of a lock has still raised the other engine's counter.
                raises_counters: false,
            };
            own.extend(author.unit_of_session());
        }
        all.extend(
            own.pop_front()
                .map(|sql| of_session(session as usize, &sql)),
        );
        if all.len() >= statements && waiting.iter().all(VecDeque::is_empty) {
            return all;
        }
    }
}

impl Author<'_> {
    /// Returns a statement of a session, or several that belong together.
    fn unit_of_session(&mut self) -> Vec<String> {
        let tables = self.tables;
        let table = one_of(self.dice, tables);
        let unit = match self.dice.below(100) {
            0..=51 => self.transaction_of_session(),
            52..=55 => self.without_autocommit(),
            56..=66 => vec![self.change()],
            67..=72 if table.is_automatic => self.automatic(table),
            67..=72 => vec![self.insert(table)],
            73..=74 => vec![self.joined_change()],
            75..=77 => vec![self.insert_select(table)],
            78..=79 => self.prepared(table),
            80..=81 => self.temporary(),
            82..=83 => vec![self.alter(table)],
            84 => vec![format!("TRUNCATE TABLE {}", table.name)],
            85..=88 => vec![LOOK.to_owned()],
            89..=90 => vec![self.joined_select()],
            _ => vec![self.select(table)],
        };
        self.as_sent(unit)
    }

    /// Returns a transaction of a session; half of the transactions set a new isolation level first.
    fn transaction_of_session(&mut self) -> Vec<String> {
        let mut all = Vec::new();
        if self.chance(50) {
            let level = one_of(self.dice, &LEVELS);
            all.push(format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}"));
        }
        let begins = ["BEGIN", "START TRANSACTION WITH CONSISTENT SNAPSHOT"];
        all.push((*one_of(self.dice, &begins)).to_owned());
        self.steps(&mut all);
        if self.chance(15) {
            all.push("COMMIT AND CHAIN".to_owned());
            self.steps(&mut all);
        }
        all.push(self.end());
        all
    }

    /// Returns transactions that begin implicitly.
    fn without_autocommit(&mut self) -> Vec<String> {
        let mut all = vec!["SET autocommit = 0".to_owned()];
        for _ in 0..1 + self.dice.below(2) {
            self.steps(&mut all);
            all.push(self.end());
        }
        all.push("SET autocommit = 1".to_owned());
        all
    }

    fn end(&mut self) -> String {
        let ends = ["COMMIT", "COMMIT", "ROLLBACK"];
        (*one_of(self.dice, &ends)).to_owned()
    }

    fn steps(&mut self, all: &mut Vec<String>) {
        for _ in 0..2 + self.dice.below(7) {
            let tables = self.tables;
            let table = one_of(self.dice, tables);
            let savepoint = *one_of(self.dice, &["a", "b"]);
            all.push(match self.dice.below(100) {
                0..=41 => self.change(),
                42..=47 => format!("SAVEPOINT {savepoint}"),
                48..=52 => format!("ROLLBACK TO {savepoint}"),
                53 => format!("RELEASE SAVEPOINT {savepoint}"),
                54..=64 => LOOK.to_owned(),
                65..=68 => self.joined_select(),
                69..=80 => format!(
                    "SELECT {} FROM {} WHERE id = {}",
                    table.shown(),
                    table.name,
                    self.id()
                ),
                _ => self.select(table),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{bare, split};
    use super::*;

    #[test]
    fn sessions_end_what_they_begin_and_all_of_them_read() {
        for number in 0..30 {
            let mut dice = Dice::new(5, number);
            let (tables, _) = tables_of_sessions(&mut dice);
            assert!(!tables.iter().any(|table| table.has_period));
            let script = interleaved(&mut dice, &tables, 100);
            assert!(script.len() >= 100);
            let mut looks = 0;
            for session in 0..SESSIONS as usize {
                let own = script.iter().map(|line| split(line));
                let own: Vec<&str> = own
                    .filter(|(of, _)| *of == session)
                    .map(|(_, sql)| bare(sql))
                    .collect();
                looks += own.iter().filter(|sql| **sql == LOOK).count();
                let is_begin = |sql: &&str| sql.starts_with("BEGIN") || sql.starts_with("START");
                let last = own.iter().rposition(is_begin).unwrap_or(0);
                let is_end = |sql: &&str| *sql == "COMMIT" || *sql == "ROLLBACK";
                assert!(last == 0 || own[last..].iter().any(is_end));
                let off = own
                    .iter()
                    .filter(|sql| **sql == "SET autocommit = 0")
                    .count();
                let on = own
                    .iter()
                    .filter(|sql| **sql == "SET autocommit = 1")
                    .count();
                assert_eq!(off, on);
            }
            assert!(looks > 0);
        }
    }
}
