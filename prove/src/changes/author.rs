//! Generates random statements, in transactions of every kind.

use super::tables::{
    Table, FREE, MOST, TABLES, WRITTEN, {self},
};
use peregrine_harness::dice::Dice;

/// Placeholder for the engine's name, where two sessions of one server need two names.
pub const ENGINE: &str = "{engine}";
/// Placeholder for the clause that makes InnoDB alter a table by copying it.
pub const BY_COPY: &str = "{by copy}";

/// The distance between the numbers from which the counter continues.
///
/// It is larger than what one statement uses or reserves.
const COUNTER_STEP: u64 = 10_000;

/// A statement.
#[derive(Debug, Clone)]
pub struct Step {
    pub sql: String,
    /// Whether all tables are to be compared after the statement.
    pub is_looked_at: bool,
}

/// Generates statements.
#[derive(Debug)]
pub struct Author {
    pub dice: Dice,
    /// The last number that was set for the counter.
    pub counter: u64,
}

impl Author {
    /// Generates the statements of a transaction, or statements outside a transaction.
    pub fn unit(&mut self) -> Vec<Step> {
        let mut all = Vec::new();
        if self.dice.below(6) == 0 {
            let level =
                ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"][self.dice.below(3) as usize];
            all.push(format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}"));
        }
        // The place in a transaction where the tables may be compared before its end.
        let mut within = None;
        match self.dice.below(40) {
            0..=15 => self.changes(3, &mut all),
            16..=31 => {
                all.push("BEGIN".to_owned());
                let begun = all.len() as u32;
                self.changes(14, &mut all);
                within = Some(begun + self.dice.below(all.len() as u32 - begun));
                let end = ["COMMIT", "COMMIT", "ROLLBACK"][self.dice.below(3) as usize];
                all.push(end.to_owned());
            }
            32..=34 => self.distributed(&mut all),
            35 | 36 => self.locked(&mut all),
            37 => self.altered(&mut all),
            38 => {
                let table = self.table().name;
                all.push(format!("ALTER TABLE {table} FORCE{BY_COPY}"));
            }
            _ => {
                // These are rare, because the tables would otherwise never hold many rows.
                let table = self.table().name;
                match self.dice.below(4) {
                    0 => all.push(format!("TRUNCATE TABLE {table}")),
                    _ => all.push("DELETE FROM notes".to_owned()),
                }
            }
        }
        let looks_within = self.dice.below(4) == 0;
        let looks_behind = self.dice.below(3) == 0;
        let last = all.len().saturating_sub(1);
        all.into_iter()
            .enumerate()
            .map(|(n, sql)| Step {
                sql,
                is_looked_at: (looks_within && within == Some(n as u32))
                    || (looks_behind && n == last),
            })
            .collect()
    }

    fn table(&mut self) -> Table {
        TABLES[self.dice.below(TABLES.len() as u32) as usize]
    }

    /// Returns a table in which each id has one row.
    fn table_of_ids(&mut self) -> Table {
        loop {
            let table = self.table();
            if table.has_unique_ids {
                return table;
            }
        }
    }

    /// Adds some changes, with savepoints between them.
    fn changes(&mut self, most: u32, all: &mut Vec<String>) {
        for _ in 0..1 + self.dice.below(most) {
            match self.dice.below(16) {
                0 => {
                    let how = [
                        "SAVEPOINT s",
                        "SAVEPOINT s",
                        "ROLLBACK TO SAVEPOINT s",
                        "RELEASE SAVEPOINT s",
                    ];
                    all.push(how[self.dice.below(4) as usize].to_owned());
                }
                1 => self.counted(all),
                2 => all.push(self.join()),
                _ => {
                    let table = self.table();
                    all.push(self.change(table));
                }
            }
        }
    }

    /// Adds a row with a given counter number, then a statement that may continue from it.
    fn counted(&mut self, all: &mut Vec<String>) {
        self.counter += COUNTER_STEP;
        all.push(format!(
            "INSERT INTO counted VALUES ({}, 0, 'x')",
            self.counter
        ));
        let (from, to) = self.ids(60);
        all.push(match self.dice.below(4) {
            0 => format!(
                "INSERT INTO counted (a, b) SELECT a, b FROM plain WHERE id BETWEEN {from} AND {to} ORDER BY id"
            ),
            1 => "INSERT INTO counted (a, b) VALUES (1, 'a'), (2, NULL), (NULL, 'c')".to_owned(),
            2 => format!("UPDATE counted SET a = a + 1, b = 'y' WHERE a BETWEEN {} AND {}", from % 50, to % 90),
            _ => {
                let from = self.dice.between(0, 90);
                format!("DELETE FROM counted WHERE a BETWEEN {from} AND {}", from + 9)
            }
        });
    }

