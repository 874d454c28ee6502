//! The columns that a set of aggregates needs of each row, and the totals of these.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use crate::error::Result;
use crate::read::aggregate::condition::{Condition, Filter};
use crate::read::aggregate::{refused, Aggregate, Aggregated, Group};
use crate::row::layout::Layout;
use crate::row::projection::ColumnSet;
use crate::row::scalar::{ScalarForm, ScalarPlace};
use crate::table::open_table::IndexId;
use crate::tree::ZoneMap;

/// The columns that aggregates need, each once, and the filters.
pub(super) struct Plan {
    pub index: IndexId,
    pub columns: SmallVec<[ScalarPlace; 4]>,
    /// A row must pass all of these.
    pub filters: SmallVec<[Filter; 2]>,
    /// The column by which rows are grouped.
    pub group: Option<ScalarPlace>,
    /// For each aggregate the place of its column in `columns`; `None`: it counts rows.
    uses: SmallVec<[Option<usize>; 4]>,
}

/// Totals of a column so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Values {
    pub count: u64,
    pub sum: i128,
    pub min: u64,
    pub max: u64,
}

/// Totals of rows so far: their number, and the columns of a plan.
#[derive(Clone, Debug)]
pub(super) struct Totals {
    pub rows: u64,
    pub columns: SmallVec<[Values; 4]>,
    /// If rows are grouped: the totals of each group, by the number that represents its value (`None`: NULL).
    ///
    /// The two fields above are then empty.
    pub groups: BTreeMap<Option<u64>, Totals>,
}

impl Values {
    const NONE: Values = Values {
        count: 0,
        sum: 0,
        min: u64::MAX,
        max: 0,
    };

    /// Adds a value.
    #[inline]
    pub fn add(&mut self, form: ScalarForm, bits: u64) {
        self.count += 1;
        self.sum += form.integer(bits);
        self.min = self.min.min(bits);
        self.max = self.max.max(bits);
    }

    fn merge(&mut self, other: &Values) {
        self.count += other.count;
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }
}

impl Totals {
    /// Adds the totals of other rows.
    pub fn merge(&mut self, other: &Totals) {
        self.rows += other.rows;
        for (into, from) in self.columns.iter_mut().zip(&other.columns) {
            into.merge(from);
        }
        for (value, from) in &other.groups {
            match self.groups.get_mut(value) {
                Some(into) => into.merge(from),
                None => {
                    self.groups.insert(*value, from.clone());
                }
            }
        }
    }

    /// Resets to no rows.
    pub fn clear(&mut self) {
        self.rows = 0;
        self.columns.fill(Values::NONE);
        self.groups.clear();
    }

    /// Adds a zone map of a leaf to column `n`.
    ///
    /// The caller counts the leaf's rows, once.
    pub fn add_zone_map(&mut self, n: usize, zone_map: &ZoneMap) {
        if let Some(values) = self.columns.get_mut(n) {
            values.merge(&Values {
                count: zone_map.values.into(),
                sum: zone_map.sum,
                min: zone_map.min,
                max: zone_map.max,
            });
        }
    }

    /// The zone map of column `n`, if the totals are of one leaf; without a column, that of the rows alone.
    pub fn zone_map(&self, n: Option<usize>, max_txid: u64) -> ZoneMap {
        let values = n.and_then(|n| self.columns.get(n));
        let values = values.unwrap_or(&Values::NONE);
        ZoneMap {
            max_txid,
            records: self.rows as u32,
            values: values.count as u32,
            sum: values.sum,
            min: values.min,
            max: values.max,
        }
    }
}

