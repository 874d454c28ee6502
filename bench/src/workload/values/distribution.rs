//! Reads generators, such as `{ uniform = [1, "rows"] }`.

use rand_distr::Zipf;

use super::expression::Expression;
use super::generator::{day_of, fixed_seed, second_of, Draw, Generator, Kind, Piece, Range};
use super::scope::Scope;
use crate::workload::document::{Node, Section};
use peregrine_harness::engines::Datum;

/// The keys that name a generator.
pub const KINDS: [&str; 17] = [
    "value",
    "uniform",
    "zipf",
    "sequential",
    "latest",
    "next",
    "nurand",
    "shuffle",
    "letters",
    "digits",
    "text",
    "pattern",
    "spell",
    "choice",
    "template",
    "date",
    "datetime",
];

/// The usual exponent of Zipf's distribution, as in the Yahoo Cloud Serving Benchmark.
const USUAL_EXPONENT: f64 = 0.99;

/// The maximum length of a random string.
const LONGEST: i64 = 1 << 20;

/// The maximum number of decimals.
const MOST_DECIMALS: i64 = 9;

/// Reads `draw = { name = generator, … }`, and declares the variables in their order.
pub fn draws(section: &mut Section<'_, '_>, scope: &mut Scope) -> Vec<Draw> {
    let Some(inner) = section.take("draw").and_then(|node| node.section("'draw'")) else {
        return Vec::new();
    };
    let mut draws = Vec::new();
    for (name, node) in inner.entries() {
        let generator = short_or_long(&node, scope);
        let slot = scope.declare(&name, &node);
        draws.extend(generator.map(|generator| Draw { slot, generator }));
    }
    draws
}

/// Reads a generator: a whole number, an expression in quotes, or a table.
pub fn short_or_long(node: &Node<'_, '_>, scope: &mut Scope) -> Option<Generator> {
    if node.as_integer().is_some() || node.as_text().is_some() {
        let expression = scope.expression(node, "a value")?;
        return Some(Generator {
            kind: Kind::Value(expression),
            null: 0.0,
        });
    }
    let mut section = node.section("a generator")?;
    // A wrong generator is not reported again through its keys that were not taken.
    let generator = generator(&mut section, scope)?;
    if generator.is_none() {
        section.complain(format!("a generator is one of {}", KINDS.join(", ")));
    }
    section.end();
    generator
}

