//! A session's changes: of its own rows, of shared rows, and of amounts.

use peregrine::{Error, RowLock, Value};

use super::end::{wrong, End, Step};
use super::model::links::Link;
use super::model::reading::read;
use super::session::{Session, Work};
use super::tables::{account, ACCOUNTS_KIND, SHARED_KEYS, SHARED_KIND};
use crate::simulated::model::Row;

impl Session<'_> {
    fn new_row(&mut self, id: u64) -> Row {
        self.next_code += 1;
        let pad = self.dice.below(self.plan.most_pad + 1);
        let large = match self.dice.below(2) {
            0 => None,
            _ => Some((self.next_code, self.dice.below(self.plan.most_large + 1))),
        };
        let group = self.dice.below(5);
        Row::new(self.plan.kind, id, group, self.next_code, pad, large)
    }

    pub(super) fn insert(&mut self, work: &mut Work) -> Step {
        for _ in 0..1 + self.dice.below(3) {
            let id = self.key();
            if work.rows.contains_key(&id) {
                continue;
            }
            let row = self.new_row(id);
            work.trail += &format!(" insert {id}, {} bytes;", row.pad);
            row.with_values(self.plan.kind, id, false, |values| {
                work.txn.insert(&self.own, values)
            })?;
            work.rows.insert(id, row);
            // A refused row must not undo the inserts before it.
            if work.bulk && self.dice.below(2) == 0 {
                self.duplicate(work)?;
            }
        }
        Ok(())
    }

    fn insert_again(&mut self, work: &mut Work, id: u64) -> Step {
        if self.plan.thinks {
            self.think();
        }
        let row = self.new_row(id);
        work.trail += &format!(" insert {id} again, {} bytes;", row.pad);
        row.with_values(self.plan.kind, id, false, |values| {
            work.txn.insert(&self.own, values)
        })?;
        work.rows.insert(id, row);
        Ok(())
    }

    pub(super) fn update(&mut self, work: &mut Work) -> Step {
        let Some(id) = self.existing(&work.rows) else {
            return Ok(());
        };
        // One update in four may move the row to another key.
        let moved = self.key();
        let to = match self.dice.below(4) == 0 && !work.rows.contains_key(&moved) {
            true => moved,
            false => id,
        };
        let mut row = self.new_row(to);
        let kept = work.rows.get(&id).and_then(|row| row.large);
        let keeps = self.plan.keeps_large && kept.is_some() && row.code.is_multiple_of(3);
        if keeps {
            row = Row::new(self.plan.kind, to, row.group, row.code, row.pad, kept);
            work.trail += " large value kept:";
        }
        work.trail += &format!(" update {id} to {to}, {} bytes;", row.pad);
        let key = self.encoded(id)?;
        row.with_values(self.plan.kind, to, keeps, |values| {
            work.txn.update(&self.own, &key, values)
        })?;
        work.rows.remove(&id);
        work.rows.insert(to, row);
        Ok(())
    }

    pub(super) fn delete(&mut self, work: &mut Work) -> Step {
        for _ in 0..1 + self.dice.below(4) {
            if let Some(id) = self.existing(&work.rows) {
                work.trail += &format!(" delete {id};");
                let key = self.encoded(id)?;
                work.txn.delete(&self.own, &key)?;
                work.rows.remove(&id);
                // A reader with a copy of the leaf from before the insert must not treat the row as deleted.
                if self.dice.below(3) == 0 {
                    self.insert_again(work, id)?;
                }
            }
        }
        Ok(())
    }

    /// Inserts a duplicate, which the clustered key or the unique index must refuse.
    pub(super) fn duplicate(&mut self, work: &mut Work) -> Step {
        let Some(id) = self.existing(&work.rows) else {
            return Ok(());
        };
        let by_code = self.plan.kind.indexes && self.dice.below(2) == 0;
        let (at, index) = match by_code {
            true => (self.key(), 2),
            false => (id, 0),
        };
        if by_code && work.rows.contains_key(&at) {
            return Ok(());
        }
        let mut row = self.new_row(at);
        if by_code {
            row = Row::new(self.plan.kind, at, 0, work.rows[&id].code, row.pad, None);
        }
        work.trail += &format!(" insert {at}, a duplicate of {id} in index {index};");
        let outcome = row.with_values(self.plan.kind, at, false, |values| {
            work.txn.insert(&self.own, values)
        });
        match outcome {
            Err(Error::Duplicate { index: found }) if found == index => Ok(()),
            Err(error) => Err(error.into()),
            Ok(()) => wrong(format!("row {at} is a duplicate of {id}, and was taken")),
        }
    }

    /// Inserts, updates or deletes a shared row.
    pub(super) fn change_shared(&mut self, work: &mut Work) -> Step {
        let id = u64::from(self.dice.below(SHARED_KEYS));
        let key = self.shared.encode_key(0, &[Value::UInt(id)])?;
        // Half of the time it assumes that the row does not exist.
        let blind = self.dice.below(2) == 0;
        let from = match blind {
            true => None,
            false => {
                let lock = RowLock::Exclusive;
                let found = work
                    .txn
                    .get_locked(&self.shared, &key, lock, |row| read(&row, false))?;
                found.transpose()?.map(|read| read.print)
            }
        };
        if from.is_some() && self.dice.below(3) == 0 {
            work.trail += &format!(" delete shared {id};");
            work.txn.delete(&self.shared, &key)?;
            work.links.push(Link {
                key: id,
                from,
                to: None,
            });
            return Ok(());
        }
        // The group makes the content unique. The code may be that of another row; then the row is refused.
        self.next_code += 1;
        let group = ((self.number << 24) | (self.next_code & 0xff_ffff)) as u32;
        let code = u64::from(self.dice.below(2 * SHARED_KEYS));
        let pad = self.dice.below(self.plan.most_pad + 1);
        let row = Row::new(SHARED_KIND, id, group, code, pad, None);
        work.trail += &format!(" put shared {id}, code {code}, {pad} bytes;");
        let outcome = row.with_values(SHARED_KIND, id, false, |values| match from {
            None => work.txn.insert(&self.shared, values),
            Some(_) => work.txn.update(&self.shared, &key, values),
        });
        match outcome {
            Ok(()) => {
                work.links.push(Link {
                    key: id,
                    from,
                    to: Some(row.print),
                });
                Ok(())
            }
            // The code is that of another row. Or there was no row to lock, and another session inserted one first.
            Err(Error::Duplicate { index: 2 }) => Ok(()),
            Err(Error::Duplicate { index: 0 }) if blind => Ok(()),
            Err(error @ Error::Duplicate { index: 0 }) if from.is_none() => {
                Err(End::Conflict(error))
            }
            Err(error) => Err(error.into()),
        }
    }

    fn amount(&self, work: &mut Work, id: u64) -> std::result::Result<(Vec<u8>, u64), End> {
        let key = self.accounts.encode_key(0, &[Value::UInt(id)])?;
        let row = work
            .txn
            .get_locked(&self.accounts, &key, RowLock::Exclusive, |row| {
                read(&row, false)
            })?;
        match row.transpose()? {
            Some(row) => Ok((key, row.group)),
            None => wrong(format!("account {id} is missing")),
        }
    }

    pub(super) fn transfer(&mut self, work: &mut Work) -> Step {
        let from = u64::from(self.dice.below(self.plan.accounts as u32));
        let to = u64::from(self.dice.below(self.plan.accounts as u32));
        if from == to {
            return Ok(());
        }
        work.trail += &format!(" transfer from {from} to {to};");
        // The transaction may continue after an error; then it must move the whole amount or nothing.
        let before = work.txn.savepoint();
        let moved = self.move_amount(work, from, to);
        if let Err(End::TimedOut | End::Interrupted | End::Failed(_)) = moved {
            work.go_back(&before)?;
        }
        moved
    }

    fn move_amount(&mut self, work: &mut Work, from: u64, to: u64) -> Step {
        let (from_key, from_amount) = self.amount(work, from)?;
        let (to_key, to_amount) = self.amount(work, to)?;
        let moved = from_amount.min(u64::from(self.dice.below(100)));
        let changes = [
            (from, from_key, from_amount - moved),
            (to, to_key, to_amount + moved),
        ];
        for (id, key, amount) in changes {
            account(id, amount).with_values(ACCOUNTS_KIND, id, false, |values| {
                work.txn.update(&self.accounts, &key, values)
            })?;
        }
        let by = moved as i64;
        work.moved.extend([(from, -by), (to, by)]);
        Ok(())
    }
}
