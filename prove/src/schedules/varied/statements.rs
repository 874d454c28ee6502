//! Reads: for the session's own rows, they must find exactly the rows of the model.

use std::cmp::Ordering;
use std::ops::ControlFlow;

use peregrine::{
    Aggregate, Aggregated, Comparison, Condition, Cursor, CursorOptions, EntryFilter, Error, Group,
    IndexRange, Isolation, OwnedValue, Result, RowLock, RowView, Seek, Value, Verdict,
};

use super::reading::{all, in_order, to_the_end};
use super::rows::{Row, BY_CODE, BY_NAME, CODE, ID, NAME, NUMBER, PART};
use super::session::{Varied, Work};
use crate::schedules::end::{wrong, Step};
use crate::schedules::plan::OWNERS;

/// An entry filter for entries without a code, which come first in the index's order.
struct WithoutCode {
    stops: bool,
}

impl EntryFilter for WithoutCode {
    fn look(&mut self, entry: &RowView<'_>) -> Result<Verdict> {
        Ok(match entry.get(CODE)? {
            Value::Null => Verdict::Keep,
            _ if self.stops => Verdict::Stop,
            _ => Verdict::Skip,
        })
    }
}

/// Returns a column's value; a name may be stored out of row.
fn value_of(entry: &RowView<'_>, column: usize) -> Result<OwnedValue> {
    if column != NAME {
        return Ok(entry.get(column)?.to_owned());
    }
    let mut name = Vec::new();
    Ok(match entry.get_large(NAME, &mut name)? {
        true => OwnedValue::Bytes(name),
        false => OwnedValue::Null,
    })
}

fn holds(condition: &Condition<'_>, row: &Row) -> bool {
    match condition {
        Condition::IsNull(NUMBER) => row.number.is_none(),
        Condition::IsNotNull(NUMBER) => row.number.is_some(),
        Condition::IsNull(_) => row.code.is_none(),
        Condition::IsNotNull(_) => row.code.is_some(),
        Condition::Compare(_, comparison, Value::Int(with)) => {
            row.number.is_some_and(|number| match comparison {
                Comparison::Less => number < *with,
                Comparison::GreaterOrEqual => number >= *with,
                Comparison::NotEqual => number != *with,
                _ => number == *with,
            })
        }
        Condition::Compare(..) => false,
    }
}

