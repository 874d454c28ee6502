//! The right answers, computed from the generator before anything is measured.
//!
//! Count and sum of the fingerprints identify a whole answer. The sum over a range of states is the difference of two
//! running sums. For `LIMIT` queries any rows that qualify are right. For these, the fingerprints of each country's
//! rows are sorted, together with the state, so that a binary search tests membership.

use super::generator::{Generator, Row};
use super::{fingerprint, COUNTRIES, STATES};

/// The low bits of a packed fingerprint hold the state.
const STATE_BITS: u64 = 0xff;

/// The right answers to all queries on the table.
#[derive(Debug)]
pub struct Answers {
    rows: u32,
    /// The fingerprint of the name, by id.
    names: Vec<u64>,
    /// The day of birth plus one, by id; 0 is NULL.
    birth_days: Vec<u16>,
    /// The totals of all states up to a state, by country and state.
    totals: Vec<Totals>,
    countries: Vec<Members>,
    first_birth_day: Option<u16>,
}

/// Count and sums over some rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// The number of rows.
    pub count: u64,
    /// The sum of the fingerprints of their names.
    pub names: u64,
    /// The sum of the fingerprints of their cities.
    pub cities: u64,
    /// The sum of the fingerprints of their states.
    pub states: u64,
}

/// The packed fingerprints of a country's rows, sorted for the test of membership.
#[derive(Debug, Default)]
struct Members {
    names: Vec<u64>,
    cities: Vec<u64>,
}

/// A string column for which membership is tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strings {
    /// `name`
    Names,
    /// `city`
    Cities,
}

impl Answers {
    /// Computes the answers.
    ///
    /// Calls `progress` with the number of rows done so far.
    #[must_use]
    pub fn compute(generator: &Generator, mut progress: impl FnMut(u32)) -> Self {
        let rows = generator.rows();
        let states = usize::from(STATES) + 1;
        let mut answers = Self {
            rows,
            names: Vec::with_capacity(rows as usize),
            birth_days: Vec::with_capacity(rows as usize),
            totals: vec![Totals::default(); (usize::from(COUNTRIES) + 1) * states],
            countries: (0..=COUNTRIES).map(|_| Members::default()).collect(),
            first_birth_day: None,
        };
        let mut row = Row::default();
        for id in 1..=rows {
            generator.row(id, &mut row);
            answers.add(&row);
            if id % 10_000 == 0 {
                progress(id);
            }
        }
        for members in &mut answers.countries {
            members.names.sort_unstable();
            members.cities.sort_unstable();
        }
        for country in answers.totals.chunks_mut(states) {
            for state in 1..country.len() {
                country[state] = country[state].plus(&country[state - 1]);
            }
        }
        answers
    }

    fn add(&mut self, row: &Row) {
        let name = fingerprint::of_text(row.name.as_bytes());
        let city = fingerprint::of_text(row.city.as_bytes());
        self.names.push(name);
        self.birth_days.push(row.birth_day.map_or(0, |day| day + 1));
        self.first_birth_day = match (self.first_birth_day, row.birth_day) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        let members = &mut self.countries[usize::from(row.country_id)];
        members.names.push(packed(name, row.state_id));
        members.cities.push(packed(city, row.state_id));
        let place = place(row.country_id, row.state_id);
        self.totals[place] = self.totals[place].plus(&Totals {
            count: 1,
            names: name,
            cities: city,
            states: fingerprint::of_number(u64::from(row.state_id)),
        });
    }

    /// The number of rows.
    #[must_use]
    pub fn rows(&self) -> u32 {
        self.rows
    }

    /// The fingerprint of the name of row `id`.
    #[must_use]
    pub fn name(&self, id: u32) -> Option<u64> {
        let place = usize::try_from(id.checked_sub(1)?).ok()?;
        self.names.get(place).copied()
    }

    /// The number of ids in the range that exist.
    #[must_use]
    pub fn ids_between(&self, first: u32, last: u32) -> u64 {
        let first = first.max(1);
        let last = last.min(self.rows);
        u64::from(last.saturating_add(1).saturating_sub(first))
    }

    /// The first day of birth among the ids of the range.
    #[must_use]
    pub fn first_birth_day(&self, first: u32, last: u32) -> Option<u16> {
        let from = usize::try_from(first.max(1) - 1).ok()?;
        let to = usize::try_from(last.min(self.rows)).ok()?;
        let days = self.birth_days.get(from..to)?;
        // NULL is 0. The wrapping subtraction makes 0 the largest value, so that the loop has no branch.
        let minimum = days.iter().map(|day| day.wrapping_sub(1)).min()?;
        (minimum != u16::MAX).then_some(minimum)
    }

    /// The first day of birth in the whole table.
    #[must_use]
    pub fn first_birth_day_of_all(&self) -> Option<u16> {
        self.first_birth_day
    }

