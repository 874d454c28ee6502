//! Queries whose plans differ most: index merges, loose scans, semi-joins, subqueries, unions, outer joins.
//!
//! Other queries are those that the engine may run itself ([`queries`], [`joins`]).

use crate::pushdown::queries::{columns_of_a_key, comparison, Condition, Query};
use crate::pushdown::tables::{Kind, LEAST, MOST, TABLES};
use crate::pushdown::{joins, queries};
use peregrine_harness::dice::Dice;

/// A query of one table, with `{hint}` after the table's name, or a query of several tables.
#[derive(Debug)]
pub struct Asked {
    query: Query,
    /// The keys of its table, if it has only one.
    pub keys: Option<&'static str>,
}

/// The placeholder for a plan's hint.
const HINT: &str = "{hint}";

impl Asked {
    fn of_one(sql: String, constants: Vec<String>, keys: &'static str) -> Asked {
        Asked {
            query: Query::new(sql, constants, 0),
            keys: Some(keys),
        }
    }

    fn of_many(sql: String, constants: Vec<String>) -> Asked {
        Asked {
            query: Query::new(sql, constants, 0),
            keys: None,
        }
    }

    /// Returns a random query.
    pub fn some(dice: &mut Dice) -> Asked {
        match dice.below(12) {
            0..=3 => one_of_the_engine(dice),
            4 => Asked {
                query: joins::join(dice),
                keys: None,
            },
            5 | 6 => merge(dice),
            7 => loose(dice),
            8 => semi_join(dice),
            9 => subquery(dice),
            10 => outer_join(dice),
            _ => union(dice),
        }
    }

    /// Returns the query with a hint in place of the placeholder, if it has one.
    pub fn with(&self, hint: &str) -> Query {
        let put = |sql: &str| sql.replace(HINT, hint);
        let query = &self.query;
        Query {
            text: put(&query.text),
            prepared: (put(&query.prepared.0), query.prepared.1.clone()),
            whole: query
                .whole
                .as_ref()
                .map(|(text, prepared)| (put(text), put(prepared))),
            ordered: query.ordered,
        }
    }
}

/// Returns a random table and its keys.
pub(super) fn table(dice: &mut Dice) -> (&'static str, &'static str) {
    TABLES[dice.below(TABLES.len() as u32) as usize]
}

fn one_of_the_engine(dice: &mut Dice) -> Asked {
    let mut query = queries::query(dice);
    let found = TABLES
        .iter()
        .find(|(name, _)| query.text.contains(&format!(" FROM {name}")));
    let Some((name, keys)) = found else {
        return Asked { query, keys: None };
    };
    let put = |sql: &mut String| {
        *sql = sql.replacen(&format!(" FROM {name}"), &format!(" FROM {name}{HINT}"), 1);
    };
    put(&mut query.text);
    put(&mut query.prepared.0);
    if let Some((text, prepared)) = &mut query.whole {
        put(text);
        put(prepared);
    }
    Asked {
        query,
        keys: Some(*keys),
    }
}

/// Returns a condition on few enough ids to keep an answer short.
fn some_ids(dice: &mut Dice, of: &str) -> Condition {
    let width = [20, 200, 2_000][dice.below(3) as usize];
    ids(dice, of, width)
}

/// Returns a condition on even fewer ids: for each row, the query may read all rows of another table.
fn few_ids(dice: &mut Dice, of: &str) -> Condition {
    let width = [5, 40, 200][dice.below(3) as usize];
    ids(dice, of, width)
}

/// Returns a condition on a range of ids of this width.
pub(super) fn ids(dice: &mut Dice, of: &str, width: i64) -> Condition {
    let from = dice.between(LEAST, MOST);
    let bounds = vec![from.to_string(), (from + width).to_string()];
    (format!("{of}id BETWEEN ? AND ?"), bounds)
}