impl Varied<'_> {
    /// Checks that the session's rows among those found are those of the model for which `wanted` holds, in the order
    /// of an index.
    pub(super) fn must_be(
        &self,
        work: &Work,
        found: &[Row],
        index: usize,
        backwards: bool,
        wanted: impl Fn(&Row) -> bool,
    ) -> Step {
        let own: Vec<&Row> = found
            .iter()
            .filter(|row| row.id % OWNERS == self.number)
            .collect();
        let mut expected: Vec<&Row> = work.rows.values().filter(|row| wanted(row)).collect();
        expected.sort_unstable_by(|a, b| a.order(b, index));
        if backwards {
            expected.reverse();
        }
        match own == expected {
            true => Ok(()),
            false => wrong(format!(
                "index {index}, backwards: {backwards}: own rows {own:?} where {expected:?} were"
            )),
        }
    }

    /// Reads all rows by an index, with or without a lock.
    pub(super) fn scan(&mut self, work: &mut Work) -> Step {
        let index = self.dice.below(BY_NAME as u32 + 1) as usize;
        let backwards = self.dice.below(2) == 0;
        let locks = [RowLock::None, RowLock::Shared, RowLock::Exclusive];
        let options = CursorOptions {
            lock: locks[self.dice.below(5) as usize % 3],
            ..CursorOptions::default()
        };
        work.trail += &format!(" scan {index}, {:?};", options.lock);
        let mut cursor = Cursor::new(&self.table, index, options);
        if self.dice.below(2) == 0 {
            cursor.set_columns(Some(&[PART, ID, NUMBER, NAME, CODE]));
        }
        let found = to_the_end(&mut work.txn, cursor, backwards)?;
        if !in_order(&found, index, backwards) {
            return wrong(format!("index {index}: rows twice, or out of order"));
        }
        self.must_be(work, &found, index, backwards, |_| true)
    }

    /// Reads the rows without a code, by a filter of entries.
    pub(super) fn filtered(&mut self, work: &mut Work) -> Step {
        if !self.table.index_covers(BY_CODE, CODE) {
            return Ok(());
        }
        let backwards = self.dice.below(2) == 0;
        let stops = !backwards && self.dice.below(2) == 0;
        work.trail += &format!(" without a code, backwards: {backwards}, stops: {stops};");
        let mut cursor = Cursor::new(&self.table, BY_CODE, CursorOptions::default());
        cursor.set_filter(Some(Box::new(WithoutCode { stops })));
        let found = to_the_end(&mut work.txn, cursor, backwards)?;
        if found.iter().any(|row| row.code.is_some()) {
            return wrong("a filter of entries let a row through that it had refused".into());
        }
        self.must_be(work, &found, BY_CODE, backwards, |row| row.code.is_none())
    }

    /// Reads index entries without their rows.
    pub(super) fn entries(&mut self, work: &mut Work) -> Step {
        let index = self.dice.below(BY_NAME as u32 + 1) as usize;
        let covers = |column: &usize| self.table.index_covers(index, *column);
        let columns: Vec<usize> = [PART, ID, NUMBER, NAME, CODE]
            .into_iter()
            .filter(covers)
            .collect();
        if !columns.contains(&ID) {
            return Ok(());
        }
        work.trail += &format!(" entries of {index};");
        let options = CursorOptions {
            index_only: true,
            ..CursorOptions::default()
        };
        let mut cursor = Cursor::new(&self.table, index, options);
        if self.dice.below(2) == 0 {
            cursor.set_columns(Some(&columns));
        }
        let mut found = Vec::new();
        let mut more = cursor.seek(&mut work.txn, &[], Seek::First)?;
        while more {
            let entry = cursor.row()?;
            let values = columns.iter().map(|&column| value_of(&entry, column));
            let values = values.collect::<Result<Vec<OwnedValue>>>()?;
            if matches!(entry.get(ID)?, Value::UInt(id) if id % OWNERS == self.number) {
                found.push(values);
            }
            more = cursor.next(&mut work.txn)?;
        }
        let mut rows: Vec<&Row> = work.rows.values().collect();
        rows.sort_unstable_by(|a, b| a.order(b, index));
        let expected = rows.iter().map(|row| {
            let values = row.values();
            let values = columns.iter().map(|&column| values[column].to_owned());
            values.collect::<Vec<OwnedValue>>()
        });
        let expected: Vec<Vec<OwnedValue>> = expected.collect();
        match found == expected {
            true => Ok(()),
            false => wrong(format!(
                "entries of index {index}: own {found:?} where {expected:?} were"
            )),
        }
    }

    /// Checks that aggregates over rows with NULLs are those of the rows that a scan finds.
    pub(super) fn aggregates(&mut self, work: &mut Work) -> Step {
        if work.txn.isolation() == Isolation::ReadCommitted {
            return Ok(());
        }
        let with = Value::Int(i64::from(self.dice.below(4)) - 2);
        let comparisons = [
            Comparison::Less,
            Comparison::GreaterOrEqual,
            Comparison::NotEqual,
            Comparison::Equal,
        ];
        let comparison = comparisons[self.dice.below(4) as usize];
        let conditions = match self.dice.below(5) {
            0 => vec![],
            1 => vec![Condition::IsNull(NUMBER)],
            2 => vec![Condition::IsNotNull(NUMBER), Condition::IsNull(CODE)],
            3 => vec![Condition::IsNotNull(CODE)],
            _ => vec![Condition::Compare(NUMBER, comparison, with)],
        };
        work.trail += &format!(" aggregates where {conditions:?};");
        let asked = [
            Aggregate::Rows,
            Aggregate::Count(CODE),
            Aggregate::Sum(NUMBER),
            Aggregate::Min(NUMBER),
            Aggregate::Max(NUMBER),
        ];
        let index = match Aggregate::are_possible(&self.table, BY_CODE, &conditions, &asked) {
            true => [0, BY_CODE][self.dice.below(2) as usize],
            false => 0,
        };
        let range = IndexRange::whole(index);
        let found = work
            .txn
            .aggregate(&self.table, &range, &conditions, &asked)?;
        let groups = work.txn.aggregate_groups(
            &self.table,
            &IndexRange::whole(0),
            &conditions,
            NUMBER,
            &[Aggregate::Rows],
        )?;
        let mut rows = all(&mut work.txn, &self.table, 0, false)?;
        rows.retain(|row| conditions.iter().all(|condition| holds(condition, row)));
        let numbers: Vec<i64> = rows.iter().filter_map(|row| row.number).collect();
        let value = |number: Option<&i64>| Aggregated::Value(number.copied().map(OwnedValue::Int));
        let codes = rows.iter().filter(|row| row.code.is_some()).count();
        let expected = vec![
            Aggregated::Count(rows.len() as u64),
            Aggregated::Count(codes as u64),
            Aggregated::Sum {
                sum: numbers.iter().copied().map(i128::from).sum(),
                values: numbers.len() as u64,
            },
            value(numbers.iter().min()),
            value(numbers.iter().max()),
        ];
        if found != expected {
            return wrong(format!(
                "aggregates by index {index}: {found:?} where {expected:?} were"
            ));
        }
        rows.sort_by_key(|row| row.number);
        let expected = rows
            .chunk_by(|a, b| a.number == b.number)
            .map(|rows| Group {
                value: rows[0].number.map(OwnedValue::Int),
                answers: vec![Aggregated::Count(rows.len() as u64)],
            });
        let expected: Vec<Group> = expected.collect();
        match groups == expected {
            true => Ok(()),
            false => wrong(format!("groups {groups:?} where {expected:?} were")),
        }
    }

    /// Reads rows by the library's fast reads of one snapshot.
    pub(super) fn rows_of_snapshot(&mut self, work: &mut Work) -> Step {
        if work.txn.isolation() == Isolation::Serializable {
            return Ok(());
        }
        work.trail += " rows;";
        let mut found = Vec::new();
        let mut rows = work.txn.rows(&self.table)?;
        for n in 0..self.plan.keys.min(30) {
            let id = n * OWNERS + self.number;
            let Some(row) = work.rows.get(&id) else {
                continue;
            };
            let key = row.key(&self.table)?;
            let whole = rows.get(&key)?.map(|view| Row::read(&view)).transpose()?;
            let values = row.values();
            let columns = rows.columns(&key, [CODE, NUMBER])?;
            let are_right = columns == Some([values[CODE], values[NUMBER]]);
            let in_place = rows.get_in_place(&key, |view| Row::read_in_place(&view, Some(row)))?;
            let in_place = in_place.transpose()?;
            if whole.as_ref() != Some(row) || in_place.as_ref() != Some(row) || !are_right {
                return wrong(format!(
                    "row {row:?} is {whole:?}, and {in_place:?} in its place, by Transaction::rows"
                ));
            }
        }
        let known = |view: &RowView<'_>| match view.get(ID)? {
            Value::UInt(id) => Row::read_in_place(view, work.rows.get(&id)),
            other => Err(Error::Internal(format!("{other:?} as an id"))),
        };
        let read = rows.each(&[], |view| match known(&view) {
            Ok(row) => {
                found.push(row);
                ControlFlow::Continue(())
            }
            Err(error) => ControlFlow::Break(error),
        })?;
        drop(rows);
        if let Some(error) = read {
            return Err(error.into());
        }
        if !in_order(&found, 0, false) {
            return wrong("Rows::each: rows twice, or out of order".into());
        }
        self.must_be(work, &found, 0, false, |_| true)
    }

    /// Checks that a cursor keeps its position over the end of a statement, changes, and a rollback to a savepoint.
    pub(super) fn kept_cursor(&mut self, work: &mut Work) -> Step {
        let index = self.dice.below(BY_NAME as u32 + 1) as usize;
        work.trail += &format!(" a cursor over {index} begins;");
        let mut cursor = Cursor::new(&self.table, index, CursorOptions::default());
        let mut more = cursor.seek(&mut work.txn, &[], Seek::First)?;
        for _ in 0..self.dice.below(8) {
            if more {
                more = cursor.next(&mut work.txn)?;
            }
        }
        if !more {
            return Ok(());
        }
        let stood = Row::read(&cursor.row()?)?;
        work.txn.end_statement();
        work.txn.start_statement();
        self.change(work)?;
        if self.dice.below(2) == 0 {
            let n = self.set_savepoint(work);
            self.change(work)?;
            self.back_to(work, n)?;
        }
        work.txn.end_statement();
        work.txn.start_statement();
        work.trail += " the cursor goes on;";
        let mut found = Vec::new();
        while cursor.next(&mut work.txn)? {
            found.push(Row::read(&cursor.row()?)?);
        }
        // The row of the cursor's position may have moved, so leave it out.
        found.retain(|row| row.id != stood.id);
        self.must_be(work, &found, index, false, |row| {
            row.id != stood.id && stood.order(row, index) == Ordering::Less
        })
    }

    /// Reads at READ COMMITTED without waits for rows, and unlocks the rows that it does not want.
    pub(super) fn semi_consistent(&mut self, work: &mut Work) -> Step {
        if work.txn.isolation() != Isolation::ReadCommitted {
            return Ok(());
        }
        work.trail += " semi-consistent;";
        let options = CursorOptions {
            lock: RowLock::Exclusive,
            ..CursorOptions::default()
        };
        let mut cursor = Cursor::new(&self.table, 0, options);
        cursor.set_semi_consistent(true);
        let mut found = Vec::new();
        let mut more = cursor.seek(&mut work.txn, &[], Seek::First)?;
        while more {
            let row = Row::read(&cursor.row()?)?;
            let is_own = row.id % OWNERS == self.number;
            if !is_own || cursor.was_semi_consistent() || self.dice.below(2) == 0 {
                cursor.unlock_row(&mut work.txn);
            }
            found.push(row);
            more = cursor.next(&mut work.txn)?;
        }
        if !in_order(&found, 0, false) {
            return wrong("semi-consistent: rows twice, or out of order".into());
        }
        self.must_be(work, &found, 0, false, |_| true)
    }
}
