//! Generated SELECTs of one table, and the parts that SELECTs of two tables share with them.

use super::tables::{
    Column, Kind, COLUMNS, TABLES, {self},
};
use peregrine_harness::dice::Dice;

/// A statement and how its answers are compared.
#[derive(Debug, Clone)]
pub struct Query {
    /// The SQL text with the constants in place.
    pub text: String,
    /// The SQL text with `?` for the constants, and the constants.
    pub prepared: (String, Vec<String>),
    /// Both texts without LIMIT, where LIMIT leaves a choice of rows.
    ///
    /// An answer is right if its length is that of any other answer and all its rows are among the rows without LIMIT.
    pub whole: Option<(String, String)>,
    /// The number of leading columns of the select list by which the answer is ordered.
    pub ordered: usize,
}

/// A condition with `?` for its constants, and the constants.
pub(crate) type Condition = (String, Vec<String>);

pub(crate) fn any_column(dice: &mut Dice) -> Column {
    COLUMNS[dice.below(COLUMNS.len() as u32) as usize]
}

/// Returns a constant to compare a column with, mostly of the column's kind.
fn constant(dice: &mut Dice, column: Column) -> String {
    match dice.below(70) {
        0 => "NULL".to_owned(),
        1 => "-1".to_owned(),
        2 => "99999999999".to_owned(),
        3 => "18446744073709551615".to_owned(),
        4 => "'7'".to_owned(),
        5 => "3.5".to_owned(),
        6 => "'a word that is longer than any column'".to_owned(),
        _ => tables::value(dice, column.kind),
    }
}

/// Returns the first columns of a key, for conditions that the key can serve.
pub(crate) fn columns_of_a_key(dice: &mut Dice, keys: &str) -> Vec<Column> {
    let lists: Vec<&str> = keys
        .split('(')
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
        .filter(|list| !list.chars().all(|c| c.is_ascii_digit()))
        .collect();
    let list = lists[dice.below(lists.len() as u32) as usize];
    let columns: Vec<Column> = list
        .split(", ")
        .filter_map(|name| {
            let name = name.split([' ', '(']).next()?;
            COLUMNS.iter().copied().find(|column| column.name == name)
        })
        .collect();
    let used = 1 + dice.below(columns.len().max(1) as u32) as usize;
    columns.into_iter().take(used).collect()
}

/// Returns a condition on one column of the table with the prefix `of`.
pub(crate) fn comparison(dice: &mut Dice, of: &str, column: Column, equal: bool) -> Condition {
    let name = format!("{of}{}", column.name);
    let value = |dice: &mut Dice| constant(dice, column);
    let operator = ["<", "<=", ">", ">=", "=", "<>", "<=>"][dice.below(7) as usize];
    match dice.below(if equal { 3 } else { 14 }) {
        0..=2 => (format!("{name} = ?"), vec![value(dice)]),
        3..=7 => {
            // Both bounds are of the column's kind. Between a word and a number the server's answer depends on its
            // plan, whatever the engine.
            let own = |dice: &mut Dice| tables::value(dice, column.kind);
            let (low, high) = match dice.below(10) {
                0 => {
                    let odd = value(dice);
                    (odd.clone(), odd)
                }
                _ => (own(dice), own(dice)),
            };
            (format!("{name} BETWEEN ? AND ?"), vec![low, high])
        }
        8 | 9 => (format!("{name} {operator} ?"), vec![value(dice)]),
        10 => (format!("? {operator} {name}"), vec![value(dice)]),
        11 => {
            let (low, high) = (value(dice), value(dice));
            (format!("{name} >= ? AND {name} < ?"), vec![low, high])
        }
        12 => (format!("{name} IN (?, ?)"), vec![value(dice), value(dice)]),
        _ => (
            format!("{name} IS {}NULL", ["", "NOT "][dice.below(2) as usize]),
            Vec::new(),
        ),
    }
}

fn condition(dice: &mut Dice, keys: &str) -> Condition {
    let mut parts = Vec::new();
    let mut constants = Vec::new();
    // Some conditions use any column, and not the columns of a key.
    let columns = match dice.below(6) {
        0 => vec![any_column(dice)],
        _ => columns_of_a_key(dice, keys),
    };
    let last = columns.len().saturating_sub(1);
    for (n, column) in columns.into_iter().enumerate() {
        let (part, values) = comparison(dice, "", column, n < last);
        parts.push(part);
        constants.extend(values);
    }
    if dice.below(4) == 0 {
        let column = any_column(dice);
        let (part, values) = comparison(dice, "", column, false);
        parts.push(part);
        constants.extend(values);
    }
    let joint = if dice.below(20) == 0 { " OR " } else { " AND " };
    (parts.join(joint), constants)
}

fn aggregate(dice: &mut Dice) -> String {
    let column = any_column(dice);
    let name = column.name;
    let adds = matches!(
        column.kind,
        Kind::Integer(..) | Kind::Huge | Kind::Decimal | Kind::Double
    );
    match dice.below(if adds { 7 } else { 4 }) {
        0 => "COUNT(*)".to_owned(),
        1 => format!("COUNT({name})"),
        // MIN or MAX of equal words may return any of them, depending on the order of the rows.
        2 if column.kind != Kind::Word => format!("MIN({name})"),
        3 if column.kind != Kind::Word => format!("MAX({name})"),
        4 | 5 => format!("SUM({name})"),
        6 => format!("AVG({name})"),
        _ => format!("COUNT({name})"),
    }
}

