//! Changes: of the session's rows, automatic values, tables of one session, and the table's locking mode.

use peregrine::{Error, Locking, RowLock, SchemaNames, Table, TableOptions};

use super::reading::all;
use super::rows::{schema, Row, Rows, LONGEST_NAME, VARIED};
use super::session::{Varied, Work};
use crate::schedules::end::{wrong, Step};
use crate::schedules::plan::OWNERS;
use crate::schedules::tables::OF_ONE_SESSION;

impl Varied<'_> {
    fn new_row(&mut self, id: u64) -> Row {
        let names: [Option<&[u8]>; 6] = [
            None,
            Some(b""),
            Some(b"a"),
            Some(b"ab"),
            Some(b"abc"),
            Some(b"b\0"),
        ];
        let name = match self.dice.below(8) {
            n @ 0..=5 => names[n as usize].map(<[u8]>::to_vec),
            _ => Some(self.long_name()),
        };
        let number = i64::from(self.dice.below(5)) - 2;
        let code = u64::from(self.dice.below(6)) * OWNERS + self.number;
        Row {
            part: u64::from(self.dice.below(3)),
            id,
            number: (self.dice.below(4) > 0).then_some(number),
            name,
            code: (self.dice.below(4) > 0).then_some(code),
        }
    }

    /// Returns a name that its index has whole, and that the row may have out of row.
    fn long_name(&mut self) -> Vec<u8> {
        let lengths = [70, 200, LONGEST_NAME];
        let len = lengths[self.dice.below(3) as usize] as usize;
        let letter = b'a' + self.dice.below(2) as u8;
        let mut name = vec![letter; len];
        // Two such names may differ only in the last byte.
        name[len - 1] = b'0' + self.dice.below(3) as u8;
        name
    }

    fn existing(&mut self, rows: &Rows) -> Option<Row> {
        let n = self.dice.below(rows.len() as u32) as usize;
        rows.values().nth(n).cloned()
    }

    /// Returns the row that the unique index has in place of another.
    fn in_the_way<'r>(rows: &'r Rows, row: &Row) -> Option<&'r Row> {
        rows.values()
            .find(|other| other.id != row.id && other.excludes(row))
    }

    /// Checks the outcome of an insert or update against the model's conflicting rows.
    fn put(
        &self,
        work: &mut Work,
        outcome: peregrine::Result<()>,
        row: Row,
        at_its_key: Option<&Row>,
    ) -> Step {
        let excluded = Self::in_the_way(&work.rows, &row);
        let expected = match &outcome {
            Err(Error::Duplicate { index: 0 }) => at_its_key,
            Err(Error::Duplicate { .. }) => excluded,
            _ => at_its_key.or(excluded),
        };
        let expected = expected.cloned();
        match (outcome, expected) {
            (Ok(()), None) => {
                work.rows.insert(row.id, row);
                Ok(())
            }
            (Ok(()), Some(other)) => wrong(format!("{row:?} was taken, though {other:?} is there")),
            (Err(Error::Duplicate { index }), other) => {
                let is_right = match &other {
                    Some(other) => work.txn.duplicate_key() == other.key(&self.table)?,
                    None => false,
                };
                match is_right {
                    true => Ok(()),
                    false => wrong(format!(
                        "{row:?} is a duplicate in index {index} of {other:?}"
                    )),
                }
            }
            (Err(error), _) => Err(error.into()),
        }
    }

    pub(super) fn insert(&mut self, work: &mut Work) -> Step {
        let id = u64::from(self.dice.below(self.plan.keys.min(30) as u32)) * OWNERS + self.number;
        let row = self.new_row(id);
        let there = work.rows.get(&id).cloned();
        if there.as_ref().is_some_and(|there| there.part != row.part) {
            // The clustered key differs, but the model has one row for each id.
            return Ok(());
        }
        work.trail += &format!(" insert {row:?};");
        let outcome = match self.dice.below(2) {
            0 => work.txn.insert(&self.table, &row.values()),
            _ => {
                let lock = RowLock::Exclusive;
                work.txn.insert_or_lock(&self.table, &row.values(), lock)
            }
        };
        self.put(work, outcome, row, there.as_ref())
    }

    pub(super) fn update(&mut self, work: &mut Work) -> Step {
        let Some(before) = self.existing(&work.rows) else {
            return Ok(());
        };
        let row = self.new_row(before.id);
        work.trail += &format!(" update to {row:?};");
        let key = before.key(&self.table)?;
        let outcome = work.txn.update(&self.table, &key, &row.values());
        self.put(work, outcome, row, None)
    }

    pub(super) fn delete(&mut self, work: &mut Work) -> Step {
        let Some(row) = self.existing(&work.rows) else {
            return Ok(());
        };
        work.trail += &format!(" delete {};", row.id);
        let key = row.key(&self.table)?;
        work.txn.delete(&self.table, &key)?;
        work.rows.remove(&row.id);
        Ok(())
    }

    pub(super) fn change(&mut self, work: &mut Work) -> Step {
        match self.dice.below(4) {
            0 => self.delete(work),
            1 => self.update(work),
            _ => self.insert(work),
        }
    }

    pub(super) fn set_savepoint(&mut self, work: &mut Work) -> usize {
        work.trail += &format!(" savepoint {};", work.savepoints.len());
        let savepoint = work.txn.savepoint();
        work.savepoints.push((savepoint, work.rows.clone()));
        work.savepoints.len() - 1
    }

    pub(super) fn back_to(&mut self, work: &mut Work, n: usize) -> Step {
        if let Some((savepoint, rows)) = work.savepoints.get(n).cloned() {
            work.trail += &format!(" back to savepoint {n};");
            work.txn.rollback_to(&savepoint)?;
            work.rows = rows;
            work.savepoints.truncate(n + 1);
        }
        Ok(())
    }

    /// Reserves automatic values, uses one, and sometimes returns the rest.
    ///
    /// Two sessions must never have the same value. If all lock the counter, a session's values follow one another.
    pub(super) fn count(&mut self, work: &mut Work) -> Step {
        work.trail += " count;";
        if self.plan.locks_counter {
            work.txn.lock_auto_increment(&self.counted)?;
        }
        let n = 1 + u64::from(self.dice.below(4));
        let gives_back = self.dice.below(2) == 0;
        let reserved = self.reserve(n, gives_back);
        if self.plan.locks_counter {
            work.txn.unlock_auto_increment(&self.counted);
        }
        let first = reserved?;
        work.txn
            .insert(&self.counted, &[first.into(), self.number.into()])?;
        Ok(())
    }

    fn reserve(
        &self,
        n: u64,
        gives_back: bool,
    ) -> std::result::Result<u64, crate::schedules::end::End> {
        let reserve = |n: u64| self.counted.reserve_auto_increment(n, 1, 1, u64::MAX);
        let first = reserve(n)?;
        if !self.given.take(first..first + n) {
            return wrong(format!(
                "of the automatic values {first} and on, {n} of them, one was given before"
            ));
        }
        if !self.plan.locks_counter {
            // If another session has reserved some meanwhile, these values stay unused.
            if gives_back {
                self.given.give_back(first + 1..first + n);
                self.counted.return_auto_increment(first + 1, first + n);
            }
            return Ok(first);
        }
        let next = reserve(1)?;
        if !self.given.take(next..next + 1) {
            return wrong(format!("the automatic value {next} was given before"));
        }
        match next == first + n {
            true => Ok(first),
            false => wrong(format!(
                "with the counter locked {next} follows {n} values from {first} on"
            )),
        }
    }

    /// Changes the table's locking mode.
    pub(super) fn set_locking(&mut self, work: &mut Work) -> Step {
        let locking = [
            Locking::Pessimistic,
            Locking::Pessimistic,
            Locking::Optimistic,
        ];
        let locking = locking[self.dice.below(3) as usize];
        work.trail += &format!(" {locking:?};");
        Ok(self.db.set_locking(VARIED, locking)?)
    }

    /// Gives the table's columns and indexes other names, while other sessions use it.
    ///
    /// Only one session does this.
    pub(super) fn set_names(&mut self, work: &mut Work) -> Step {
        let turn = self.dice.below(3);
        work.trail += &format!(" names {turn};");
        let plain = schema();
        let columns = plain.columns.iter().map(|column| &column.name);
        let indexes = plain.indexes.iter().map(|index| &index.name);
        let names = SchemaNames {
            columns: columns.map(|name| format!("{name} {turn}")).collect(),
            indexes: indexes.map(|name| format!("{name} {turn}")).collect(),
        };
        self.db.set_names(VARIED, &names)?;
        let expected = plain.named(&names)?;
        let found = self.table.schema();
        match *found == expected {
            true => Ok(()),
            false => wrong(format!("the table is {found:?} where {expected:?} was")),
        }
    }

    /// Creates a table of one session, fills and changes it, and drops it in the transaction that has used it.
    pub(super) fn own_table(&mut self, work: &mut Work) -> Step {
        self.next_name += 1;
        let name = format!("{OF_ONE_SESSION}{} {}", self.number, self.next_name);
        work.trail += &format!(" table {name};");
        let options = TableOptions {
            of_one_session: true,
            ..TableOptions::default()
        };
        let table = self.db.create_table_with(&name, &schema(), &options)?;
        let rows: Vec<Row> = (0..1 + u64::from(self.dice.below(20)))
            .map(|id| Row {
                code: None,
                ..self.new_row(id)
            })
            .collect();
        work.txn.begin_fill(&table)?;
        let filled = rows
            .iter()
            .try_for_each(|row| work.txn.insert(&table, &row.values()));
        work.txn.end_fill();
        if let Err(error) = filled {
            self.drop_unfilled(work, &name)?;
            return Err(error.into());
        }
        let before = work.txn.savepoint();
        let more = self.new_row(1_000);
        let key = more.key(&table)?;
        work.txn.insert(&table, &more.values())?;
        self.has_rows(work, &table, rows.len() + 1)?;
        if self.dice.below(2) == 0 {
            work.txn.delete(&table, &key)?;
        } else {
            work.txn.rollback_to(&before)?;
        }
        let mut found = all(&mut work.txn, &table, 0, false)?;
        found.sort_unstable_by_key(|row| row.id);
        if found != rows {
            return wrong(format!("table {name} has {found:?} where {rows:?} were"));
        }
        Ok(self.db.drop_table_used_by(&mut work.txn, &name)?)
    }

    /// Drops a table whose filling failed, since its last row may lack entries.
    ///
    /// Failures for memory, frames and kills are drawn again at each try.
    fn drop_unfilled(&self, work: &mut Work, name: &str) -> Step {
        let mut dropped = Ok(());
        for _ in 0..100 {
            dropped = self.db.drop_table_used_by(&mut work.txn, name);
            match &dropped {
                Err(Error::Interrupted | Error::OutOfMemory { .. } | Error::TooLarge(_)) => {}
                _ => break,
            }
        }
        Ok(dropped?)
    }

    fn has_rows(&self, work: &mut Work, table: &std::sync::Arc<Table>, count: usize) -> Step {
        for index in 0..=table.schema().indexes.len() {
            let found = all(&mut work.txn, table, index, false)?.len();
            if found != count {
                return wrong(format!(
                    "index {index} of table {} has {found} rows, not {count}",
                    table.name()
                ));
            }
        }
        Ok(())
    }
}
