//! Generated SELECTs of two tables: rows of one, and for each the row of the other table with its key.

use super::queries::{
    any_column, columns_of_a_key, comparison, expression, order, Condition, Query,
};
use super::tables::TABLES;
use peregrine_harness::dice::Dice;

/// The tables with a clustered key, by index into all tables, and the key's columns.
const LOOKED_UP: [(usize, &[&str]); 3] = [(0, &["id"]), (1, &["w", "id"]), (2, &["a", "id"])];

/// Returns equalities for all columns of the key.
///
/// Some compare with another column, for which the engine has no key.
fn equalities(dice: &mut Dice, key: &[&str]) -> Vec<Condition> {
    let mut all: Vec<Condition> = key
        .iter()
        .map(|name| match dice.below(10) {
            0 if *name == "id" => "i.id = o.a".to_owned(),
            1..=6 if *name == "id" => "i.id = o.r".to_owned(),
            7 => format!("o.{name} = i.{name}"),
            _ => format!("i.{name} = o.{name}"),
        })
        .map(|sql| (sql, Vec::new()))
        .collect();
    if dice.below(10) == 0 {
        let operator = ["=", "<>", "<="][dice.below(3) as usize];
        let name = any_column(dice).name;
        all.push((format!("i.{name} {operator} o.{name}"), Vec::new()));
    }
    all
}

/// Returns a random query.
#[must_use]
pub fn join(dice: &mut Dice) -> Query {
    let (outer, outer_keys) = TABLES[dice.below(TABLES.len() as u32) as usize];
    let (inner, key) = LOOKED_UP[dice.below(LOOKED_UP.len() as u32) as usize];
    let (inner, inner_keys) = TABLES[inner];
    let on = equalities(dice, key);
    let mut conditions = Vec::new();
    if dice.below(2) == 0 {
        let columns = columns_of_a_key(dice, outer_keys);
        let last = columns.len().saturating_sub(1);
        for (n, column) in columns.into_iter().enumerate() {
            conditions.push(comparison(dice, "o.", column, n < last));
        }
    }
    for of in ["o.", "i."] {
        if dice.below(3) == 0 {
            let column = any_column(dice);
            conditions.push(comparison(dice, of, column, false));
        }
    }
    if dice.below(10) == 0 {
        let column = columns_of_a_key(dice, inner_keys)[0];
        conditions.push(comparison(dice, "i.", column, true));
    }
    let sql_of = |all: &[Condition]| {
        let parts: Vec<&str> = all.iter().map(|(sql, _)| &sql[..]).collect();
        parts.join(" AND ")
    };
    let order: Vec<String> = match dice.below(4) {
        0 => order(dice, outer_keys)
            .into_iter()
            .map(|name| format!("o.{name}"))
            .collect(),
        _ => Vec::new(),
    };
    let mut items = order.clone();
    for _ in 0..1 + dice.below(4) {
        let of = ["o.", "i."][dice.below(2) as usize];
        items.push(expression(dice, of));
    }
    let mut from = match dice.below(3) {
        0 => format!("{inner} AS i JOIN {outer} AS o ON {}", sql_of(&on)),
        1 => format!("{outer} AS o JOIN {inner} AS i ON {}", sql_of(&on)),
        _ => {
            conditions.splice(0..0, on);
            format!("{outer} AS o, {inner} AS i")
        }
    };
    if !conditions.is_empty() {
        from = format!("{from} WHERE {}", sql_of(&conditions));
    }
    let mut sql = format!("SELECT {} FROM {from}", items.join(", "));
    if !order.is_empty() {
        sql = format!("{sql} ORDER BY {}", order.join(", "));
    }
    let constants: Vec<String> = conditions.into_iter().flat_map(|(_, c)| c).collect();
    let mut query = Query::new(sql, constants, order.len());
    match dice.below(8) {
        0 => query.limit(&dice.below(20).to_string()),
        1 => query.limit(&format!("{}, {}", dice.below(200), dice.below(20))),
        _ => {}
    }
    query
}

#[cfg(test)]
mod tests {
    use super::super::tables::{Kind, COLUMNS};
    use super::*;

    #[test]
    fn rows_are_looked_up_by_clustered_keys() {
        for (table, key) in LOOKED_UP {
            let (_, keys) = TABLES[table];
            assert!(keys.contains(&format!("PRIMARY KEY ({})", key.join(", "))));
            for name in key {
                let column = COLUMNS.iter().find(|column| column.name == *name).unwrap();
                assert!(!column.nullable && column.kind != Kind::Double);
            }
        }
    }

    #[test]
    fn constants_are_as_many_as_places() {
        let mut dice = Dice::new(1, 1);
        for _ in 0..1_000 {
            let query = join(&mut dice);
            let (sql, constants) = &query.prepared;
            assert_eq!(sql.matches('?').count(), constants.len(), "{sql}");
            assert!(!query.text.contains('?'), "{}", query.text);
        }
    }
}
