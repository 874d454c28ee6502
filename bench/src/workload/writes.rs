//! The check of whether a cell changes tables.

use super::step::Step;
use super::Workload;
use peregrine_harness::engines::Statement;

/// The first words of statements that change no table.
const READING: [&str; 9] = [
    "SELECT", "WITH", "SHOW", "EXPLAIN", "BEGIN", "START", "COMMIT", "ROLLBACK", "SET",
];

impl Workload {
    /// Returns whether a cell or the background load changes tables: then an engine may have deferred work at its end.
    #[must_use]
    pub fn writes(&self, cell: &str) -> bool {
        let beside = self.running_beside().into_iter().map(|(at, _)| at);
        let mut all = self.transactions_of(cell).into_iter().chain(beside);
        all.any(|at| {
            let transaction = self.transactions.get(at);
            transaction.is_some_and(|transaction| any_writes(&transaction.steps, &self.statements))
        })
    }
}

fn any_writes(steps: &[Step], statements: &[Statement]) -> bool {
    steps.iter().any(|step| match step {
        Step::Ask(ask) => statements.get(ask.statement).is_some_and(changes),
        Step::Block(block) => any_writes(&block.steps, statements),
    })
}

fn changes(statement: &Statement) -> bool {
    let sql = statement.sql();
    let word = sql
        .trim_start_matches(|c: char| !c.is_alphabetic())
        .split(|c: char| !c.is_alphabetic())
        .next()
        .unwrap_or_default();
    let reads = |reading: &&str| reading.eq_ignore_ascii_case(word);
    !READING.iter().any(reads)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{builtin, Options};

    fn shipped(name: &str, set: &[(&str, i64)]) -> Workload {
        let (text, file) = builtin::find(name).expect("shipped");
        let set = set.iter().map(|(name, to)| ((*name).to_owned(), *to));
        let options = Options {
            set: set.collect(),
            ..Options::default()
        };
        Workload::read(&text, &file, &options).expect("right")
    }

    #[test]
    fn the_shipped_workloads_write_where_they_say_so() {
        let oltp = shipped("oltp", &[]);
        let mut writing = oltp.cells();
        writing.retain(|cell| oltp.writes(cell));
        assert_eq!(
            writing,
            [
                "read_write",
                "write_only",
                "update_index",
                "update_non_index",
                "insert",
                "delete"
            ]
        );
        assert!(shipped("orders", &[]).writes("mix"));
        assert!(!shipped("join", &[]).writes("JOIN_LIMIT"));
        assert!(!shipped("normal", &[]).writes("READ_FTS"));
        // The background load writes.
        assert!(shipped("normal", &[("writers", 2)]).writes("READ_FTS"));
    }
}
