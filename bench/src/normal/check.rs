//! The check of whether an answer is right.
//!
//! A [`Check`] takes the rows of one answer and then returns its verdict. Rows may come in any order. With `LIMIT` and
//! no `ORDER BY`, any rows that qualify are right. But there must be as many as the limit and the table allow, and no
//! row more often than it exists.

use super::answers::{Answers, Strings};
use super::queries::{Column, Query};
use super::{fingerprint, generator, STATES};
use peregrine_harness::engines::{Datum, RowSink, Value};

/// Checks answers, one after another.
#[derive(Debug)]
pub struct Check<'a> {
    answers: &'a Answers,
    query: Query,
    count: u64,
    sum: u64,
    /// The values of the answer, for queries whose answers are not determined by a sum.
    values: Vec<u64>,
    malformed: bool,
}

/// The number for NULL among the values.
const NULL: u64 = u64::MAX;

impl<'a> Check<'a> {
    /// A check for answers to `query`.
    #[must_use]
    pub fn new(answers: &'a Answers, query: Query) -> Self {
        Self {
            answers,
            query,
            count: 0,
            sum: 0,
            values: Vec::new(),
            malformed: false,
        }
    }

    /// Forgets the rows taken so far.
    pub fn begin(&mut self) {
        self.count = 0;
        self.sum = 0;
        self.values.clear();
        self.malformed = false;
    }

    /// Checks the rows taken since [`Self::begin`].
    ///
    /// # Errors
    /// Text that says what is wrong.
    pub fn verdict(&mut self, given: &[Datum]) -> Result<(), String> {
        if self.malformed {
            return Err("a value has the wrong type".to_owned());
        }
        let parameter = |at: usize| {
            let number = given.get(at).and_then(Datum::integer);
            number
                .and_then(|number| u32::try_from(number).ok())
                .unwrap_or(0)
        };
        match self.query {
            Query::ReadPkPoint => {
                let expected = self.answers.name(parameter(0));
                self.whole(u64::from(expected.is_some()), expected.unwrap_or(0))
            }
            Query::ReadPkPointIndex => self.single(u64::from(parameter(0))),
            Query::ReadPkRangeIndex => {
                self.single(self.answers.ids_between(parameter(0), parameter(1)))
            }
            Query::ReadPkRange => {
                let day = self.answers.first_birth_day(parameter(0), parameter(1));
                self.single(day.map_or(NULL, day_number))
            }
            Query::ReadFts => {
                let day = self.answers.first_birth_day_of_all();
                self.single(day.map_or(NULL, day_number))
            }
            Query::ReadKeyPoint => {
                let totals = self.answers.totals(parameter(0), 1, STATES);
                self.whole(totals.count, totals.names)
            }
            Query::ReadKeyPointNoData => {
                let totals = self.answers.totals(parameter(0), 1, STATES);
                self.whole(totals.count, totals.states)
            }
            Query::ReadKeyRange => {
                let totals =
                    self.answers
                        .totals(parameter(0), state(parameter(1)), state(parameter(2)));
                self.whole(totals.count, totals.names)
            }
            Query::ReadKeyRangeNoData => {
                let totals =
                    self.answers
                        .totals(parameter(0), state(parameter(1)), state(parameter(2)));
                self.whole(totals.count, totals.cities)
            }
            Query::ReadKeyPointLimit | Query::ReadKeyPointNoDataLimit => {
                self.part(parameter(0), 1, STATES)
            }
            Query::ReadKeyRangeLimit | Query::ReadKeyRangeNoDataLimit => {
                self.part(parameter(0), state(parameter(1)), state(parameter(2)))
            }
        }
    }

    fn whole(&self, count: u64, sum: u64) -> Result<(), String> {
        if self.count != count {
            return Err(format!("{} rows, {count} expected", self.count));
        }
        if self.sum != sum {
            return Err(format!("checksum {:016x}, {sum:016x} expected", self.sum));
        }
        Ok(())
    }

    fn single(&self, expected: u64) -> Result<(), String> {
        match self.values[..] {
            [value] if value == expected && self.count == 1 => Ok(()),
            [value] if self.count == 1 => {
                Err(format!("{}, {} expected", shown(value), shown(expected)))
            }
            _ => Err(format!("{} rows, 1 expected", self.count)),
        }
    }

    fn part(&mut self, country: u32, first: u8, last: u8) -> Result<(), String> {
        let there = self.answers.totals(country, first, last).count;
        let limit = self.query.limit().map_or(u64::MAX, |limit| limit as u64);
        if self.count != there.min(limit) {
            return Err(format!(
                "{} rows, {} expected",
                self.count,
                there.min(limit)
            ));
        }
        self.values.sort_unstable();
        for same in self.values.chunk_by(|a, b| a == b) {
            let value = same[0];
            let exists = match self.query.column() {
                Column::Name => {
                    self.answers
                        .occurrences(Strings::Names, value, country, first, last)
                }
                Column::City => {
                    self.answers
                        .occurrences(Strings::Cities, value, country, first, last)
                }
                _ => match u8::try_from(value) {
                    Ok(state) if (first..=last).contains(&state) => {
                        usize::try_from(self.answers.totals(country, state, state).count)
                            .unwrap_or(usize::MAX)
                    }
                    _ => 0,
                },
            };
            if same.len() > exists {
                return Err(format!(
                    "a value comes {} times, but {exists} rows that qualify have it",
                    same.len()
                ));
            }
        }
        Ok(())
    }
}