/// Reads the generator among the keys of a table: `None` when it is wrong, `Some(None)` when there is none.
pub fn generator(section: &mut Section<'_, '_>, scope: &mut Scope) -> Option<Option<Generator>> {
    let mut found: Option<(&'static str, Node<'_, '_>)> = None;
    for kind in KINDS {
        let Some(node) = section.take(kind) else {
            continue;
        };
        if let Some((first, _)) = found {
            node.complain(format!(
                "'{first}' and '{kind}' together: a value has one generator"
            ));
            return None;
        }
        found = Some((kind, node));
    }
    let null = match section.take("null") {
        None => 0.0,
        Some(node) => match node.as_number().filter(|share| (0.0..=1.0).contains(share)) {
            Some(share) => share,
            None => {
                node.complain("'null' is the share of NULLs, a number from 0 to 1");
                return None;
            }
        },
    };
    let Some((kind, node)) = found else {
        if null > 0.0 {
            section.complain("'null' goes with a generator");
            return None;
        }
        return Some(None);
    };
    let kind = read_kind(kind, &node, section, scope)?;
    Some(Some(Generator { kind, null }))
}

fn read_kind(
    kind: &str,
    node: &Node<'_, '_>,
    section: &mut Section<'_, '_>,
    scope: &mut Scope,
) -> Option<Kind> {
    match kind {
        "value" => scope.expression(node, "'value'").map(Kind::Value),
        "uniform" => uniform(node, section, scope),
        "zipf" => zipf(node, section, scope),
        "sequential" => {
            let range = range(node, scope)?;
            within_transaction(node, scope, kind)?;
            Some(Kind::Sequential {
                range,
                sequence: scope.sequence(),
            })
        }
        "next" => {
            within_transaction(node, scope, kind)?;
            counter(node, scope).map(Kind::Next)
        }
        "latest" => {
            within_transaction(node, scope, kind)?;
            Some(Kind::Latest {
                counter: counter(node, scope)?,
                exponent: exponent(section)?,
            })
        }
        "nurand" => non_uniform(node, section, scope),
        "shuffle" => shuffle(node, section, scope),
        "letters" => lengths(node).map(|(minimum, most)| Kind::Letters(minimum, most)),
        "digits" => lengths(node).map(|(minimum, most)| Kind::Digits(minimum, most)),
        "text" => lengths(node).map(|(minimum, most)| Kind::Words(minimum, most)),
        "pattern" => Some(Kind::Pattern(node.text("'pattern'")?.text.to_owned())),
        "spell" => spell(node, section, scope),
        "choice" => choice(node, section),
        "template" => template(node, scope),
        "date" => moments(node, false).map(|(from, to)| Kind::Date(from, to)),
        _ => moments(node, true).map(|(from, to)| Kind::Moment(from, to)),
    }
}

fn within_transaction(node: &Node<'_, '_>, scope: &Scope, kind: &str) -> Option<()> {
    if !scope.in_transaction {
        node.complain(format!(
            "'{kind}' is for transactions; the number of a table's row is 'row', as in value = \"row\""
        ));
        return None;
    }
    Some(())
}

fn range(node: &Node<'_, '_>, scope: &Scope) -> Option<Range> {
    let ends = pair(node)?;
    let range = Range {
        from: scope.expression(&ends.0, "the minimum of a range")?,
        to: scope.expression(&ends.1, "the most of a range")?,
    };
    ordered(node, &range)
}

fn pair<'d, 'a>(node: &Node<'d, 'a>) -> Option<(Node<'d, 'a>, Node<'d, 'a>)> {
    match node.array("a range")?.as_slice() {
        [from, to] => Some((*from, *to)),
        others => {
            node.complain(format!(
                "a range is [minimum, maximum], both included, and this has {} elements",
                others.len()
            ));
            None
        }
    }
}

fn ordered(node: &Node<'_, '_>, range: &Range) -> Option<Range> {
    if let (Some(from), Some(to)) = (range.from.constant(), range.to.constant()) {
        match (from, to) {
            (Datum::Integer(from), Datum::Integer(to)) if from <= to => {}
            (Datum::Integer(from), Datum::Integer(to)) => {
                node.complain(format!(
                    "the range is empty: its minimum, {from}, is above its maximum, {to}"
                ));
                return None;
            }
            _ => {
                node.complain("the ends of a range must be whole numbers");
                return None;
            }
        }
    }
    Some(range.clone())
}

fn uniform(node: &Node<'_, '_>, section: &mut Section<'_, '_>, scope: &Scope) -> Option<Kind> {
    let scale = match section.take("decimals") {
        None => 0,
        Some(given) => match given.integer("'decimals'")? {
            number @ 0..=MOST_DECIMALS => u8::try_from(number).ok()?,
            _ => {
                given.complain(format!("'decimals' is a number from 0 to {MOST_DECIMALS}"));
                return None;
            }
        },
    };
    if scale == 0 {
        return Some(Kind::Uniform {
            range: range(node, scope)?,
            scale,
        });
    }
    let (from, to) = pair(node)?;
    let range = Range {
        from: scaled(&from, scale, scope)?,
        to: scaled(&to, scale, scope)?,
    };
    Some(Kind::Uniform {
        range: ordered(node, &range)?,
        scale,
    })
}

/// Reads a bound of a range, in units of the last decimal.
fn scaled(node: &Node<'_, '_>, scale: u8, scope: &Scope) -> Option<Expression> {
    use super::expression::Operator;
    let unit = 10_i64.pow(u32::from(scale));
    let Some(written) = node.as_written_number() else {
        let whole = scope.expression(node, "an end of a range")?;
        let unit = Expression::number(unit);
        let product = Expression::Binary(Operator::Multiply, Box::new(whole), Box::new(unit));
        return Some(match product.constant() {
            Some(value) => Expression::Constant(value),
            None => product,
        });
    };
    let (whole, decimals) = written.split_once('.').unwrap_or((&written, ""));
    let digits = usize::from(scale);
    let padded = format!("{whole}{decimals:0<digits$}").replace('_', "");
    match padded.parse() {
        Ok(units) if decimals.len() <= digits => Some(Expression::number(units)),
        _ => {
            node.complain(format!("this number must have at most {scale} decimals"));
            None
        }
    }
}

fn exponent(section: &mut Section<'_, '_>) -> Option<f64> {
    let Some(node) = section.take("exponent") else {
        return Some(USUAL_EXPONENT);
    };
    let exponent = node
        .as_number()
        .filter(|number| *number > 0.0 && *number <= 10.0);
    if exponent.is_none() {
        node.complain("'exponent' is a number above 0 and up to 10; 0.99 when it is left out");
    }
    exponent
}

fn zipf(node: &Node<'_, '_>, section: &mut Section<'_, '_>, scope: &mut Scope) -> Option<Kind> {
    let range = range(node, scope)?;
    let exponent = exponent(section)?;
    let scatter = match section.take("scatter") {
        None => false,
        Some(given) => given.boolean("'scatter'")?,
    };
    let fixed = match (range.from.constant(), range.to.constant()) {
        (Some(Datum::Integer(from)), Some(Datum::Integer(to))) => {
            let size = to.wrapping_sub(from).unsigned_abs().saturating_add(1);
            Zipf::new(size as f64, exponent).ok()
        }
        _ => None,
    };
    Some(Kind::Zipf {
        range,
        exponent,
        fixed,
        scatter: scatter.then(|| fixed_seed(scope.seed, 1)),
    })
}

fn counter(node: &Node<'_, '_>, scope: &mut Scope) -> Option<usize> {
    let text = node.text("a counter")?;
    match text.text.split_once('.') {
        Some((table, column)) if !table.is_empty() && !column.is_empty() => {
            Some(scope.counter(table, column))
        }
        _ => {
            node.complain("a counter is named by its table and column, as in \"orders.id\"");
            None
        }
    }
}

fn non_uniform(node: &Node<'_, '_>, section: &mut Section<'_, '_>, scope: &Scope) -> Option<Kind> {
    let range = range(node, scope)?;
    let a = section.need("a")?;
    let limit = a.integer("'a'")?;
    if limit < 1 || limit.count_ones() != limit.trailing_ones() {
        a.complain("'a' is a power of two less one, such as 255, 1023 or 8191");
        return None;
    }
    let c = match section.take("c") {
        None => 0,
        Some(given) => {
            let c = given.integer("'c'")?;
            if !(0..=limit).contains(&c) {
                given.complain(format!("'c' is a number from 0 to {limit}"));
                return None;
            }
            c
        }
    };
    Some(Kind::NonUniform { range, a: limit, c })
}

fn shuffle(node: &Node<'_, '_>, section: &mut Section<'_, '_>, scope: &Scope) -> Option<Kind> {
    let range = range(node, scope)?;
    let of = match section.take("of") {
        Some(of) => scope.expression(&of, "'of'")?,
        None if !scope.in_transaction => scope.lookup("row").ok()?,
        None => {
            node.complain("'shuffle' in a transaction needs 'of', the place whose number is meant");
            return None;
        }
    };
    Some(Kind::Shuffle {
        range,
        of,
        seed: fixed_seed(scope.seed, 2),
    })
}

fn lengths(node: &Node<'_, '_>) -> Option<(usize, usize)> {
    let (from, to) = pair(node)?;
    let minimum = from.integer("the minimum length")?;
    let most = to.integer("the most length")?;
    if minimum < 0 || minimum > most || most > LONGEST {
        node.complain(format!(
            "lengths are [minimum, maximum] with 0 ≤ minimum ≤ maximum ≤ {LONGEST}"
        ));
        return None;
    }
    Some((usize::try_from(minimum).ok()?, usize::try_from(most).ok()?))
}

fn spell(node: &Node<'_, '_>, section: &mut Section<'_, '_>, scope: &Scope) -> Option<Kind> {
    let number = scope.expression(node, "'spell'")?;
    let list = section.need("words")?;
    let mut words = Vec::new();
    for word in list.array("'words'")? {
        words.push(word.text("a word")?.text.to_owned());
    }
    if words.is_empty() {
        list.complain("'words' must have a word for each digit, such as ten");
        return None;
    }
    let digits = match section.take("digits_written") {
        None => 3,
        Some(given) => match given.integer("'digits_written'")? {
            number @ 1..=18 => u32::try_from(number).ok()?,
            _ => {
                given.complain("'digits_written' is a number from 1 to 18");
                return None;
            }
        },
    };
    Some(Kind::Spell {
        number,
        words,
        digits,
    })
}

fn choice(node: &Node<'_, '_>, section: &mut Section<'_, '_>) -> Option<Kind> {
    let mut values = Vec::new();
    for value in node.array("'choice'")? {
        values.push(match (value.as_text(), value.as_integer()) {
            (Some(text), _) => Datum::Text(text.text.to_owned()),
            (None, Some(number)) => Datum::Integer(number),
            (None, None) => {
                value.complain(format!(
                    "a choice is among strings and whole numbers, and this is {}",
                    value.kind()
                ));
                return None;
            }
        });
    }
    if values.is_empty() {
        node.complain("'choice' must have a value to choose");
        return None;
    }
    let weights = match section.take("weights") {
        None => vec![1; values.len()],
        Some(given) => {
            let mut weights = Vec::new();
            for weight in given.array("'weights'")? {
                match weight.integer("a weight")? {
                    number @ 1..=1_000_000_000 => weights.push(number.unsigned_abs()),
                    _ => {
                        weight.complain("a weight is a whole number from 1 to 1000000000");
                        return None;
                    }
                }
            }
            if weights.len() != values.len() {
                given.complain(format!(
                    "{} values have {} weights: each must have one",
                    values.len(),
                    weights.len()
                ));
                return None;
            }
            weights
        }
    };
    let mut sum = 0;
    let upto = weights
        .into_iter()
        .map(|weight| {
            sum += weight;
            sum
        })
        .collect();
    Some(Kind::Choice { values, upto })
}

fn template(node: &Node<'_, '_>, scope: &Scope) -> Option<Kind> {
    let text = node.text("'template'")?;
    let mut pieces = Vec::new();
    let mut at = 0;
    while let Some(begin) = text.text[at..].find('{') {
        let open = at + begin;
        let Some(length) = text.text[open..].find('}') else {
            node.complain_at(text.at(open), "this '{' has no '}'");
            return None;
        };
        let inside = &text.text[open + 1..open + length];
        match Expression::parse(inside, &|name| scope.lookup(name)) {
            Ok(expression) => {
                pieces.push(Piece::Text(text.text[at..open].to_owned()));
                pieces.push(Piece::Value(expression));
            }
            Err((place, problem)) => {
                node.complain_at(text.at(open + 1 + place), problem);
                return None;
            }
        }
        at = open + length + 1;
    }
    pieces.push(Piece::Text(text.text[at..].to_owned()));
    Some(Kind::Template(pieces))
}

fn moments(node: &Node<'_, '_>, with_time: bool) -> Option<(i64, i64)> {
    let (from, to) = pair(node)?;
    let read = |end: &Node<'_, '_>| -> Option<i64> {
        let text = end.text("a date")?;
        let moment = if with_time {
            moment(text.text)
        } else {
            day(text.text)
        };
        if moment.is_none() {
            end.complain(if with_time {
                "a date and time is written as \"2001-12-31 23:59:59\""
            } else {
                "a date is written as \"2001-12-31\""
            });
        }
        moment
    };
    let bounds = (read(&from)?, read(&to)?);
    if bounds.0 > bounds.1 {
        node.complain("the range is empty: it ends before it begins");
        return None;
    }
    Some(bounds)
}

fn day(text: &str) -> Option<i64> {
    day_of(text.parse().ok()?)
}

fn moment(text: &str) -> Option<i64> {
    second_of(text.parse().ok()?)
}

#[cfg(test)]
mod tests;