/// Returns conditions on the first columns of a random key.
pub(super) fn by_a_key(dice: &mut Dice, of: &str, keys: &str, equal: bool) -> Condition {
    let columns = columns_of_a_key(dice, keys);
    let last = columns.len().saturating_sub(1);
    let parts: Vec<Condition> = columns
        .into_iter()
        .enumerate()
        .map(|(n, column)| comparison(dice, of, column, equal || n < last))
        .collect();
    joined(parts, " AND ")
}

fn joined(parts: Vec<Condition>, by: &str) -> Condition {
    let (sql, constants): (Vec<String>, Vec<Vec<String>>) = parts.into_iter().unzip();
    (sql.join(by), constants.concat())
}

/// Returns a query for index merges: several keys each find some of the rows (OR), or more rows than needed (AND).
fn merge(dice: &mut Dice) -> Asked {
    let (name, keys) = table(dice);
    let union = dice.below(2) == 0;
    let parts: Vec<Condition> = (0..2 + dice.below(2))
        .map(|_| {
            let (sql, constants) = by_a_key(dice, "", keys, !union);
            (format!("({sql})"), constants)
        })
        .collect();
    let (condition, constants) = joined(parts, if union { " OR " } else { " AND " });
    let items = ["id, a", "*", "COUNT(*), SUM(id)", "a, b, w"][dice.below(4) as usize];
    let sql = format!("SELECT {items} FROM {name}{HINT} WHERE {condition}");
    Asked::of_one(sql, constants, keys)
}

/// Returns a query for loose scans: groups by a prefix of a key, with aggregates that a scan from group to group can
/// find.
fn loose(dice: &mut Dice) -> Asked {
    let (name, keys) = table(dice);
    let groups: Vec<&str> = columns_of_a_key(dice, keys)
        .iter()
        .filter(|column| !matches!(column.kind, Kind::Word | Kind::Double))
        .map(|column| column.name)
        .collect();
    let of = |dice: &mut Dice| ["id", "a", "b", "c", "d"][dice.below(5) as usize];
    let (condition, constants) = match dice.below(3) {
        0 => by_a_key(dice, "", keys, true),
        1 => some_ids(dice, ""),
        _ => ("1 = 1".to_owned(), Vec::new()),
    };
    let sql = if groups.is_empty() || dice.below(3) == 0 {
        let (one, other) = (of(dice), of(dice));
        format!("SELECT COUNT(DISTINCT {one}), COUNT(DISTINCT {one}, {other}) FROM {name}{HINT} WHERE {condition}")
    } else if dice.below(4) == 0 {
        format!(
            "SELECT DISTINCT {} FROM {name}{HINT} WHERE {condition}",
            groups.join(", ")
        )
    } else {
        let (one, other, groups) = (of(dice), of(dice), groups.join(", "));
        format!(
            "SELECT {groups}, MIN({one}), MAX({other}), COUNT(*) FROM {name}{HINT} WHERE {condition} GROUP BY {groups}"
        )
    };
    Asked::of_one(sql, constants, keys)
}

/// Returns a query for rows with, or without, a matching row elsewhere.
fn semi_join(dice: &mut Dice) -> Asked {
    let ((outer, _), (inner, inner_keys)) = (table(dice), table(dice));
    let (outside, mut constants) = few_ids(dice, "o.");
    let (inside, more) = match dice.below(2) {
        0 => by_a_key(dice, "i.", inner_keys, false),
        _ => some_ids(dice, "i."),
    };
    constants.extend(more);
    let (left, right) = [("r", "id"), ("id", "r"), ("a", "a"), ("b", "b")][dice.below(4) as usize];
    let rows = format!("(SELECT i.{right} FROM {inner} AS i WHERE {inside})");
    let test = match dice.below(6) {
        0 | 1 => format!("o.{left} IN {rows}"),
        2 => format!("o.{left} NOT IN {rows}"),
        3 => format!("EXISTS (SELECT 1 FROM {inner} AS i WHERE i.{right} = o.{left} AND {inside})"),
        4 => format!(
            "NOT EXISTS (SELECT 1 FROM {inner} AS i WHERE i.{right} = o.{left} AND {inside})"
        ),
        _ => format!("o.{left} >= ALL {rows}"),
    };
    let items = ["o.id, o.a, o.r", "COUNT(*), SUM(o.id)"][dice.below(2) as usize];
    let sql = format!("SELECT {items} FROM {outer} AS o WHERE {outside} AND {test}");
    Asked::of_many(sql, constants)
}