    /// Returns two ids, at most `width` apart.
    fn ids(&mut self, width: i64) -> (i64, i64) {
        let from = self.dice.between(0, MOST);
        (from, from + self.dice.between(0, width))
    }

    /// Returns a condition that selects some rows of a table.
    fn condition(&mut self, of: &str, width: i64) -> String {
        let (from, to) = self.ids(width);
        let dice = &mut self.dice;
        match dice.below(10) {
            0 => format!("{of}a = {}", dice.below(100)),
            1 => format!(
                "{of}a BETWEEN {} AND 60 AND {of}b >= 'a'",
                55 + dice.below(9)
            ),
            2 => format!(
                "{of}e = 'x' AND {of}i BETWEEN 100 AND {}",
                100 + dice.below(900)
            ),
            3 => format!("{of}d BETWEEN {from} AND {to}"),
            4 => format!("{of}b = 'ab' AND {of}id > {from}"),
            _ => format!("{of}id BETWEEN {from} AND {to}"),
        }
    }

    /// Returns a change of one table.
    fn change(&mut self, table: Table) -> String {
        let name = table.name;
        let column = FREE[self.dice.below(FREE.len() as u32) as usize];
        let value = tables::value(&mut self.dice, column);
        let move_by = 1 + self.dice.below(40);
        match self.dice.below(20) {
            0..=5 => {
                let how =
                    ["INSERT", "INSERT", "INSERT IGNORE", "REPLACE"][self.dice.below(4) as usize];
                format!("{how} INTO {name} ({WRITTEN}) VALUES {}", self.rows(5))
            }
            6 | 7 => format!(
                "INSERT INTO {name} ({WRITTEN}) VALUES {} \
                 ON DUPLICATE KEY UPDATE {column} = VALUES({column}), n = n + 1",
                self.rows(3)
            ),
            8..=10 => {
                let condition = self.condition("", 60);
                format!("UPDATE {name} SET {column} = {value} WHERE {condition}")
            }
            11 => {
                let condition = self.condition("", 30);
                format!("UPDATE {name} SET a = a + 1, {column} = {value} WHERE {condition}")
            }
            // If the table has a unique key of `u`, it refuses the second row with this number, in whatever order the
            // rows come.
            12 => {
                let (id, u) = (self.dice.between(0, MOST), self.dice.between(0, 9_999));
                format!(
                    "UPDATE {name} SET u = {u} WHERE id BETWEEN {id} AND {}",
                    id + 2
                )
            }
            // Keys move, some over others.
            13 if table.has_unique_ids => {
                let (from, to) = self.ids(20);
                let ignore = ["", " IGNORE"][self.dice.below(2) as usize];
                format!(
                    "UPDATE{ignore} {name} SET id = id + {move_by} WHERE id BETWEEN {from} AND {to} ORDER BY id DESC"
                )
            }
            14 | 15 => {
                let condition = self.condition("", 30);
                format!("DELETE FROM {name} WHERE {condition}")
            }
            16 if table.has_unique_ids => {
                let condition = self.condition("", 200);
                format!(
                    "DELETE FROM {name} WHERE {condition} ORDER BY id LIMIT {}",
                    self.dice.below(12)
                )
            }
            17 => {
                let from = self.table_of_ids().name;
                let how = ["INSERT", "INSERT IGNORE", "REPLACE"][self.dice.below(3) as usize];
                let (low, high) = self.ids(60);
                format!(
                    "{how} INTO {name} ({WRITTEN}) SELECT id + {move_by}, a, b, t, h, e, s, i, d, f, NULL FROM {from} \
                     WHERE id BETWEEN {low} AND {high} ORDER BY id"
                )
            }
            _ => format!(
                "INSERT IGNORE INTO {name} ({WRITTEN}) VALUES {}",
                self.rows(9)
            ),
        }
    }

    fn rows(&mut self, most: u32) -> String {
        let rows: Vec<String> = (0..1 + self.dice.below(most))
            .map(|_| tables::row(&mut self.dice))
            .collect();
        rows.join(", ")
    }

