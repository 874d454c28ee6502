//! Values of columns and of statements' parameters: constants, distributions of numbers, strings and dates.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::Offset;
use jiff::Timestamp;
use rand_distr::Zipf;

use super::expression::{Expression, Slot};
use super::shuffle::{mix, Shuffle};
use super::words::{
    Digits, {self},
};
use peregrine_harness::dice::Dice;
use peregrine_harness::engines::Datum;

/// A generator of values.
#[derive(Debug, Clone)]
pub struct Generator {
    /// The kind of its values.
    pub kind: Kind,
    /// The share of NULLs.
    pub null: f64,
}

/// A range with both bounds included.
#[derive(Debug, Clone, PartialEq)]
pub struct Range {
    /// The minimum.
    pub from: Expression,
    /// The maximum.
    pub to: Expression,
}

/// The kinds of generators.
#[derive(Debug, Clone)]
pub enum Kind {
    /// An expression.
    Value(Expression),
    /// All numbers of the range with equal probability; the bounds are in units of the last decimal.
    Uniform {
        /// The range.
        range: Range,
        /// The number of decimals.
        scale: u8,
    },
    /// Zipf's distribution; the first number of the range is the most likely.
    Zipf {
        /// The range.
        range: Range,
        /// The exponent: the higher, the steeper.
        exponent: f64,
        /// The distribution, if the range is constant.
        fixed: Option<Zipf<f64>>,
        /// The seed of the permutation that scatters the likely numbers over the range, if they are scattered.
        scatter: Option<u64>,
    },
    /// One number after another, in a circle; each client begins at its own place.
    Sequential {
        /// The range.
        range: Range,
        /// The number of the sequence; the client has a position in each.
        sequence: usize,
    },
    /// The next value of a counter; no other client gets the same.
    Next(usize),
    /// Zipf's distribution backwards from the newest value of a counter.
    Latest {
        /// The counter.
        counter: usize,
        /// The exponent: the higher, the steeper.
        exponent: f64,
    },
    /// TPC-C's non-uniform distribution (specification, clause 2.1.6).
    NonUniform {
        /// The range.
        range: Range,
        /// A: a power of two less one.
        a: i64,
        /// C: a constant from 0 to A.
        c: i64,
    },
    /// A permutation of the range.
    Shuffle {
        /// The range.
        range: Range,
        /// The index in the permutation, from 1.
        of: Expression,
        /// The permutation's seed.
        seed: u64,
    },
    /// Random letters and digits.
    Letters(usize, usize),
    /// Random digits.
    Digits(usize, usize),
    /// Random words.
    Words(usize, usize),
    /// A pattern: `#` is a random digit, `@` a random lower-case letter, and other characters stay.
    Pattern(String),
    /// A number spelt with a word for each digit, like TPC-C's last names.
    Spell {
        /// The number.
        number: Expression,
        /// The words; their number is the base.
        words: Vec<String>,
        /// The number of digits.
        digits: u32,
    },
    /// One of several values.
    Choice {
        /// The values.
        values: Vec<Datum>,
        /// The running sums of the values' weights.
        upto: Vec<u64>,
    },
    /// Text with the values of variables.
    Template(Vec<Piece>),
    /// A day, as days since 1970-01-01.
    Date(i64, i64),
    /// A second, as seconds since the beginning of 1970.
    Moment(i64, i64),
}

/// A piece of a template.
#[derive(Debug, Clone, PartialEq)]
pub enum Piece {
    /// Text.
    Text(String),
    /// A value.
    Value(Expression),
}

/// A variable and the generator of its value.
#[derive(Debug, Clone)]
pub struct Draw {
    /// The variable.
    pub slot: Slot,
    /// The generator.
    pub generator: Generator,
}

/// The state that generators use in addition to random numbers.
pub trait Surroundings {
    /// The next value of a counter.
    fn next(&mut self, counter: usize) -> i64;

    /// The newest value of a counter.
    fn newest(&self, counter: usize) -> i64;

    /// Returns this client's position in a sequence, and moves the position on by one.
    fn step(&mut self, sequence: usize) -> Step;
}