/// Returns a query with a subquery for each row.
fn subquery(dice: &mut Dice) -> Asked {
    let ((outer, _), (inner, _)) = (table(dice), table(dice));
    let (condition, constants) = few_ids(dice, "o.");
    let found = ["MAX(i.m)", "COUNT(*)", "MIN(i.t)", "SUM(i.x)"][dice.below(4) as usize];
    let by = [
        "i.id = o.r",
        "i.a = o.a AND i.id = o.id",
        "i.b = o.b AND i.a > o.a",
    ][dice.below(3) as usize];
    let sql = format!(
        "SELECT o.id, o.a, (SELECT {found} FROM {inner} AS i WHERE {by}) FROM {outer} AS o WHERE {condition}"
    );
    Asked::of_many(sql, constants)
}

/// Returns a left join: rows of one table, each with those of another or with NULL.
fn outer_join(dice: &mut Dice) -> Asked {
    let ((outer, _), (inner, inner_keys)) = (table(dice), table(dice));
    let (condition, constants) = few_ids(dice, "o.");
    let on = [
        "i.id = o.r",
        "i.a = o.a AND i.b = o.b",
        "i.r = o.r",
        "i.d = o.d",
    ][dice.below(4) as usize];
    let column = columns_of_a_key(dice, inner_keys)[0];
    let (more, mut values) = comparison(dice, "i.", column, false);
    // In the text, the condition on the joined table comes before that on the outer table.
    values.extend(constants);
    let items = ["COUNT(*), COUNT(i.id), SUM(i.a)", "o.id, o.a, i.id, i.a"][dice.below(2) as usize];
    let sql = format!("SELECT {items} FROM {outer} AS o LEFT JOIN {inner} AS i ON {on} AND {more} WHERE {condition}");
    Asked::of_many(sql, values)
}

/// Returns a union of rows of two tables.
fn union(dice: &mut Dice) -> Asked {
    let ((one, one_keys), (other, other_keys)) = (table(dice), table(dice));
    let (first, mut constants) = by_a_key(dice, "", one_keys, false);
    let (second, more) = by_a_key(dice, "", other_keys, false);
    constants.extend(more);
    let all = ["ALL", "DISTINCT"][dice.below(2) as usize];
    let rows = format!("SELECT a, b, r FROM {one} WHERE {first} UNION {all} SELECT a, b, r FROM {other} WHERE {second}");
    let sql = match dice.below(2) {
        0 => rows,
        _ => format!("SELECT q.a, COUNT(*), SUM(q.r) FROM ({rows}) AS q GROUP BY q.a"),
    };
    Asked::of_many(sql, constants)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pushdown::tables::COLUMNS;

    #[test]
    fn constants_are_as_many_as_places() {
        let mut dice = Dice::new(1, 1);
        for _ in 0..3_000 {
            let asked = Asked::some(&mut dice);
            let query = asked.with(" FORCE INDEX (x)");
            let (sql, constants) = &query.prepared;
            assert_eq!(sql.matches('?').count(), constants.len(), "{sql}");
            assert!(!query.text.contains(['?', '{']), "{}", query.text);
            assert_eq!(
                query.text.contains("FORCE INDEX"),
                asked.keys.is_some(),
                "{}",
                query.text
            );
        }
    }

    #[test]
    fn the_columns_asked_for_are_there() {
        for name in ["id", "a", "b", "c", "d", "m", "r", "t", "w", "x"] {
            assert!(COLUMNS.iter().any(|column| column.name == name), "{name}");
        }
    }
}