impl RowSink for Check<'_> {
    fn row(&mut self, values: &[Value<'_>]) {
        self.count += 1;
        let [value] = *values else {
            self.malformed = true;
            return;
        };
        match self.query.column() {
            Column::Name | Column::City => match value {
                Value::Bytes(text) => {
                    let print = fingerprint::of_text(text);
                    if self.query.limit().is_some() {
                        self.values.push(print);
                    } else {
                        self.sum = self.sum.wrapping_add(print);
                    }
                }
                _ => self.malformed = true,
            },
            Column::State => match number(value) {
                Some(state) if self.query.limit().is_some() => self.values.push(state),
                Some(state) => self.sum = self.sum.wrapping_add(fingerprint::of_number(state)),
                None => self.malformed = true,
            },
            Column::Number => match number(value) {
                Some(number) => self.values.push(number),
                None => self.malformed = true,
            },
            Column::Date => match date(value) {
                Some(number) => self.values.push(number),
                None => self.malformed = true,
            },
        }
    }
}

fn state(parameter: u32) -> u8 {
    u8::try_from(parameter).unwrap_or(u8::MAX)
}

fn number(value: Value<'_>) -> Option<u64> {
    match value {
        Value::Integer(number) => Some(number),
        Value::Bytes(text) => std::str::from_utf8(text).ok()?.parse().ok(),
        _ => None,
    }
}

/// A date as the number `yyyymmdd`.
fn date(value: Value<'_>) -> Option<u64> {
    match value {
        Value::Null => Some(NULL),
        Value::Date(year, month, day) => {
            Some(u64::from(year) * 10_000 + u64::from(month) * 100 + u64::from(day))
        }
        Value::Bytes(text) => {
            let text = std::str::from_utf8(text).ok()?;
            let mut parts = text.splitn(3, '-').map(str::parse::<u64>);
            let year = parts.next()?.ok()?;
            let month = parts.next()?.ok()?;
            let day = parts.next()?.ok()?;
            Some(year * 10_000 + month * 100 + day)
        }
        _ => None,
    }
}

fn day_number(days: u16) -> u64 {
    let (year, month, day) = generator::date(days);
    u64::from(year) * 10_000 + u64::from(month) * 100 + u64::from(day)
}

