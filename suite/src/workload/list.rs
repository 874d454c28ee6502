//! Lists: rows of variables that are drawn as a transaction begins and kept until it ends, for what it asks of
//! several things at once, such as the lines of an order.

use super::document::Section;
use super::values::distribution;
use super::values::expression::{Expression, Slot};
use super::values::generator::Draw;
use super::values::scope::Scope;
use crate::engines::Datum;

/// The most rows of a list: as many statements are prepared for what is asked of all of them.
const MOST_ROWS: i64 = 1_000;

/// A list.
#[derive(Debug, Clone)]
pub struct List {
    /// Its name.
    pub name: String,
    /// How many rows it has.
    pub length: Expression,
    /// The most that it can have.
    pub most: i64,
    /// The number of the row, from 1.
    pub counter: Option<Slot>,
    /// Variables drawn for each row.
    pub draws: Vec<Draw>,
    /// The variables of which each row has its own values: those above, and what answers give.
    pub own: Vec<Slot>,
}

impl List {
    /// Reads `[[transaction.list]]`.
    pub fn read(mut section: Section<'_, '_>, scope: &mut Scope) -> Option<Self> {
        let name = section.needed_text("name");
        let length = section
            .need("length")
            .and_then(|node| scope.expression(&node, "'length'"));
        let most = section.need("most").and_then(|node| {
            let most = scope.expression(&node, "'most'")?.integer(&[]);
            let most = most.filter(|most| (1..=MOST_ROWS).contains(most));
            if most.is_none() {
                node.complain(format!(
                    "'most' is a number, or an expression of parameters, from 1 to {MOST_ROWS}"
                ));
            }
            most
        });
        let counter = scope.counter_variable(&mut section);
        let draws = distribution::draws(&mut section, scope);
        section.end();
        let mut list = Self {
            name: name?.text.to_owned(),
            length: length?,
            most: most?,
            counter,
            own: Vec::new(),
            draws,
        };
        let drawn: Vec<Slot> = list.draws.iter().map(|draw| draw.slot).collect();
        list.owns(counter.as_slice());
        list.owns(&drawn);
        Some(list)
    }

    /// Gives each row its own values of these variables, too.
    pub fn owns(&mut self, variables: &[Slot]) {
        for slot in variables {
            if !self.own.contains(slot) {
                self.own.push(*slot);
            }
        }
    }
}

/// The rows of a transaction's lists.
#[derive(Debug, Default)]
pub struct Rows {
    lists: Vec<Vec<Vec<Datum>>>,
}

impl Rows {
    /// Makes ready for another transaction's lists, which are given by [`Self::add`] in their order.
    pub fn clear(&mut self) {
        self.lists.clear();
    }

    /// Adds a list.
    pub fn add(&mut self) {
        self.lists.push(Vec::new());
    }

    /// Adds a row, with these values of its variables, to the list added last.
    pub fn push(&mut self, list: &List, variables: &[Datum]) {
        if let Some(rows) = self.lists.last_mut() {
            rows.push(values(list, variables).collect());
        }
    }

    /// The number of rows of a list.
    #[must_use]
    pub fn length(&self, list: usize) -> usize {
        self.lists.get(list).map_or(0, Vec::len)
    }

    /// Gives the variables of a list their values in one of its rows, counted from 0.
    pub fn load(&self, number: usize, list: &List, row: usize, variables: &mut [Datum]) {
        let values = self.lists.get(number).and_then(|rows| rows.get(row));
        for (slot, value) in list.own.iter().zip(values.into_iter().flatten()) {
            if let Some(place) = variables.get_mut(*slot) {
                place.clone_from(value);
            }
        }
    }

    /// Keeps the values that the variables of a list have now as those of one of its rows.
    pub fn keep(&mut self, number: usize, list: &List, row: usize, variables: &[Datum]) {
        let place = self
            .lists
            .get_mut(number)
            .and_then(|rows| rows.get_mut(row));
        if let Some(place) = place {
            place.clear();
            place.extend(values(list, variables));
        }
    }
}

fn values<'v>(list: &'v List, variables: &'v [Datum]) -> impl Iterator<Item = Datum> + 'v {
    let value = |slot: &Slot| variables.get(*slot).cloned().unwrap_or_default();
    list.own.iter().map(value)
}
