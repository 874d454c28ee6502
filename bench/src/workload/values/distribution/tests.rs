use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::workload::document::{parse, Complaints};
use crate::workload::values::generator::{Alone, Step, Surroundings};
use peregrine_harness::dice::Dice;

/// Reads the generator `text`, such as `{ uniform = [1, 6] }`, with parameter `rows` and variable `x`.
///
/// Returns the generator, or the problems with their columns.
fn read(text: &str, in_transaction: bool) -> Result<Generator, Vec<(usize, String)>> {
    let file = format!("g = {text}");
    let complaints = Complaints::new(&file);
    let parameters = Arc::new(BTreeMap::from([("rows".to_owned(), 1_000)]));
    let mut scope = Scope::new(parameters, 7);
    if in_transaction {
        scope.begin_transaction();
    }
    scope.fresh("x");
    scope.fresh("row");
    let found = parse(&file, &complaints).and_then(|table| {
        let mut section = Section::new(table.get_ref(), 0, "a test", &complaints);
        let node = section.take("g")?;
        short_or_long(&node, &mut scope)
    });
    let problems = complaints.into_problems();
    match found {
        Some(generator) if problems.is_empty() => Ok(generator),
        _ => Err(problems.into_iter().map(|p| (p.column, p.text)).collect()),
    }
}

/// Draws values of a generator; `x` is 3 and `row` is the number of the value.
fn values(text: &str, count: i64) -> Vec<Datum> {
    let generator = read(text, false).expect(text);
    let mut dice = Dice::new(11, 1);
    (1..=count)
        .map(|row| {
            let variables = [Datum::Integer(3), Datum::Integer(row)];
            generator.draw(&mut dice, &variables, &mut Alone)
        })
        .collect()
}

fn numbers(text: &str, count: i64) -> Vec<i64> {
    let values = values(text, count);
    values
        .iter()
        .map(|v| v.integer().expect("a number"))
        .collect()
}

fn texts(text: &str, count: i64) -> Vec<String> {
    values(text, count)
        .into_iter()
        .map(|value| match value {
            Datum::Text(text) => text,
            other => panic!("{other:?} is no text"),
        })
        .collect()
}

#[test]
fn uniform_numbers_are_all_as_likely() {
    let drawn = numbers("{ uniform = [-2, 7] }", 100_000);
    for number in -2..=7 {
        let count = drawn.iter().filter(|other| **other == number).count();
        assert!((9_500..10_500).contains(&count), "{number}: {count}");
    }
    assert!(drawn.iter().all(|number| (-2..=7).contains(number)));
}

#[test]
fn decimals_are_within_their_range() {
    for value in values("{ uniform = [0.10, \"x\"], decimals = 2 }", 1_000) {
        let Datum::Decimal { units, scale: 2 } = value else {
            panic!("{value:?}")
        };
        assert!((10..=300).contains(&units));
    }
}

#[test]
fn zipf_prefers_the_first_or_scattered_numbers() {
    let drawn = numbers("{ zipf = [1, \"rows\"] }", 50_000);
    let of = |number: i64| drawn.iter().filter(|other| **other == number).count();
    // The first of 1,000 has a share of 1/H, about 0.13. H is the sum of k^-0.99.
    assert!((6_000..7_200).contains(&of(1)), "{}", of(1));
    assert!(of(1) > of(2) && of(2) > of(10) && of(10) > of(200));

    let scattered = numbers("{ zipf = [1, \"rows\"], scatter = true }", 50_000);
    let mut counts: BTreeMap<i64, usize> = BTreeMap::new();
    for number in &scattered {
        assert!((1..=1_000).contains(number));
        *counts.entry(*number).or_default() += 1;
    }
    let mut sorted: Vec<(usize, i64)> = counts.iter().map(|(n, count)| (*count, *n)).collect();
    sorted.sort_unstable();
    let hottest: Vec<i64> = sorted.iter().rev().take(3).map(|(_, n)| *n).collect();
    assert!((6_000..7_200).contains(&sorted.last().expect("one").0));
    assert!(hottest.iter().any(|number| *number > 20), "{hottest:?}");
}