fn shown(value: u64) -> String {
    if value == NULL {
        "NULL".to_owned()
    } else {
        value.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::workload;
    use crate::normal::generator::{Generator, Row};
    use crate::workload::{Client, Counters};

    const ROWS: u32 = 20_000;

    fn rows() -> Vec<Row> {
        let generator = Generator::new(4, ROWS);
        (1..=ROWS)
            .map(|id| {
                let mut row = Row::default();
                generator.row(id, &mut row);
                row
            })
            .collect()
    }

    /// Returns a right answer as text, found by a scan of all rows.
    fn answer(rows: &[Row], query: Query, given: &[u32]) -> Vec<Option<String>> {
        let by_id: Vec<&Row> = rows
            .iter()
            .filter(|row| match given {
                [id] => row.id == *id,
                [first, last] => (*first..=*last).contains(&row.id),
                _ => true,
            })
            .collect();
        let by_key: Vec<&Row> = rows
            .iter()
            .filter(|row| match given {
                [country] => u32::from(row.country_id) == *country,
                [country, first, last] => {
                    u32::from(row.country_id) == *country
                        && (*first..=*last).contains(&u32::from(row.state_id))
                }
                _ => true,
            })
            .collect();
        let day = |rows: &[&Row]| {
            let day = rows.iter().filter_map(|row| row.birth_day).min();
            let text = day.map(|day| {
                let (y, m, d) = generator::date(day);
                format!("{y:04}-{m:02}-{d:02}")
            });
            vec![text]
        };
        let limit = query.limit().unwrap_or(usize::MAX);
        match query {
            Query::ReadPkPoint => by_id.iter().map(|row| Some(row.name.clone())).collect(),
            Query::ReadPkPointIndex => by_id.iter().map(|row| Some(row.id.to_string())).collect(),
            Query::ReadPkRange | Query::ReadFts => day(&by_id),
            Query::ReadPkRangeIndex => vec![Some(by_id.len().to_string())],
            _ => by_key
                .iter()
                .rev()
                .take(limit)
                .map(|row| {
                    Some(match query.column() {
                        Column::City => row.city.clone(),
                        Column::State => row.state_id.to_string(),
                        _ => row.name.clone(),
                    })
                })
                .collect(),
        }
    }

    /// Parameters of a query, drawn as the workload's file defines them.
    fn drawn(query: Query, count: usize) -> Vec<Vec<u32>> {
        let workload = workload(ROWS.into());
        let place = Query::ALL.iter().position(|other| *other == query);
        let place = place.expect("one of them");
        let counters = Counters::default();
        let mut client = Client::new(&workload, &counters, None, (9, 9), (0, 1));
        (0..count)
            .map(|_| {
                let statement = client.sample(place).expect("a statement");
                let words = statement.split_whitespace();
                let after = words.skip_while(|word| *word != "WHERE");
                let before = after.take_while(|word| *word != "LIMIT");
                before.filter_map(|word| word.parse().ok()).collect()
            })
            .collect()
    }

    fn verdict(
        check: &mut Check<'_>,
        parameters: &[u32],
        answer: &[Option<String>],
    ) -> Result<(), String> {
        check.begin();
        for value in answer {
            check.row(&[value
                .as_ref()
                .map_or(Value::Null, |text| Value::Bytes(text.as_bytes()))]);
        }
        check.verdict(&data(parameters))
    }

    fn data(parameters: &[u32]) -> Vec<Datum> {
        let numbers = parameters.iter().copied().map(i64::from);
        numbers.map(Datum::Integer).collect()
    }

    #[test]
    fn parameters_fit_the_table() {
        for query in Query::ALL {
            for parameters in drawn(query, 500) {
                if let [first, last] = *parameters.as_slice() {
                    assert!(first >= 1 && last <= ROWS && last - first == 99);
                }
                if let [country, first, last] = *parameters.as_slice() {
                    assert!((1..=200).contains(&country));
                    assert!(first >= 1 && last <= 50 && last - first == 9);
                }
            }
        }
    }

    #[test]
    fn right_answers_pass_and_wrong_ones_do_not() {
        let rows = rows();
        let answers = Answers::compute(&Generator::new(4, ROWS), |_| ());
        for query in Query::ALL {
            let mut check = Check::new(&answers, query);
            for parameters in drawn(query, 20) {
                let right = answer(&rows, query, &parameters);
                assert_eq!(
                    verdict(&mut check, &parameters, &right),
                    Ok(()),
                    "{query:?}"
                );

                let mut reversed = right.clone();
                reversed.reverse();
                assert_eq!(
                    verdict(&mut check, &parameters, &reversed),
                    Ok(()),
                    "{query:?}"
                );

                let fewer = &right[..right.len() - 1];
                assert!(
                    verdict(&mut check, &parameters, fewer).is_err(),
                    "{query:?}"
                );

                let mut more = right.clone();
                more.push(right[0].clone());
                assert!(
                    verdict(&mut check, &parameters, &more).is_err(),
                    "{query:?}"
                );

                let mut other = right.clone();
                other[0] = Some(match query.column() {
                    Column::Date => "1939-12-31".to_owned(),
                    Column::Number | Column::State => "77".to_owned(),
                    Column::Name | Column::City => "Nobody".to_owned(),
                });
                if other != right {
                    assert!(
                        verdict(&mut check, &parameters, &other).is_err(),
                        "{query:?}"
                    );
                }

                let mut none = right.clone();
                none[0] = None;
                if none != right {
                    assert!(
                        verdict(&mut check, &parameters, &none).is_err(),
                        "{query:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_limited_answer_may_not_repeat_a_row() {
        let rows = rows();
        let answers = Answers::compute(&Generator::new(4, ROWS), |_| ());
        let query = Query::ReadKeyPointLimit;
        let mut check = Check::new(&answers, query);
        let parameters = [17];
        let mut repeated = answer(&rows, query, &parameters);
        repeated[1] = repeated[0].clone();
        assert!(verdict(&mut check, &parameters, &repeated).is_err());
    }

    #[test]
    fn a_limited_answer_may_not_hold_rows_of_another_range() {
        let rows = rows();
        let answers = Answers::compute(&Generator::new(4, ROWS), |_| ());
        let query = Query::ReadKeyRangeNoDataLimit;
        let mut check = Check::new(&answers, query);
        let elsewhere = answer(&rows, query, &[17, 21, 30]);
        assert!(verdict(&mut check, &[17, 1, 10], &elsewhere).is_err());
    }

    #[test]
    fn both_protocols_forms_of_a_value_count_the_same() {
        let answers = Answers::compute(&Generator::new(4, ROWS), |_| ());
        let day = answers.first_birth_day_of_all().expect("a day");
        let (y, m, d) = generator::date(day);
        let mut check = Check::new(&answers, Query::ReadFts);
        check.begin();
        check.row(&[Value::Date(y, m, d)]);
        assert_eq!(check.verdict(&[]), Ok(()));

        let mut check = Check::new(&answers, Query::ReadPkPointIndex);
        check.begin();
        check.row(&[Value::Integer(5)]);
        assert_eq!(check.verdict(&data(&[5])), Ok(()));
        check.begin();
        check.row(&[Value::Other]);
        assert!(check.verdict(&data(&[5])).is_err());
    }
}