    /// Returns a change of a table's rows that are joined with another table by its `id`, so each has one partner at
    /// most.
    fn join(&mut self) -> String {
        let (outer, mut inner) = (self.table(), self.table_of_ids());
        while inner.name == outer.name {
            inner = self.table_of_ids();
        }
        let (outer, inner) = (outer.name, inner.name);
        let condition = self.condition("o.", 60);
        let column = FREE[self.dice.below(FREE.len() as u32) as usize];
        let value = tables::value(&mut self.dice, column);
        match self.dice.below(4) {
            0 => format!("DELETE o FROM {outer} AS o JOIN {inner} AS i ON i.id = o.id WHERE {condition}"),
            1 => format!("DELETE o, i FROM {outer} AS o JOIN {inner} AS i ON i.id = o.a WHERE {condition}"),
            _ => format!(
                "UPDATE {outer} AS o JOIN {inner} AS i ON i.id = o.a SET o.{column} = {value} WHERE {condition}"
            ),
        }
    }

    /// Adds a distributed transaction, committed in two phases or in one.
    fn distributed(&mut self, all: &mut Vec<String>) {
        let id = format!("'changes {ENGINE}'");
        all.push(format!("XA START {id}"));
        for _ in 0..1 + self.dice.below(8) {
            let table = self.table();
            if !table.is_temporary {
                all.push(self.change_without(table, "scratch"));
            }
        }
        all.push(format!("XA END {id}"));
        match self.dice.below(5) {
            0 => all.push(format!("XA COMMIT {id} ONE PHASE")),
            1 => all.push(format!("XA ROLLBACK {id}")),
            other => {
                all.push(format!("XA PREPARE {id}"));
                let end = if other == 2 { "ROLLBACK" } else { "COMMIT" };
                all.push(format!("XA {end} {id}"));
            }
        }
    }

    /// Returns a change of `table` that does not name the table `other`.
    fn change_without(&mut self, table: Table, other: &str) -> String {
        loop {
            let statement = self.change(table);
            if !statement.contains(&format!(" {other} ")) {
                return statement;
            }
        }
    }

    /// Adds changes of one table while the session has locked it.
    ///
    /// It omits the temporary table: within LOCK TABLES, InnoDB keeps a part of a failed statement's changes there.
    fn locked(&mut self, all: &mut Vec<String>) {
        let mut table = self.table();
        while table.is_temporary {
            table = self.table();
        }
        all.push(format!("LOCK TABLES {} WRITE", table.name));
        for _ in 0..1 + self.dice.below(6) {
            // The server refuses a statement that reads a table without a lock.
            all.push(self.change_without(table, "scratch"));
        }
        all.push("UNLOCK TABLES".to_owned());
    }

    /// Adds changes of a table while it has an additional column, to old rows and to new ones.
    fn altered(&mut self, all: &mut Vec<String>) {
        let table = self.table();
        let name = table.name;
        all.push(format!(
            "ALTER TABLE {name} ADD COLUMN later VARCHAR(9) DEFAULT 'late'{BY_COPY}"
        ));
        for _ in 0..1 + self.dice.below(5) {
            all.push(self.change(table));
            let (from, to) = self.ids(60);
            all.push(format!(
                "UPDATE {name} SET later = NULL WHERE id BETWEEN {from} AND {to}"
            ));
            all.push(format!(
                "DELETE FROM {name} WHERE later = 'late' AND id BETWEEN {} AND {}",
                to,
                to + 20
            ));
        }
        all.push(format!("ALTER TABLE {name} DROP COLUMN later{BY_COPY}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_statement_is_complete_and_the_same_seed_says_the_same() {
        let author = || Author {
            dice: Dice::new(1, 1),
            counter: 0,
        };
        let (mut one, mut other) = (author(), author());
        let mut within = 0;
        for _ in 0..1_000 {
            let unit = one.unit();
            for (step, same) in unit.iter().zip(other.unit()) {
                assert_eq!(step.sql, same.sql);
                let sql = step.sql.replace(ENGINE, "").replace(BY_COPY, "");
                assert!(!sql.contains(['?', '{']), "{sql}");
            }
            let begins = unit.iter().any(|step| step.sql == "BEGIN");
            let front = &unit[..unit.len() - 1];
            within += u32::from(begins && front.iter().any(|step| step.is_looked_at));
        }
        assert!(
            within > 10,
            "{within} transactions are looked at before their ends"
        );
    }

    #[test]
    fn a_distributed_transaction_leaves_the_temporary_table_alone() {
        let mut author = Author {
            dice: Dice::new(2, 1),
            counter: 0,
        };
        for _ in 0..200 {
            let mut all = Vec::new();
            author.distributed(&mut all);
            assert!(!all.join(";").contains("scratch"));
        }
    }
}