/// The position of a client in a sequence.
#[derive(Debug, Clone, Copy)]
pub struct Step {
    /// The number of steps taken before.
    pub taken: u64,
    /// The client's number, from 0.
    pub client: u64,
    /// The number of clients.
    pub clients: u64,
}

/// Surroundings without counters and sequences, for the rows of tables.
#[derive(Debug, Clone, Copy)]
pub struct Alone;

impl Surroundings for Alone {
    fn next(&mut self, _: usize) -> i64 {
        0
    }

    fn newest(&self, _: usize) -> i64 {
        0
    }

    fn step(&mut self, _: usize) -> Step {
        Step {
            taken: 0,
            client: 0,
            clients: 1,
        }
    }
}

impl Range {
    fn bounds(&self, variables: &[Datum]) -> Option<(i64, i64)> {
        let bounds = (self.from.integer(variables)?, self.to.integer(variables)?);
        (bounds.0 <= bounds.1).then_some(bounds)
    }
}

fn width((from, to): (i64, i64)) -> u64 {
    to.wrapping_sub(from).unsigned_abs().saturating_add(1)
}

impl Generator {
    /// Draws a value; an empty range gives NULL.
    pub fn draw(
        &self,
        dice: &mut Dice,
        variables: &[Datum],
        around: &mut dyn Surroundings,
    ) -> Datum {
        if self.null > 0.0 && dice.unit() < self.null {
            return Datum::Null;
        }
        match &self.kind {
            Kind::Value(expression) => expression.value(variables),
            Kind::Uniform { range, scale } => match range.bounds(variables) {
                None => Datum::Null,
                Some((from, to)) => decimal(dice.between(from, to), *scale),
            },
            Kind::Letters(minimum, most) => made(dice, *minimum, *most, words::letters),
            Kind::Digits(minimum, most) => made(dice, *minimum, *most, words::digits),
            Kind::Words(minimum, most) => made(dice, *minimum, *most, words::words),
            Kind::Pattern(pattern) => Datum::Text(formed(dice, pattern)),
            Kind::Spell {
                number,
                words,
                digits,
            } => spelt(number.integer(variables), words, *digits),
            Kind::Choice { values, upto } => chosen(dice, values, upto),
            Kind::Template(pieces) => Datum::Text(filled(pieces, variables)),
            Kind::Date(from, to) => Datum::Text(shown_date(dice.between(*from, *to))),
            Kind::Moment(from, to) => Datum::Text(shown_moment(dice.between(*from, *to))),
            number => number
                .number(dice, variables, around)
                .map_or(Datum::Null, Datum::Integer),
        }
    }
}

impl Kind {
    /// Draws a value of a kind that gives whole numbers.
    fn number(
        &self,
        dice: &mut Dice,
        variables: &[Datum],
        around: &mut dyn Surroundings,
    ) -> Option<i64> {
        match self {
            Self::Zipf {
                range,
                exponent,
                fixed,
                scatter,
            } => {
                let bounds = range.bounds(variables)?;
                let size = width(bounds);
                let rank = match fixed {
                    Some(zipf) => dice.rank(size, zipf),
                    None => dice.rank(size, &Zipf::new(size as f64, *exponent).ok()?),
                };
                let place = match scatter {
                    Some(seed) => Shuffle::new(size, *seed).at(rank - 1),
                    None => rank - 1,
                };
                Some(bounds.0.wrapping_add_unsigned(place))
            }
            Self::Sequential { range, sequence } => {
                let bounds = range.bounds(variables)?;
                let size = width(bounds);
                let step = around.step(*sequence);
                let begin =
                    u128::from(size) * u128::from(step.client) / u128::from(step.clients.max(1));
                let place = (begin + u128::from(step.taken)) % u128::from(size);
                Some(bounds.0.wrapping_add_unsigned(u64::try_from(place).ok()?))
            }
            Self::Next(counter) => Some(around.next(*counter)),
            Self::Latest { counter, exponent } => {
                let newest = around.newest(*counter).max(1);
                let zipf = Zipf::new(newest as f64, *exponent).ok()?;
                let back = dice.rank(newest.unsigned_abs(), &zipf) - 1;
                Some(newest.wrapping_sub_unsigned(back))
            }
            Self::NonUniform { range, a, c } => {
                let bounds = range.bounds(variables)?;
                let either = dice.between(0, *a) | dice.between(bounds.0, bounds.1);
                let size = i64::try_from(width(bounds)).ok()?;
                Some(either.checked_add(*c)?.rem_euclid(size) + bounds.0)
            }
            Self::Shuffle { range, of, seed } => {
                let bounds = range.bounds(variables)?;
                let place = of.integer(variables)?.checked_sub(1)?;
                let size = width(bounds);
                let place = place.rem_euclid(i64::try_from(size).unwrap_or(i64::MAX));
                let at = Shuffle::new(size, *seed).at(place.unsigned_abs());
                Some(bounds.0.wrapping_add_unsigned(at))
            }
            _ => None,
        }
    }
}