#[test]
fn a_range_may_depend_on_variables() {
    assert!(numbers("{ zipf = [1, \"row\"] }", 500)
        .iter()
        .zip(1..)
        .all(|(number, row)| (1..=row).contains(number)));
    let drawn = values("{ uniform = [5, \"x\"] }", 1);
    assert_eq!(drawn, [Datum::Null], "nothing is between 5 and 3");
}

#[test]
fn a_shuffle_gives_every_number_once() {
    let mut drawn = numbers("{ shuffle = [11, 510] }", 500);
    assert_ne!(drawn[..5], [11, 12, 13, 14, 15]);
    drawn.sort_unstable();
    assert_eq!(drawn, (11..=510).collect::<Vec<_>>());
}

#[test]
fn nurand_is_the_specification_s() {
    let drawn = numbers("{ nurand = [1, 3000], a = 1023, c = 259 }", 100_000);
    assert!(drawn.iter().all(|number| (1..=3_000).contains(number)));
    // The OR of two numbers sets most bits. So the value with all ten low bits set is the most likely; the constant
    // shifts it.
    let share = |number: i64| drawn.iter().filter(|other| **other == number).count();
    let likely = 1_023 + 259 + 1;
    assert!(share(likely) > 500, "{}", share(likely));
    let unlikely = 1_024 + 259 + 1;
    assert!(share(unlikely) < 20, "{}", share(unlikely));
}

#[test]
fn strings_have_the_lengths_asked_for() {
    for kind in ["letters", "digits", "text"] {
        let drawn = texts(&format!("{{ {kind} = [3, 9] }}"), 2_000);
        let lengths: HashSet<usize> = drawn.iter().map(String::len).collect();
        assert_eq!(lengths, (3..=9).collect());
    }
    for text in texts("{ pattern = \"##-@x\" }", 500) {
        let bytes = text.as_bytes();
        assert_eq!(bytes.len(), 5);
        assert!(bytes[0].is_ascii_digit() && bytes[1].is_ascii_digit());
        assert!(bytes[3].is_ascii_lowercase());
        assert_eq!((bytes[2], bytes[4]), (b'-', b'x'));
    }
}

#[test]
fn words_templates_choices_and_dates() {
    let words =
        "words = ['BAR', 'OUGHT', 'ABLE', 'PRI', 'PRES', 'ESE', 'ANTI', 'CALLY', 'ATION', 'EING']";
    assert_eq!(
        texts(&format!("{{ spell = 371, {words} }}"), 1),
        ["PRICALLYOUGHT"]
    );
    assert_eq!(
        texts("{ template = \"user{row + 1}@{x}.example\" }", 2),
        ["user2@3.example", "user3@3.example"]
    );
    let chosen = values("{ choice = ['a', 'b', 7], weights = [1, 2, 1] }", 20_000);
    let count = |value: &Datum| chosen.iter().filter(|other| *other == value).count();
    assert!((4_700..5_300).contains(&count(&Datum::Integer(7))));
    assert!((9_700..10_300).contains(&count(&Datum::Text("b".to_owned()))));
    for date in texts("{ date = ['1999-12-30', '2000-01-02'] }", 200) {
        assert!(["1999-12-30", "1999-12-31", "2000-01-01", "2000-01-02"].contains(&date.as_str()));
    }
    let moments = texts(
        "{ datetime = ['2001-02-28 23:59:58', '2001-03-01 00:00:01'] }",
        200,
    );
    assert!(moments.contains(&"2001-02-28 23:59:59".to_owned()));
    assert!(moments.contains(&"2001-03-01 00:00:00".to_owned()));
}

#[test]
fn some_are_null() {
    let drawn = values("{ uniform = [1, 2], null = 0.25 }", 20_000);
    let nulls = drawn.iter().filter(|value| **value == Datum::Null).count();
    assert!((4_700..5_300).contains(&nulls), "{nulls}");
}

/// A client's surroundings with one counter and one sequence.
struct Client {
    newest: i64,
    taken: u64,
    place: (u64, u64),
}

impl Surroundings for Client {
    fn next(&mut self, _: usize) -> i64 {
        self.newest += 1;
        self.newest
    }

    fn newest(&self, _: usize) -> i64 {
        self.newest
    }

    fn step(&mut self, _: usize) -> Step {
        self.taken += 1;
        Step {
            taken: self.taken - 1,
            client: self.place.0,
            clients: self.place.1,
        }
    }
}