/// Returns columns of a key to order by, without words and doubles: two of their values can compare equal and differ.
pub(crate) fn order(dice: &mut Dice, keys: &str) -> Vec<String> {
    let columns = columns_of_a_key(dice, keys);
    let skipped = dice.below(columns.len() as u32) as usize;
    columns
        .into_iter()
        .skip(skipped)
        .filter(|column| !matches!(column.kind, Kind::Word | Kind::Double))
        .map(|column| column.name.to_owned())
        .collect()
}

/// Returns an item of a select list, about the table with the prefix `of`.
pub(crate) fn expression(dice: &mut Dice, of: &str) -> String {
    let name = format!("{of}{}", any_column(dice).name);
    match dice.below(10) {
        0 => format!("CONCAT({name}, '!')"),
        1 => format!("{of}id + 1"),
        2 => format!("{name} IS NULL"),
        3 => "'constant'".to_owned(),
        _ => name,
    }
}

/// Puts the constants in place of each `?` of a text.
pub(crate) fn put(sql: &str, constants: &[String]) -> String {
    let mut text = String::new();
    let mut values = constants.iter();
    for part in sql.split_inclusive('?') {
        match part.strip_suffix('?') {
            Some(before) => {
                text.push_str(before);
                text.push_str(values.next().map_or("?", String::as_str));
            }
            None => text.push_str(part),
        }
    }
    text
}

/// Returns a random query.
#[must_use]
pub fn query(dice: &mut Dice) -> Query {
    let (table, keys) = TABLES[dice.below(TABLES.len() as u32) as usize];
    let aggregates = dice.below(2) == 0;
    let items: Vec<String> = (0..1 + dice.below(4))
        .map(|_| {
            if aggregates {
                aggregate(dice)
            } else {
                expression(dice, "")
            }
        })
        .collect();
    let group =
        (aggregates && dice.below(8) == 0).then(|| ["a", "b"][dice.below(2) as usize].to_owned());
    // Without ORDER BY, the order of rows and groups depends on the plan.
    let order = match (&group, dice.below(3)) {
        (None, 0) if !aggregates => order(dice, keys),
        (Some(group), 0 | 1) => vec![group.clone()],
        _ => Vec::new(),
    };
    let mut items = items;
    let front = if order.is_empty() {
        group.iter().cloned().collect()
    } else {
        order.clone()
    };
    items.splice(0..0, front);
    let mut sql = format!("SELECT {} FROM {table}", items.join(", "));
    let mut constants = Vec::new();
    if dice.below(15) != 0 {
        let (condition, values) = condition(dice, keys);
        sql = format!("{sql} WHERE {condition}");
        constants = values;
    }
    if let Some(group) = &group {
        sql = format!("{sql} GROUP BY {group}");
    }
    if !order.is_empty() {
        let direction = ["", " ASC", " DESC"][dice.below(3) as usize];
        sql = format!("{sql} ORDER BY {}{direction}", order.join(", "));
    }
    let mut query = Query::new(sql, constants, order.len());
    match dice.below(10) {
        0 if !aggregates => query.limit(&dice.below(20).to_string()),
        1 if !aggregates => query.limit(&format!("{}, {}", dice.below(10), dice.below(20))),
        2 => query = query.with(" LIMIT 100000"),
        _ => {}
    }
    query
}

impl Query {
    /// A statement with `?` for its constants and without LIMIT, ordered by its first `ordered` columns.
    pub(crate) fn new(sql: String, constants: Vec<String>, ordered: usize) -> Self {
        Query {
            text: put(&sql, &constants),
            prepared: (sql, constants),
            whole: None,
            ordered,
        }
    }

    /// Adds a LIMIT.
    pub(crate) fn limit(&mut self, limit: &str) {
        let whole = (self.text.clone(), self.prepared.0.clone());
        *self = self.clone().with(&format!(" LIMIT {limit}"));
        self.whole = Some(whole);
    }

    /// Appends SQL text.
    fn with(mut self, behind: &str) -> Self {
        self.text.push_str(behind);
        self.prepared.0.push_str(behind);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_stand_where_they_belong() {
        assert_eq!(
            put("a = ? AND ? < b", &["1".into(), "'x'".into()]),
            "a = 1 AND 'x' < b"
        );
    }

    #[test]
    fn conditions_begin_with_columns_of_a_key() {
        let mut dice = Dice::new(1, 1);
        for _ in 0..1_000 {
            for (_, keys) in TABLES {
                let columns = columns_of_a_key(&mut dice, keys);
                assert!(!columns.is_empty(), "{keys}");
                let front = format!("({}", columns[0].name);
                assert!(keys.contains(&front), "{front} in {keys}");
            }
        }
    }

    #[test]
    fn the_same_seed_asks_the_same() {
        let ask = |seed| -> Vec<String> {
            let mut dice = Dice::new(seed, 0);
            (0..50).map(|_| query(&mut dice).text).collect()
        };
        assert_eq!(ask(3), ask(3));
        assert_ne!(ask(3), ask(4));
    }
}
