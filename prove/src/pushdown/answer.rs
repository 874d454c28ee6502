//! Answers to a query, and the check that two of them are equally right.

use mysql::prelude::Queryable;
use mysql::{Conn, Params, Row, Value};

use super::queries::Query;
use peregrine_harness::error::{Result, StatementContext};

/// An answer, or an error's number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The sorted rows; and the columns to order by, in the order in which they came.
    Rows(Vec<String>, Vec<String>),
    Error(u16),
}

fn text_of(values: &[Value]) -> String {
    let values: Vec<String> = values
        .iter()
        .map(|value| match value {
            // Bytes that are no valid text are written as SQL, so that different bytes stay different.
            Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => text.to_owned(),
                Err(_) => value.as_sql(false),
            },
            other => other.as_sql(true),
        })
        .collect();
    values.join("\t")
}

/// Converts a statement's result into an answer.
///
/// The rows are ordered by the first `ordered` columns.
fn answer(
    rows: std::result::Result<Vec<Row>, mysql::Error>,
    sql: &str,
    ordered: usize,
) -> Result<Answer> {
    match rows {
        Ok(rows) => {
            let rows: Vec<Vec<Value>> = rows.into_iter().map(Row::unwrap).collect();
            let front = |row: &Vec<Value>| text_of(&row[..ordered.min(row.len())]);
            let order = match ordered {
                0 => Vec::new(),
                _ => rows.iter().map(front).collect(),
            };
            let mut rows: Vec<String> = rows.iter().map(|row| text_of(row)).collect();
            rows.sort_unstable();
            Ok(Answer::Rows(rows, order))
        }
        Err(mysql::Error::MySqlError(error)) => Ok(Answer::Error(error.code)),
        Err(other) => Err(other).running(sql),
    }
}

/// Converts a constant into the value that the client sends.
fn parameter(constant: &str) -> Value {
    if constant == "NULL" {
        return Value::NULL;
    }
    if let Ok(number) = constant.parse::<i64>() {
        return Value::Int(number);
    }
    if let Ok(number) = constant.parse::<u64>() {
        return Value::UInt(number);
    }
    Value::Bytes(constant.trim_matches('\'').as_bytes().to_vec())
}

/// Sends a query as text; the answer is ordered by its first `ordered` columns.
///
/// # Errors
/// When the server does not answer. An error from the server is an answer.
pub(crate) fn text(connection: &mut Conn, sql: &str, ordered: usize) -> Result<Answer> {
    let rows = connection.query(sql);
    answer(rows, sql, ordered)
}

/// Sends a query as a prepared statement with its constants, else like [`text`].
///
/// # Errors
/// As [`text`].
pub(crate) fn prepared(
    connection: &mut Conn,
    sql: &str,
    constants: &[String],
    ordered: usize,
) -> Result<Answer> {
    let constants: Vec<Value> = constants.iter().map(|c| parameter(c)).collect();
    let parameters = if constants.is_empty() {
        Params::Empty
    } else {
        Params::Positional(constants)
    };
    let rows = connection.exec(sql, parameters);
    answer(rows, sql, ordered)
}

/// Returns whether two answers to a query are equally right.
pub(crate) fn agree(query: &Query, one: &Answer, other: &Answer, all: Option<&Answer>) -> bool {
    match (&query.whole, one, other, all) {
        (
            Some(_),
            Answer::Rows(one, order),
            Answer::Rows(other, other_order),
            Some(Answer::Rows(all, _)),
        ) => {
            let among = |rows: &[String]| {
                // Both lists are sorted, so one iterator over `all` is enough.
                let mut all = all.iter();
                rows.iter().all(|row| all.any(|other| other == row))
            };
            one.len() == other.len() && order == other_order && among(one) && among(other)
        }
        _ => one == other,
    }
}