    /// Count and sums of the country's rows in the states from `first` to `last`.
    #[must_use]
    pub fn totals(&self, country: u32, first: u8, last: u8) -> Totals {
        let country = u16::try_from(country).unwrap_or(u16::MAX);
        if country > COUNTRIES || first < 1 || first > last {
            return Totals::default();
        }
        let upto = self.totals[place(country, last.min(STATES))];
        let before = self.totals[place(country, first.min(STATES + 1) - 1)];
        upto.minus(&before)
    }

    /// How often a string with this fingerprint occurs in the country's states from `first` to
    /// `last`.
    #[must_use]
    pub fn occurrences(
        &self,
        column: Strings,
        value: u64,
        country: u32,
        first: u8,
        last: u8,
    ) -> usize {
        let Some(members) = usize::try_from(country)
            .ok()
            .and_then(|at| self.countries.get(at))
        else {
            return 0;
        };
        let sorted = match column {
            Strings::Names => &members.names,
            Strings::Cities => &members.cities,
        };
        let from = sorted.partition_point(|entry| *entry < packed(value, first));
        sorted[from..]
            .iter()
            .take_while(|entry| **entry <= packed(value, last))
            .count()
    }
}

impl Totals {
    fn plus(&self, other: &Self) -> Self {
        Self {
            count: self.count + other.count,
            names: self.names.wrapping_add(other.names),
            cities: self.cities.wrapping_add(other.cities),
            states: self.states.wrapping_add(other.states),
        }
    }

    fn minus(&self, other: &Self) -> Self {
        Self {
            count: self.count - other.count,
            names: self.names.wrapping_sub(other.names),
            cities: self.cities.wrapping_sub(other.cities),
            states: self.states.wrapping_sub(other.states),
        }
    }
}

fn place(country: u16, state: u8) -> usize {
    usize::from(country) * (usize::from(STATES) + 1) + usize::from(state)
}

fn packed(fingerprint: u64, state: u8) -> u64 {
    (fingerprint & !STATE_BITS) | u64::from(state)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ROWS: u32 = 30_000;

    fn all_rows(seed: u64) -> Vec<Row> {
        let generator = Generator::new(seed, ROWS);
        (1..=ROWS)
            .map(|id| {
                let mut row = Row::default();
                generator.row(id, &mut row);
                row
            })
            .collect()
    }

    #[test]
    fn answers_equal_those_found_by_looking_at_every_row() {
        let rows = all_rows(11);
        let answers = Answers::compute(&Generator::new(11, ROWS), |_| ());
        let minimum = rows.iter().filter_map(|row| row.birth_day).min();
        assert_eq!(answers.first_birth_day_of_all(), minimum);

        let mut runner = proptest::test_runner::TestRunner::default();
        runner
            .run(
                &(
                    1_u32..=200,
                    1_u8..=50,
                    1_u8..=50,
                    1_u32..=ROWS,
                    1_u32..=ROWS,
                ),
                |(country, a, b, x, y)| {
                    let (first, last) = (a.min(b), a.max(b));
                    let matching: Vec<&Row> = rows
                        .iter()
                        .filter(|row| {
                            u32::from(row.country_id) == country
                                && (first..=last).contains(&row.state_id)
                        })
                        .collect();
                    let totals = answers.totals(country, first, last);
                    prop_assert_eq!(totals.count, matching.len() as u64);
                    let names = matching.iter().fold(0_u64, |sum, row| {
                        sum.wrapping_add(fingerprint::of_text(row.name.as_bytes()))
                    });
                    prop_assert_eq!(totals.names, names);
                    for row in matching.iter().take(5) {
                        let city = fingerprint::of_text(row.city.as_bytes());
                        let same = matching
                            .iter()
                            .filter(|other| other.city == row.city)
                            .count();
                        prop_assert_eq!(
                            answers.occurrences(Strings::Cities, city, country, first, last),
                            same
                        );
                        let other = if country == 200 { 1 } else { country + 1 };
                        let name = fingerprint::of_text(row.name.as_bytes());
                        prop_assert_eq!(
                            answers.occurrences(Strings::Names, name, other, 1, 50),
                            rows.iter()
                                .filter(|r| u32::from(r.country_id) == other && r.name == row.name)
                                .count()
                        );
                    }

                    let (low, high) = (x.min(y), x.max(y));
                    let range = &rows[low as usize - 1..high as usize];
                    prop_assert_eq!(answers.ids_between(low, high), range.len() as u64);
                    prop_assert_eq!(
                        answers.first_birth_day(low, high),
                        range.iter().filter_map(|row| row.birth_day).min()
                    );
                    prop_assert_eq!(
                        answers.name(x),
                        Some(fingerprint::of_text(rows[x as usize - 1].name.as_bytes()))
                    );
                    Ok(())
                },
            )
            .expect("every case");
    }

    #[test]
    fn a_range_of_nulls_has_no_first_day() {
        let rows = all_rows(11);
        let answers = Answers::compute(&Generator::new(11, ROWS), |_| ());
        let id = rows
            .iter()
            .find(|row| row.birth_day.is_none())
            .expect("one")
            .id;
        assert_eq!(answers.first_birth_day(id, id), None);
    }
}
