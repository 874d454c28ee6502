//! Lists: rows of variables that a transaction draws at its beginning and keeps until its end.
//!
//! They are for statements about several things at once, such as the lines of an order.

use super::document::Section;
use super::values::distribution;
use super::values::expression::{Expression, Slot};
use super::values::generator::Draw;
use super::values::scope::Scope;
use peregrine_harness::engines::Datum;

/// The maximum number of rows of a list: a statement about a whole list is prepared once for each length.
const MOST_ROWS: i64 = 1_000;

/// A list.
#[derive(Debug, Clone)]
pub struct List {
    /// Its name.
    pub name: String,
    /// The number of its rows.
    pub length: Expression,
    /// The maximum number of its rows.
    pub most: i64,
    /// The variable with the number of the row, from 1.
    pub counter: Option<Slot>,
    /// Variables drawn for each row.
    pub draws: Vec<Draw>,
    /// The variables for which each row has its own values: the drawn ones, and those that answers set.
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

    /// Adds variables for which each row has its own values.
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
    /// Removes all lists, for another transaction; [`Self::add`] then adds its lists in order.
    pub fn clear(&mut self) {
        self.lists.clear();
    }

    /// Adds a list.
    pub fn add(&mut self) {
        self.lists.push(Vec::new());
    }

    /// Adds a row with these values to the list that was added last.
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

    /// Sets the variables of a list to the values of one of its rows, counted from 0.
    pub fn load(&self, number: usize, list: &List, row: usize, variables: &mut [Datum]) {
        let values = self.lists.get(number).and_then(|rows| rows.get(row));
        for (slot, value) in list.own.iter().zip(values.into_iter().flatten()) {
            if let Some(place) = variables.get_mut(*slot) {
                place.clone_from(value);
            }
        }
    }

    /// Stores the variables of a list in one of its rows.
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
