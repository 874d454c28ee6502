//! Compares the tables of both engines.
//!
//! Both must have the same rows, unordered and in a total order, by the optimizer's plan and through each index.

use super::pair::{is_met, Pair, Played};
use super::schema::Table;
use super::side::Side;
use crate::pushdown::answer::{difference, Answer};
use crate::statements::indexes::unlike_the_rows;
use peregrine_harness::engines::indexes::{
    Index, {self},
};
use peregrine_harness::error::Result;

/// The result of comparing the tables.
#[derive(Debug, PartialEq, Eq)]
pub enum Looked {
    Same,
    Differs(String),
    /// An engine refused a read because of another session, which says nothing about the rows.
    Met,
}

impl Looked {
    fn of(query: &str, wanted: &Answer, got: &Answer) -> Looked {
        if wanted != got && (is_met(wanted, got) || is_met(got, wanted)) {
            return Looked::Met;
        }
        match wanted == got {
            true => Looked::Same,
            false => Looked::Differs(format!("{query}: {}", difference(wanted, got))),
        }
    }
}

/// Compares the tables, and returns the first difference.
///
/// # Errors
/// When the server does not answer.
pub fn looked_at(
    pair: &mut Pair,
    tables: &[Table],
    by_index: bool,
    played: &mut Played,
) -> Result<Looked> {
    let Pair { innodb, peregrine } = pair;
    for table in tables {
        let (name, shown) = (&table.name, table.shown_in_order());
        let mut queries = vec![format!("SELECT {shown} FROM {name}")];
        if table.is_versioned {
            queries.push(format!("SELECT {shown} FROM {name} FOR SYSTEM_TIME ALL"));
        }
        for query in queries {
            let (wanted, got) = (innodb.ask(&query)?, peregrine.ask(&query)?);
            let looked = Looked::of(&query, &wanted, &got);
            if looked != Looked::Same {
                return Ok(looked);
            }
            // If both engines refuse, the script has lost the table.
            let Answer::Rows(rows, _) = &wanted else {
                continue;
            };
            played.rows += rows.len() as u64;
            if !by_index || query.ends_with("ALL") {
                continue;
            }
            let looked = by_each_index(innodb, peregrine, table, played)?;
            if looked != Looked::Same {
                return Ok(looked);
            }
        }
    }
    Ok(Looked::Same)
}

/// Reads a table of Peregrine through each of its indexes, and compares the rows with `InnoDB`'s.
///
/// EXPLAIN of a table with the keys `k0 (c0 DESC, c1)`, `k1 (c1(3))` and the primary key `id`:
///
/// | FROM t FORCE INDEX | type | |
/// |---|---|---|
/// | `(k0) ORDER BY 1` | `ALL` | `Using filesort`: no index is read |
/// | `(k0) ORDER BY c0 DESC, c1` | `index` | |
/// | `(k0) ORDER BY c0 DESC, c1, id` | `index` | in partitions `ALL`: `Using filesort` |
/// | `(k1) ORDER BY c1` | `ALL` | `Using filesort` |
///
/// An index with a column prefix is therefore read through HANDLER, which bypasses the optimizer.
fn by_each_index(
    innodb: &mut Side,
    peregrine: &mut Side,
    table: &Table,
    played: &mut Played,
) -> Result<Looked> {
    let name = &table.name;
    let rows = format!("SELECT {} FROM {name}", table.shown());
    let whole = innodb.ask(&rows)?;
    for index in indexes::of_table(&mut peregrine.connection, name)? {
        played.by_index += 1;
        let by = format!("{rows} FORCE INDEX (`{}`)", index.name);
        if !index.has_prefix {
            let query = format!("{by} ORDER BY {}", index.order);
            let looked = Looked::of(&query, &whole, &peregrine.ask(&query)?);
            if looked != Looked::Same {
                return Ok(looked);
            }
        }
        if let Some(order) = whole_order(table, &index) {
            let query = format!("{by} ORDER BY {order}");
            let wanted = innodb.ask_in_order(&format!("{rows} ORDER BY {order}"))?;
            let looked = Looked::of(&query, &wanted, &peregrine.ask_in_order(&query)?);
            if looked != Looked::Same {
                return Ok(looked);
            }
        }
    }
    // HANDLER also shows old row versions of a table with system versioning.
    if table.is_versioned {
        return Ok(Looked::Same);
    }
    let unlike = unlike_the_rows(&mut peregrine.connection, name)?;
    Ok(unlike
        .into_iter()
        .next()
        .map_or(Looked::Same, Looked::Differs))
}

/// Returns the order of an index followed by that of the primary key, which makes it a total order.
fn whole_order(table: &Table, index: &Index) -> Option<String> {
    if table.primary.is_empty() {
        return None;
    }
    let mut parts = vec![index.order.as_str()];
    let has = |column: &str| index.columns.split(", ").any(|part| part == column);
    parts.extend(
        table
            .primary
            .iter()
            .map(String::as_str)
            .filter(|column| !has(column)),
    );
    Some(parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::super::schema::tables;
    use super::*;
    use peregrine_harness::dice::Dice;

    #[test]
    fn an_order_ends_with_the_primary_key() {
        let index = |columns: &str, order: &str| Index {
            name: "k".into(),
            columns: columns.into(),
            order: order.into(),
            has_prefix: false,
        };
        let (mut some, _) = tables(&mut Dice::new(1, 1));
        let mut table = some.swap_remove(0);
        table.primary = vec!["c0".into(), "id".into()];
        let by = |table: &Table, index: &Index| whole_order(table, index);
        let descending = index("c1, id", "c1 DESC, id");
        assert_eq!(by(&table, &descending).as_deref(), Some("c1 DESC, id, c0"));
        let other = index("c10", "c10");
        assert_eq!(by(&table, &other).as_deref(), Some("c10, c0, id"));
        table.primary.clear();
        assert_eq!(by(&table, &other), None);
    }
}