/// Returns the seed of something that is fixed for the whole run, from the file's seed and a number.
#[must_use]
pub fn fixed_seed(seed: u64, number: u64) -> u64 {
    mix(seed ^ mix(number))
}

fn decimal(units: i64, scale: u8) -> Datum {
    if scale == 0 {
        Datum::Integer(units)
    } else {
        Datum::Decimal { units, scale }
    }
}

fn made(
    dice: &mut Dice,
    minimum: usize,
    most: usize,
    make: impl Fn(&mut Dice, usize, &mut String),
) -> Datum {
    let spread = u32::try_from(most.saturating_sub(minimum)).unwrap_or(u32::MAX);
    let length = minimum + dice.below(spread.saturating_add(1)) as usize;
    let mut text = String::with_capacity(length);
    make(dice, length, &mut text);
    Datum::Text(text)
}

fn formed(dice: &mut Dice, pattern: &str) -> String {
    let mut text = String::with_capacity(pattern.len());
    let mut digits = Digits::default();
    for character in pattern.chars() {
        match character {
            '#' => text.push(digits.next(dice)),
            '@' => text.push(char::from(b'a' + (dice.below(26) as u8))),
            other => text.push(other),
        }
    }
    text
}

fn spelt(number: Option<i64>, words: &[String], digits: u32) -> Datum {
    let (Some(number), Ok(base)) = (number, i64::try_from(words.len())) else {
        return Datum::Null;
    };
    if base == 0 {
        return Datum::Null;
    }
    let mut text = String::new();
    for place in (0..digits).rev() {
        let Some(power) = base.checked_pow(place) else {
            return Datum::Null;
        };
        let digit = (number / power).rem_euclid(base);
        let word = usize::try_from(digit).ok().and_then(|at| words.get(at));
        text.push_str(word.map_or("", String::as_str));
    }
    Datum::Text(text)
}

fn chosen(dice: &mut Dice, values: &[Datum], upto: &[u64]) -> Datum {
    let all = upto.last().copied().unwrap_or(0);
    let drawn = dice.below_wide(all);
    let at = upto.partition_point(|sum| *sum <= drawn);
    values.get(at).cloned().unwrap_or_default()
}

fn filled(pieces: &[Piece], variables: &[Datum]) -> String {
    let mut text = String::new();
    for piece in pieces {
        match piece {
            Piece::Text(fixed) => text.push_str(fixed),
            Piece::Value(Expression::Variable(slot)) => {
                if let Some(value) = variables.get(*slot) {
                    value.write_plain(&mut text);
                }
            }
            Piece::Value(expression) => expression.value(variables).write_plain(&mut text),
        }
    }
    text
}

const DAY: i64 = 86_400;

fn shown_date(day: i64) -> String {
    moment_at(day * DAY).date().to_string()
}

fn shown_moment(second: i64) -> String {
    moment_at(second).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// Returns the moment this many seconds after the beginning of 1970.
fn moment_at(second: i64) -> DateTime {
    // All moments are between two that the calendar has.
    Offset::UTC.to_datetime(Timestamp::from_second(second).unwrap_or_default())
}

/// Seconds from the beginning of 1970 to a moment.
pub fn second_of(moment: DateTime) -> Option<i64> {
    Some(Offset::UTC.to_timestamp(moment).ok()?.as_second())
}

/// Days from the beginning of 1970 to a date.
pub fn day_of(date: Date) -> Option<i64> {
    Some(second_of(date.to_datetime(Time::midnight()))?.div_euclid(DAY))
}
