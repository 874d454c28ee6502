//! Reads of the database that are compared with the model: every index, in both directions, with rows and index-only,
//! by prefixes and by whole keys.

use std::cmp::Ordering;
use std::ops::ControlFlow;
use std::sync::Arc;

use peregrine::{
    Cursor, CursorOptions, Error, Isolation, MultiGet, OwnedValue, RowLock, RowView, Seek, Table,
    TableSchema, Transaction, Value,
};
use rand::Rng;

use super::{Model, Rows, World};
use crate::tables::schemas::{self, key_order, Row};

impl World {
    /// Compares a random index of a random table with the model, in one of several ways.
    pub(super) fn look(&mut self, txn: &mut Transaction, model: &Model, lock: RowLock) {
        let names: Vec<String> = model
            .keys()
            .filter(|n| self.db().table(n).is_ok())
            .cloned()
            .collect();
        if names.is_empty() {
            return;
        }
        let name = &names[self.rng.random_range(0..names.len())];
        let table = self.db().table(name).unwrap();
        let entry = &model[name];
        let index = self.rng.random_range(0..=entry.schema.indexes.len());
        let index_only = self.rng.random_bool(0.4);
        let mut cursor = Cursor::new(
            &table,
            index,
            CursorOptions {
                lock,
                index_only,
                ..CursorOptions::default()
            },
        );
        // Some of the ways don't read an empty table, and then take no snapshot.
        assert!(txn.get(&table, b"", |_| ()).unwrap().is_none());
        let sorted = sorted(&entry.schema, &entry.rows, index);
        trace!(
            "look at {name}, index {index}, index_only {index_only}, {lock:?}, {} rows",
            sorted.len()
        );

        match self.rng.random_range(0..8) {
            0 => self.walk(txn, &mut cursor, &entry.schema, index, &sorted, true),
            1 => self.walk(txn, &mut cursor, &entry.schema, index, &sorted, false),
            2 => self.zigzag(txn, &mut cursor, &entry.schema, index, &sorted),
            3 => self.gets(txn, &table, &entry.rows),
            6 if lock == RowLock::None && txn.isolation() != Isolation::Serializable => {
                self.rows(txn, &table, &sorted, index);
            }
            4 | 5 if lock == RowLock::None => {
                self.aggregates(txn, &table, &entry.schema, index, &sorted);
            }
            _ => self.seeks(txn, &mut cursor, &entry.schema, index, &sorted),
        }
    }

    fn walk(
        &mut self,
        txn: &mut Transaction,
        cursor: &mut Cursor,
        schema: &TableSchema,
        index: usize,
        sorted: &[(&Vec<u8>, &Row)],
        forward: bool,
    ) {
        let to = if forward { Seek::First } else { Seek::Last };
        let mut more = cursor.seek(txn, b"", to).unwrap();
        let mut n = 0;
        while more {
            assert!(
                n < sorted.len(),
                "index {index} has more than {} entries: {:02x?}",
                sorted.len(),
                cursor.key()
            );
            let at = if forward { n } else { sorted.len() - 1 - n };
            check_at(cursor, schema, index, sorted[at]);
            n += 1;
            more = if forward {
                cursor.next(txn).unwrap()
            } else {
                cursor.prev(txn).unwrap()
            };
        }
        assert_eq!(n, sorted.len());
        assert!(cursor.row().is_err());
    }

    /// Steps back and forth.
    fn zigzag(
        &mut self,
        txn: &mut Transaction,
        cursor: &mut Cursor,
        schema: &TableSchema,
        index: usize,
        sorted: &[(&Vec<u8>, &Row)],
    ) {
        if !cursor.seek(txn, b"", Seek::First).unwrap() {
            assert!(sorted.is_empty());
            return;
        }
        let mut at = 0;
        for _ in 0..30 {
            check_at(cursor, schema, index, sorted[at]);
            if self.rng.random_bool(0.6) {
                if !cursor.next(txn).unwrap() {
                    assert_eq!(at, sorted.len() - 1);
                    return;
                }
                at += 1;
            } else {
                if !cursor.prev(txn).unwrap() {
                    assert_eq!(at, 0);
                    return;
                }
                at -= 1;
            }
        }
    }

    fn gets(&mut self, txn: &mut Transaction, table: &Arc<Table>, rows: &Rows) {
        for _ in 0..10 {
            if rows.is_empty() {
                return;
            }
            let n = self.rng.random_range(0..rows.len());
            let (key, row) = rows.iter().nth(n).unwrap();
            let got = txn.get(table, key, |view| view.to_values()).unwrap();
            assert_eq!(&got.unwrap().unwrap(), row);
            let mut absent = key.clone();
            absent.push(0);
            assert!(txn.get(table, &absent, |_| ()).unwrap().is_none());
        }
        self.multi_gets(txn, table, rows);
    }

