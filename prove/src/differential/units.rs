//! Generates groups of statements: transactions of every level, XA transactions, and work on a temporary table.

use super::author::Author;
use super::schema::Table;
use super::values::one_of;
use super::ENGINE;

/// The isolation level at which a session begins.
const USUAL: &str = "REPEATABLE READ";

/// The temporary table's name.
const TEMPORARY: &str = "w";

impl Author<'_> {
    fn a_change(&mut self) -> String {
        match self.chance(15) {
            true => {
                let tables = self.tables;
                let table = one_of(self.dice, tables);
                self.select(table)
            }
            false => self.change(),
        }
    }

    /// Returns a transaction at another level.
    ///
    /// It sets the session's level. A level for the next transaction only would be used up by the reads of the tables
    /// in between.
    pub(super) fn of_a_level(&mut self) -> Vec<String> {
        // Below REPEATABLE READ, InnoDB overlooks overlapping periods and accepts rows despite WITHOUT OVERLAPS.
        let levels: &[&str] = match self.tables.iter().any(|table| table.has_period) {
            true => &["SERIALIZABLE"],
            false => &["READ UNCOMMITTED", "READ COMMITTED", "SERIALIZABLE"],
        };
        let level = *one_of(self.dice, levels);
        let set = |level: &str| format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}");
        let mut all = vec![set(level)];
        all.extend(self.transaction());
        all.push(set(USUAL));
        all
    }

    /// Returns an XA transaction; its name belongs to the whole server, so each engine uses another name.
    pub(super) fn by_xa(&mut self) -> Vec<String> {
        let xa = |what: &str| format!("XA {what} '{ENGINE}'");
        let mut all = vec![xa("START")];
        for _ in 0..1 + self.dice.below(4) {
            let change = self.a_change();
            all.push(change);
        }
        all.push(xa("END"));
        match self.dice.below(8) {
            0 => all.push(xa("ROLLBACK")),
            1 => all.push(xa("COMMIT") + " ONE PHASE"),
            2 | 3 => all.extend([xa("PREPARE"), xa("ROLLBACK")]),
            _ => all.extend([xa("PREPARE"), xa("COMMIT")]),
        }
        all
    }

    /// Returns the life of a temporary table: created, changed in a transaction or outside one, read and dropped.
    pub(super) fn temporary(&mut self) -> Vec<String> {
        let table = loop {
            let table = Table::any(self.dice, TEMPORARY);
            let is_plain = table.definitions.len() == 1 && !table.is_partitioned();
            if is_plain && !table.is_versioned && !table.has_period {
                break table;
            }
        };
        let create = &table.definitions[0];
        let mut all = vec![create.replacen("CREATE TABLE", "CREATE TEMPORARY TABLE", 1)];
        let in_transaction = self.chance(50);
        if in_transaction {
            all.push("BEGIN".into());
        }
        for _ in 0..2 + self.dice.below(5) {
            let sql = match self.dice.below(8) {
                0..=2 => self.insert(&table),
                3 => self.insert_select(&table),
                4 => self.update(&table),
                5 => self.delete(&table),
                6 => self.select(&table),
                // This change mixes other tables with the temporary one.
                _ => self.change(),
            };
            all.push(sql);
        }
        if in_transaction {
            all.push((*one_of(self.dice, &["COMMIT", "ROLLBACK"])).into());
        }
        let (shown, order) = (table.shown_in_order(), table.whole_order());
        all.push(match order {
            // The order of a window function is not the order of the answer.
            Some(order) if !table.is_automatic => format!("SELECT {shown} FROM {TEMPORARY}{order}"),
            _ => format!("SELECT {} FROM {TEMPORARY}", table.shown()),
        });
        all.push(format!("DROP TEMPORARY TABLE {TEMPORARY}"));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::super::schema::tables;
    use super::*;
    use peregrine_harness::dice::Dice;

    #[test]
    fn what_is_begun_is_ended() {
        let mut dice = Dice::new(3, 3);
        let (tables, _) = tables(&mut dice);
        let mut author = Author {
            dice: &mut dice,
            tables: &tables,
            session: None,
            raises_counters: true,
        };
        for _ in 0..200 {
            let xa = author.by_xa();
            assert_eq!(xa[0], format!("XA START '{ENGINE}'"));
            let last = xa.last().expect("one");
            assert!(last.starts_with("XA COMMIT") || last.starts_with("XA ROLLBACK"));
            let temporary = author.temporary();
            assert!(temporary[0].starts_with("CREATE TEMPORARY TABLE w "));
            assert_eq!(temporary.last().expect("one"), "DROP TEMPORARY TABLE w");
            let level = author.of_a_level();
            assert!(level.last().expect("one").ends_with(USUAL));
        }
    }
}