impl Plan {
    /// The plan for some aggregates over an index.
    pub fn new(
        layout: &Layout,
        index: IndexId,
        conditions: &[Condition<'_>],
        aggregates: &[Aggregate],
    ) -> Result<Plan> {
        if layout.key(index).is_none() {
            return Err(refused(format!("there is no index {index}")));
        }
        let mut plan = Plan {
            index,
            columns: SmallVec::new(),
            filters: SmallVec::new(),
            group: None,
            uses: SmallVec::new(),
        };
        for &aggregate in aggregates {
            let used = plan.column_for(layout, aggregate)?;
            plan.uses.push(used);
        }
        for condition in conditions {
            let filter = Filter::new(layout, index, condition)
                .ok_or_else(|| refused(format!("index {index} can't decide {condition:?}")))?;
            if !plan.filters.iter_mut().any(|other| other.narrow(&filter)) {
                plan.filters.push(filter);
            }
        }
        Ok(plan)
    }

    /// Groups the rows by a column.
    pub fn group_by(&mut self, layout: &Layout, column: usize) -> Result<()> {
        let place = ScalarPlace::new(layout, self.index, column);
        let place = place.filter(|place| place.form.is_ordered());
        let place = place.ok_or_else(|| {
            refused(format!(
                "index {} can't group by column {column}",
                self.index
            ))
        })?;
        self.group = Some(place);
        Ok(())
    }

    /// Whether zone maps can always replace a leaf: the plan has no filters and no groups.
    pub fn is_of_whole_leaves(&self) -> bool {
        self.filters.is_empty() && self.group.is_none()
    }

    /// The columns that a mini-page must have to replace a leaf; `None` if no mini-page can.
    pub fn mini_page_columns(&self) -> Option<ColumnSet> {
        let would_do =
            self.index == 0 && self.group.is_none() && self.places().all(ScalarPlace::is_known);
        let in_row = self.places().filter(|place| place.is_in_row());
        let columns: SmallVec<[usize; 4]> = in_row.map(|place| place.column).collect();
        ColumnSet::of(&columns).filter(|_| would_do)
    }

    /// A plan for one column of all rows, without filters.
    pub fn of_column(place: ScalarPlace) -> Plan {
        Plan {
            index: 0,
            columns: SmallVec::from_elem(place, 1),
            filters: SmallVec::new(),
            group: None,
            uses: SmallVec::new(),
        }
    }

    fn column_for(&mut self, layout: &Layout, aggregate: Aggregate) -> Result<Option<usize>> {
        let column = match aggregate {
            Aggregate::Rows => return Ok(None),
            Aggregate::Count(column)
            | Aggregate::Sum(column)
            | Aggregate::Min(column)
            | Aggregate::Max(column) => column,
        };
        let Some(known) = layout.columns.get(column) else {
            return Err(refused(format!("there is no column {column}")));
        };
        let name = &known.column.name;
        let Some(place) = ScalarPlace::new(layout, self.index, column) else {
            return Err(refused(format!(
                "index {} does not have column {name}",
                self.index
            )));
        };
        match aggregate {
            Aggregate::Count(_) if !known.column.nullable => return Ok(None),
            Aggregate::Sum(_) if !place.form.is_integer() => {
                return Err(refused(format!(
                    "sums are of integer columns, and {name} is none"
                )))
            }
            Aggregate::Min(_) | Aggregate::Max(_) if !place.form.is_ordered() => {
                return Err(refused(format!(
                    "least and greatest values are of integers and of fixed bytes, at most 8, \
                     without a collation, and {name} is none of these"
                )))
            }
            _ => {}
        }
        let there = self.columns.iter().position(|p| p.column == column);
        Ok(Some(there.unwrap_or_else(|| {
            self.columns.push(place);
            self.columns.len() - 1
        })))
    }

    /// The places of all columns that the plan reads.
    pub fn places(&self) -> impl Iterator<Item = &ScalarPlace> {
        let filters = self.filters.iter().map(|filter| &filter.place);
        filters.chain(&self.columns).chain(&self.group)
    }

    /// The totals of no rows.
    pub fn nothing(&self) -> Totals {
        Totals {
            rows: 0,
            columns: SmallVec::from_elem(Values::NONE, self.columns.len()),
            groups: BTreeMap::new(),
        }
    }

    /// The groups, in ascending order of their values, NULL first.
    pub fn groups(&self, aggregates: &[Aggregate], totals: &Totals) -> Vec<Group> {
        let Some(place) = &self.group else {
            return Vec::new();
        };
        let group = |(bits, totals): (&Option<u64>, &Totals)| Group {
            value: bits.map(|bits| place.form.value(bits)),
            answers: self.answers(aggregates, totals),
        };
        totals.groups.iter().map(group).collect()
    }

    /// The answers to the aggregates for which the plan was made.
    pub fn answers(&self, aggregates: &[Aggregate], totals: &Totals) -> Vec<Aggregated> {
        let answer = |(aggregate, used): (&Aggregate, &Option<usize>)| {
            let found = used.and_then(|n| Some((self.columns.get(n)?, totals.columns.get(n)?)));
            let Some((place, values)) = found else {
                return Aggregated::Count(totals.rows);
            };
            let value =
                |bits| Aggregated::Value((values.count > 0).then(|| place.form.value(bits)));
            match aggregate {
                Aggregate::Rows => Aggregated::Count(totals.rows),
                Aggregate::Count(_) => Aggregated::Count(values.count),
                Aggregate::Sum(_) => Aggregated::Sum {
                    sum: values.sum,
                    values: values.count,
                },
                Aggregate::Min(_) => value(values.min),
                Aggregate::Max(_) => value(values.max),
            }
        };
        aggregates.iter().zip(&self.uses).map(answer).collect()
    }
}