#[test]
fn latest_prefers_what_was_counted_last() {
    let latest = read("{ latest = \"orders.id\" }", true).expect("read");
    let next = read("{ next = \"orders.id\" }", true).expect("read");
    let mut dice = Dice::new(1, 1);
    let mut client = Client {
        newest: 500,
        taken: 0,
        place: (0, 1),
    };
    for round in 0..2_000 {
        if round % 4 == 0 {
            let id = next.draw(&mut dice, &[], &mut client).integer();
            assert_eq!(id, Some(client.newest));
        }
        let drawn = latest.draw(&mut dice, &[], &mut client).integer();
        assert!(drawn.is_some_and(|id| (1..=client.newest).contains(&id)));
    }
    let newest = (0..1_000)
        .filter(|_| latest.draw(&mut dice, &[], &mut client).integer() == Some(client.newest))
        .count();
    assert!(newest > 80, "{newest}");
}

#[test]
fn sequential_clients_share_the_range_and_go_round() {
    let generator = read("{ sequential = [1, 10] }", true).expect("read");
    let drawn = |place| -> Vec<i64> {
        let mut client = Client {
            newest: 0,
            taken: 0,
            place,
        };
        let mut dice = Dice::new(1, 1);
        let mut draw = || generator.draw(&mut dice, &[], &mut client).integer();
        (0..12).filter_map(|_| draw()).collect()
    };
    assert_eq!(drawn((0, 2)), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 1, 2]);
    assert_eq!(drawn((1, 2))[..6], [6, 7, 8, 9, 10, 1]);
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    for (text, column, told) in [
        ("{ uniform = [7, 1] }", 17, "the range is empty"),
        ("{ uniform = [1, \"rwos\"] }", 22, "unknown name 'rwos'"),
        ("{ uniform = [1] }", 17, "[minimum, maximum]"),
        ("{ uniform = 3 }", 17, "must be an array"),
        ("{ uniforn = [1, 2] }", 5, "one of value, uniform"),
        ("{ uniform = [1, 2], zipf = [1, 2] }", 32, "one generator"),
        (
            "{ uniform = [1, 2], decimal = 2 }",
            25,
            "unknown key 'decimal'",
        ),
        ("{ zipf = [1, 2], exponent = 0 }", 33, "above 0"),
        ("{ letters = [5, 2] }", 17, "minimum ≤ maximum"),
        ("{ choice = [] }", 16, "a value to choose"),
        (
            "{ choice = [1, 2], weights = [1] }",
            34,
            "2 values have 1 weights",
        ),
        ("{ template = \"{x\" }", 19, "no '}'"),
        ("{ template = \"a{y}\" }", 21, "unknown name 'y'"),
        ("{ date = ['2001-02-30', '2001-03-01'] }", 15, "2001-12-31"),
        ("{ nurand = [1, 10], a = 8 }", 29, "power of two less one"),
        ("{ sequential = [1, 10] }", 20, "for transactions"),
        ("{ uniform = [1, 2], null = 2 }", 32, "from 0 to 1"),
        ("\"1 +\"", 9, "ends too early"),
        ("1.5", 5, "must be a table"),
    ] {
        let problems = read(text, false).expect_err(text);
        assert_eq!(problems[0].0, column, "{text}: {problems:?}");
        assert!(
            problems.iter().any(|(_, problem)| problem.contains(told)),
            "{text}: {problems:?}"
        );
    }
    let problems = read("{ next = \"orders\" }", true).expect_err("no column");
    assert!(problems[0].1.contains("orders.id"));
}

proptest! {
    #[test]
    fn every_kind_stays_in_its_range(from in -10_000_i64..10_000, width in 0_i64..5_000, seed in 0_u64..1_000) {
        let to = from + width;
        for kind in ["uniform", "zipf", "shuffle"] {
            let generator = read(&format!("{{ {kind} = [{from}, {to}] }}"), false).expect("read");
            let mut dice = Dice::new(seed, 1);
            for row in 1..50 {
                let variables = [Datum::Integer(3), Datum::Integer(row)];
                let drawn = generator.draw(&mut dice, &variables, &mut Alone).integer();
                prop_assert!(drawn.is_some_and(|drawn| (from..=to).contains(&drawn)));
            }
        }
    }
}