    /// Reads some rows together with keys that do not exist; some of them twice.
    fn multi_gets(&mut self, txn: &mut Transaction, table: &Arc<Table>, rows: &Rows) {
        let keys: Vec<_> = rows.iter().collect();
        let mut all = MultiGet::new(table);
        for _ in 0..3 {
            let wanted: Vec<(&Vec<u8>, Option<&Row>)> = (0..self.rng.random_range(0..100))
                .map(|_| {
                    let (key, row) = keys[self.rng.random_range(0..keys.len())];
                    (key, self.rng.random_bool(0.8).then_some(row))
                })
                .collect();
            all.clear();
            for (key, row) in &wanted {
                let absent = [key, &b"\0"[..]].concat();
                all.add(if row.is_some() { key } else { &absent }).unwrap();
            }
            assert!(wanted.is_empty() || all.row(0).unwrap().is_none());
            txn.multi_get(&mut all).unwrap();
            for (n, (_, want)) in wanted.iter().enumerate() {
                let got = all.row(n).unwrap().map(|row| row.to_values().unwrap());
                assert_eq!(got.as_ref(), *want);
            }
            assert!(all.row(wanted.len()).unwrap().is_none());
        }
    }

    /// Reads rows by one snapshot: some by their keys, copied and in place, and all from some key on.
    fn rows(
        &mut self,
        txn: &mut Transaction,
        table: &Arc<Table>,
        sorted: &[(&Vec<u8>, &Row)],
        index: usize,
    ) {
        let mut rows = txn.rows(table).unwrap();
        for _ in 0..10 {
            if sorted.is_empty() {
                break;
            }
            let (key, row) = sorted[self.rng.random_range(0..sorted.len())];
            let got = rows.get(key).unwrap().unwrap().to_values().unwrap();
            assert_eq!(&got, row);
            let columns = [(); 2].map(|()| self.rng.random_range(0..row.len()));
            let some = rows.columns(key, columns).unwrap().unwrap();
            for (column, value) in columns.into_iter().zip(some) {
                assert!(is_value(value, &row[column]), "{column} {value:?} {row:?}");
            }
            let same = rows.get_in_place(key, |view| is_row(&view, row)).unwrap();
            assert_eq!(same, Some(true), "{row:?}");
            let mut absent = key.clone();
            absent.push(0);
            assert!(rows.get(&absent).unwrap().is_none());
            assert!(rows.columns(&absent, [0]).unwrap().is_none());
            assert!(rows.get_in_place(&absent, |_| ()).unwrap().is_none());
        }
        if index != 0 {
            return;
        }
        let first = self.rng.random_range(0..=sorted.len());
        let from = sorted.get(first).map_or(&[][..], |(key, _)| &key[..]);
        let want = &sorted[if from.is_empty() { 0 } else { first }..];
        let mut n = 0;
        let ended = rows.each(from, |view| {
            assert!(is_row(&view, want[n].1), "row {n}: {:?}", want[n].1);
            n += 1;
            match n < want.len() || first % 2 == 0 {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(n),
            }
        });
        let broken = (first % 2 == 1 && !want.is_empty()).then_some(want.len());
        assert_eq!((ended.unwrap(), n), (broken, want.len()));
    }

    /// Seeks in every way by a random prefix of the key.
    fn seeks(
        &mut self,
        txn: &mut Transaction,
        cursor: &mut Cursor,
        schema: &TableSchema,
        index: usize,
        sorted: &[(&Vec<u8>, &Row)],
    ) {
        let parts = match index {
            0 => match &schema.primary {
                Some(key) => key.parts.clone(),
                None => return,
            },
            n => schema.indexes[n - 1].parts.clone(),
        };
        for _ in 0..6 {
            let count = self.rng.random_range(1..=parts.len());
            let row: Row = if self.rng.random_bool(0.5) && !sorted.is_empty() {
                sorted[self.rng.random_range(0..sorted.len())].1.clone()
            } else {
                schemas::row(&mut self.rng, schema)
            };
            let values: Vec<Value<'_>> = parts[..count]
                .iter()
                .map(|p| row[p.column].as_value())
                .collect();
            let table = cursor.table().clone();
            let prefix = table.encode_key(index, &values).unwrap();
            let order = |at: usize| key_order(schema, &parts[..count], sorted[at].1, &row);
            let first_at = (0..sorted.len())
                .find(|&i| order(i) != Ordering::Less)
                .unwrap_or(sorted.len());
            let first_after = (0..sorted.len())
                .find(|&i| order(i) == Ordering::Greater)
                .unwrap_or(sorted.len());
            let before = |n: usize| n.checked_sub(1);
            let within = |n: usize| (n < sorted.len()).then_some(n);
            for (to, want) in [
                (Seek::Exact, (first_at < first_after).then_some(first_at)),
                (
                    Seek::ExactLast,
                    (first_at < first_after).then(|| first_after - 1),
                ),
                (Seek::AtOrAfter, within(first_at)),
                (Seek::After, within(first_after)),
                (Seek::AtOrBefore, before(first_after)),
                (Seek::Before, before(first_at)),
            ] {
                let found = cursor.seek(txn, &prefix, to).unwrap();
                assert_eq!(
                    found,
                    want.is_some(),
                    "{to:?} of {values:?} in index {index}"
                );
                let Some(at) = want else {
                    let gap = match to {
                        Seek::Exact | Seek::AtOrAfter | Seek::Before => first_at,
                        _ => first_after,
                    };
                    self.look_around(cursor, txn, schema, index, sorted, gap);
                    continue;
                };
                check_at(cursor, schema, index, sorted[at]);
                match to {
                    Seek::Exact => {
                        for &want in &sorted[first_at + 1..first_after] {
                            assert!(cursor.next_same_prefix(txn).unwrap());
                            check_at(cursor, schema, index, want);
                        }
                        assert!(!cursor.next_same_prefix(txn).unwrap());
                        self.look_around(cursor, txn, schema, index, sorted, first_after);
                    }
                    Seek::ExactLast | Seek::AtOrBefore | Seek::Before => {
                        let more = cursor.prev(txn).unwrap();
                        assert_eq!(more, at > 0);
                        if more {
                            check_at(cursor, schema, index, sorted[at - 1]);
                        } else {
                            self.look_around(cursor, txn, schema, index, sorted, 0);
                        }
                    }
                    _ => {
                        let more = cursor.next(txn).unwrap();
                        assert_eq!(more, at + 1 < sorted.len());
                        if more {
                            check_at(cursor, schema, index, sorted[at + 1]);
                        } else {
                            self.look_around(cursor, txn, schema, index, sorted, sorted.len());
                        }
                    }
                }
            }
            // A range with an end.
            let inclusive = self.rng.random_bool(0.5);
            cursor.set_end(&prefix, inclusive);
            let end = if inclusive { first_after } else { first_at };
            let mut n = 0;
            let mut more = cursor.seek(txn, b"", Seek::First).unwrap();
            while more {
                check_at(cursor, schema, index, sorted[n]);
                n += 1;
                more = cursor.next(txn).unwrap();
            }
            assert_eq!(n, end);
            let back = cursor.prev(txn).unwrap();
            assert_eq!(back, end > 0);
            if back {
                check_at(cursor, schema, index, sorted[end - 1]);
            }
            cursor.clear_end();
        }
    }