/// Describes an answer in a few words.
pub(crate) fn brief(answer: &Answer) -> String {
    match answer {
        Answer::Error(number) => format!("error {number}"),
        Answer::Rows(rows, _) => {
            let some: Vec<&str> = rows.iter().take(3).map(String::as_str).collect();
            format!("{} rows: {}", rows.len(), some.join("; "))
        }
    }
}

/// Describes the rows that only one of two answers has.
pub(crate) fn difference(wanted: &Answer, got: &Answer) -> String {
    let (Answer::Rows(some, _), Answer::Rows(others, _)) = (wanted, got) else {
        return format!("{}, not {}", brief(got), brief(wanted));
    };
    if some == others {
        return format!("{} rows in another order", some.len());
    }
    let more = Answer::Rows(only_in(others, some), Vec::new());
    let less = Answer::Rows(only_in(some, others), Vec::new());
    let (more, less) = (brief(&more), brief(&less));
    format!(
        "{} rows, not {}: {more} too many, {less} are missing",
        others.len(),
        some.len()
    )
}

/// Returns the rows that `one` has and `other` lacks, counting duplicates.
fn only_in(one: &[String], other: &[String]) -> Vec<String> {
    let mut left: Vec<&String> = other.iter().collect();
    let mut only = Vec::new();
    for row in one {
        match left.iter().position(|there| *there == row) {
            Some(at) => {
                left.swap_remove(at);
            }
            None => only.push(row.clone()),
        }
    }
    only
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An answer whose rows came in the order `order`, if `order` is not empty.
    fn in_order(rows: &[&str], order: &[&str]) -> Answer {
        let owned = |rows: &[&str]| rows.iter().map(|row| (*row).to_owned()).collect();
        Answer::Rows(owned(rows), owned(order))
    }

    fn rows(rows: &[&str]) -> Answer {
        in_order(rows, &[])
    }

    #[test]
    fn rows_that_come_in_another_order_differ() {
        let mut query = Query {
            text: String::new(),
            prepared: (String::new(), Vec::new()),
            whole: None,
            ordered: 1,
        };
        let one = in_order(&["1\ta", "2\tb"], &["1", "2"]);
        let other = in_order(&["1\ta", "2\tb"], &["2", "1"]);
        assert!(agree(&query, &one, &one, None));
        assert!(!agree(&query, &one, &other, None));
        query.whole = Some((String::new(), String::new()));
        let all = rows(&["1\ta", "2\tb", "2\tc"]);
        let tied = in_order(&["1\ta", "2\tc"], &["1", "2"]);
        assert!(agree(&query, &one, &tied, Some(&all)));
        assert!(!agree(&query, &one, &other, Some(&all)));
    }

    #[test]
    fn a_limited_answer_may_be_any_rows_but_no_others() {
        let limited = Query {
            text: String::new(),
            prepared: (String::new(), Vec::new()),
            whole: Some((String::new(), String::new())),
            ordered: 0,
        };
        let all = rows(&["a", "b", "b", "c"]);
        let agrees = |one: &Answer, other: &Answer| agree(&limited, one, other, Some(&all));
        assert!(agrees(&rows(&["a", "b"]), &rows(&["b", "c"])));
        assert!(agrees(&rows(&["b", "b"]), &rows(&["b", "c"])));
        assert!(!agrees(&rows(&["a", "a"]), &rows(&["b", "c"])));
        assert!(!agrees(&rows(&["a", "d"]), &rows(&["b", "c"])));
        assert!(!agrees(&rows(&["a"]), &rows(&["b", "c"])));
    }

    #[test]
    fn a_row_that_is_there_twice_is_told_once_where_the_other_has_it_once() {
        let rows =
            |rows: &[&str]| -> Vec<String> { rows.iter().map(|r| (*r).to_owned()).collect() };
        assert_eq!(
            only_in(&rows(&["a", "b", "b"]), &rows(&["b", "c"])),
            rows(&["a", "b"])
        );
        assert!(only_in(&rows(&["b"]), &rows(&["b", "c"])).is_empty());
    }
}
