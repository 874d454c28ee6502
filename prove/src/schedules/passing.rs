//! The passing table: the upkeep thread creates, truncates, drops and fills it, and knows its rows.

use std::ops::Range;
use std::sync::atomic::Ordering;

use peregrine::{Error, Isolation};

use super::model::ledger::{Ledger, Rows};
use super::model::reading::Read;
use super::play::{every_index, Play};
use super::tables::ACCOUNTS_KIND;
use crate::simulated::model::{Kind, Row};
use peregrine_harness::dice::Dice;

/// Its name.
const PASSING: &str = "passing";

impl Play {
    fn passing_ledger(&self) -> &Ledger {
        let last = self.plan.sessions + self.plan.varied;
        &self.ledgers[last as usize]
    }

    /// Creates the table, or truncates it if it exists.
    pub(super) fn make_passing(&self, dice: &mut Dice) -> peregrine::Result<()> {
        let kind = Kind {
            large: dice.below(2) == 0,
            indexes: dice.below(2) == 0,
        };
        self.define(true, || {
            match self.db.create_table(PASSING, &kind.schema()) {
                Err(Error::Exists(_)) => self.db.truncate_table(PASSING),
                other => other.map(drop),
            }
        })
    }

    pub(super) fn drop_passing(&self) -> peregrine::Result<()> {
        let before = self.power.passing();
        match self.define(false, || self.db.drop_table(PASSING)) {
            // Not found: keep the earlier knowledge about a crash, which is unknown if the creation failed.
            Err(Error::NotFound { .. }) => {
                self.power.set_passing(before);
                Ok(())
            }
            other => other,
        }
    }

    /// Changes the definition: after it the table is there without rows, or not there.
    ///
    /// During the change, and after it has failed, that is unknown.
    fn define(
        &self,
        is_there: bool,
        change: impl FnOnce() -> peregrine::Result<()>,
    ) -> peregrine::Result<()> {
        let ledger = self.passing_ledger();
        let was_unknown = self.passing_is_unknown.swap(true, Ordering::Relaxed);
        self.power.set_passing(None);
        ledger.begins(&Rows::new(), &[], &[]);
        let outcome = change();
        match &outcome {
            Ok(()) => {
                ledger.acknowledge();
                ledger.is_durable(ledger.position().1);
                self.power.set_passing(Some(is_there));
                self.passing_is_unknown.store(false, Ordering::Relaxed);
            }
            Err(Error::NotFound { .. }) => {
                ledger.withdraw();
                self.passing_is_unknown
                    .store(was_unknown, Ordering::Relaxed);
            }
            Err(_) => {}
        }
        outcome
    }

    /// Compares the definition after a crash: it is durable once acknowledged, whatever the durability of commits.
    pub(super) fn compare_definitions(&self, passing: Option<bool>) -> Result<(), String> {
        let found = match self.db.table(PASSING) {
            Ok(_) => true,
            Err(Error::NotFound { .. }) => false,
            Err(error) => return Err(format!("opening a table: {error}")),
        };
        match passing {
            Some(was) if was != found => Err(format!(
                "a table that {} before the crash {} after it",
                if was { "was there" } else { "was dropped" },
                if found { "is there" } else { "is missing" }
            )),
            _ => Ok(()),
        }
    }

    /// Adds rows, and commits or rolls back.
    pub(super) fn fill_passing(&self, dice: &mut Dice) -> peregrine::Result<()> {
        if self.passing_is_unknown.load(Ordering::Relaxed) {
            return Ok(());
        }
        let table = match self.db.table(PASSING) {
            Err(Error::NotFound { .. }) => return Ok(()),
            other => other?,
        };
        let kinds = [(false, false), (false, true), (true, false), (true, true)];
        let kinds = kinds.map(|(large, indexes)| Kind { large, indexes });
        let kind = kinds.into_iter().find(|k| k.schema() == *table.schema());
        let kind = kind.unwrap_or(ACCOUNTS_KIND);
        let ledger = self.passing_ledger();
        let mut filled = ledger.newest();
        let mut txn = self.db.begin(Isolation::ReadCommitted);
        for _ in 0..dice.below(30) {
            let (id, code) = (dice.bits() >> 8, dice.bits());
            let large = (dice.below(4) == 0).then(|| (code, dice.below(10_000)));
            let row = Row::new(kind, id, 1, code, dice.below(1_000), large);
            row.with_values(kind, id, false, |values| txn.insert(&table, values))?;
            filled.insert(id, row);
        }
        if dice.below(3) == 0 {
            return txn.rollback();
        }
        self.passing_is_unknown.store(true, Ordering::Relaxed);
        ledger.begins(&filled, &[], &[]);
        txn.commit()?;
        ledger.acknowledge();
        self.passing_is_unknown.store(false, Ordering::Relaxed);
        Ok(())
    }

    fn rows_of_passing(&self) -> Result<Vec<Read>, String> {
        match self.db.table(PASSING) {
            Err(Error::NotFound { .. }) => Ok(Vec::new()),
            Err(error) => Err(format!("opening a table: {error}")),
            Ok(table) => every_index(&mut self.db.begin(Isolation::RepeatableRead), &table),
        }
    }

    /// Checks that the table's rows are those after one of the commits; without a crash, after the last one.
    pub(super) fn compare_passing(&self, commits: Option<Range<usize>>) -> Result<(), String> {
        let ledger = self.passing_ledger();
        let (_, last) = ledger.position();
        if commits.is_none() && self.passing_is_unknown.load(Ordering::Relaxed) {
            return Ok(());
        }
        let range = commits.unwrap_or(last..last + 1);
        let found = self.rows_of_passing()?;
        match ledger.was(&found, range.clone()) {
            true => Ok(()),
            false => Err(format!(
                "the table that comes and goes has {} rows, and not those after one of the commits {range:?}",
                found.len()
            )),
        }
    }

    /// Returns a ledger of the rows that the table has at present.
    pub(super) fn found_passing(&self) -> Result<Ledger, String> {
        let known = |read: &Read| Row {
            group: read.group as u32,
            code: read.code,
            pad: 0,
            large: None,
            print: read.print,
        };
        let found = self.rows_of_passing()?;
        let rows: Rows = found.iter().map(|read| (read.id, known(read))).collect();
        let ledger = Ledger::default();
        ledger.begins(&rows, &[], &[]);
        ledger.acknowledge();
        Ok(ledger)
    }
}