    /// Checks that a cursor without an entry continues from its place, in either direction.
    fn look_around(
        &mut self,
        cursor: &mut Cursor,
        txn: &mut Transaction,
        schema: &TableSchema,
        index: usize,
        sorted: &[(&Vec<u8>, &Row)],
        mut gap: usize,
    ) {
        for _ in 0..3 {
            assert!(cursor.key().is_empty());
            let forward = self.rng.random_bool(0.5);
            let more = if forward {
                cursor.next(txn).unwrap()
            } else {
                cursor.prev(txn).unwrap()
            };
            if forward {
                assert_eq!(more, gap < sorted.len(), "next in index {index}");
            } else {
                assert_eq!(more, gap > 0, "previous in index {index}");
                gap -= usize::from(more);
            }
            if more {
                check_at(cursor, schema, index, sorted[gap]);
                return;
            }
        }
    }
}

/// Returns whether a row is the expected one, as far as its values are stored in the row.
fn is_row(view: &RowView<'_>, row: &Row) -> bool {
    (0..row.len()).all(|column| is_value(view.get(column).unwrap(), &row[column]))
}

/// Returns whether a value is the expected one; for a value outside the row, whether it has the expected length.
fn is_value(value: Value<'_>, want: &OwnedValue) -> bool {
    match value {
        Value::OutOfRow(len) => {
            matches!(want, OwnedValue::Bytes(bytes) if bytes.len() as u64 == len)
        }
        value => value.to_owned() == *want,
    }
}

/// Returns the model's rows in the order of an index.
fn sorted<'a>(schema: &TableSchema, rows: &'a Rows, index: usize) -> Vec<(&'a Vec<u8>, &'a Row)> {
    let mut all: Vec<(&Vec<u8>, &Row)> = rows.iter().collect();
    let parts = match index {
        0 => schema.primary.as_ref().map_or(&[][..], |k| &k.parts),
        n => &schema.indexes[n - 1].parts,
    };
    all.sort_by(|a, b| key_order(schema, parts, a.1, b.1).then_with(|| a.0.cmp(b.0)));
    all
}

/// Checks that the cursor is at this row, and gives each column that it can.
fn check_at(cursor: &mut Cursor, schema: &TableSchema, index: usize, want: (&Vec<u8>, &Row)) {
    assert_eq!(cursor.clustered_key(), &want.0[..]);
    let table = cursor.table().clone();
    let row = cursor.row().unwrap();
    let mut buffer = Vec::new();
    for column in 0..schema.columns.len() {
        let got = match row.get(column) {
            Ok(Value::OutOfRow(len)) => {
                assert!(row.get_large(column, &mut buffer).unwrap());
                assert_eq!(len, buffer.len() as u64);
                OwnedValue::Bytes(buffer.clone())
            }
            Ok(value) => value.to_owned(),
            Err(Error::NotFound { .. }) => {
                assert!(!table.index_covers(index, column), "column {column}");
                continue;
            }
            Err(error) => panic!("{error}"),
        };
        assert_eq!(
            got, want.1[column],
            "column {column} of index {index}, row {:?}, schema {schema:?}",
            want.1
        );
    }
}
