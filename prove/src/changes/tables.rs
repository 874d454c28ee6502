//! The tables of the changes, and values for their columns.

use peregrine_harness::dice::Dice;
use peregrine_harness::engines::Engine;

/// The largest id; the smallest is 0.
pub const MOST: i64 = 2_000;
/// The most rows that each table begins with.
const ROWS: u32 = 300;

/// Columns that statements write; the server or triggers compute the others.
pub const WRITTEN: &str = "id, a, b, t, h, e, s, i, d, f, u";
/// The columns that the comparison reads, with bytes in hexadecimal because an answer is text.
pub const SHOWN: &str = "id, a, b, t, HEX(h), e, s, i + 0, d, f, u, n, g, st";
/// Columns that are in no unique key and in no join condition.
pub const FREE: [&str; 7] = ["t", "h", "e", "s", "i", "d", "f"];

/// A table with all columns.
#[derive(Debug, Clone, Copy)]
pub struct Table {
    pub name: &'static str,
    /// Its keys; in each table but `keyless`, one of them makes `id` unique.
    keys: &'static str,
    /// Its partitions.
    partitions: &'static str,
    /// Whether it is a temporary table.
    pub is_temporary: bool,
    /// Whether no two rows have the same `id`.
    pub has_unique_ids: bool,
}

const fn table(name: &'static str, keys: &'static str, partitions: &'static str) -> Table {
    Table {
        name,
        keys,
        partitions,
        is_temporary: false,
        has_unique_ids: true,
    }
}

/// The tables with all columns.
pub const TABLES: [Table; 6] = [
    table(
        "plain",
        "PRIMARY KEY (id), UNIQUE KEY u (u), KEY ab (a, b), KEY t (t(7)), KEY e (e, i)",
        "",
    ),
    table(
        "worded",
        "PRIMARY KEY (b, id), UNIQUE KEY id (id), KEY s (s, a), KEY h (h(9))",
        "",
    ),
    table(
        "parted",
        "PRIMARY KEY (id), KEY a (a, d), KEY f (f DESC)",
        "PARTITION BY HASH (id) PARTITIONS 3",
    ),
    table("watched", "PRIMARY KEY (id), KEY a (a), KEY n (n, st)", ""),
    Table {
        has_unique_ids: false,
        ..table("keyless", "KEY ida (id, a), KEY d (d, u)", "")
    },
    Table {
        is_temporary: true,
        ..table("scratch", "PRIMARY KEY (id), KEY ab (a, b)", "")
    },
];

/// The table that the triggers of `watched` write, and the table with a counter.
///
/// Each entry has the name, the columns that the comparison reads, and the definition.
const OTHERS: [(&str, &str, &str); 2] = [
    (
        "notes",
        "what, id, a",
        "what CHAR(1) NOT NULL, id INT NOT NULL, a INT, KEY what (what, id)",
    ),
    (
        "counted",
        "id, a, b",
        "id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, a INT, b VARCHAR(20), KEY a (a)",
    ),
];

/// Returns the names of all tables, and the columns that the comparison reads.
pub fn all() -> Vec<(&'static str, &'static str)> {
    let tables = TABLES.iter().map(|table| (table.name, SHOWN));
    let others = OTHERS.iter().map(|(name, shown, _)| (*name, *shown));
    tables.chain(others).collect()
}

/// Returns the statements that make an engine's tables and their triggers.
pub fn definitions(engine: Engine) -> Vec<String> {
    const COLUMNS: &str = "id INT NOT NULL, a INT, b VARCHAR(20), t TEXT, h BLOB, e ENUM('x', 'y', 'z'), \
         s SET('p', 'q', 'r'), i BIT(13), d DECIMAL(12,3), f DOUBLE, u INT, n INT NOT NULL DEFAULT 0, \
         g INT AS (a + n) VIRTUAL, st VARCHAR(30) AS (CONCAT(b, e)) STORED";
    let name = engine.sql_name();
    let mut statements: Vec<String> = TABLES
        .iter()
        .map(|table| {
            let temporary = if table.is_temporary { "TEMPORARY " } else { "" };
            // InnoDB serves as the reference, so it gets no key on a virtual column.
            let on_virtual = match engine {
                Engine::Peregrine if !table.is_temporary => ", KEY g (g)",
                _ => "",
            };
            format!(
                "CREATE {temporary}TABLE {} ({COLUMNS}, {}{on_virtual}) ENGINE = {name} CHARACTER SET utf8mb4 {}",
                table.name, table.keys, table.partitions
            )
        })
        .collect();
    statements.extend(OTHERS.iter().map(|(table, _, definition)| {
        format!("CREATE TABLE {table} ({definition}) ENGINE = {name} CHARACTER SET utf8mb4")
    }));
    // Some triggers refuse a row after they have written a note. The engine must roll back the whole statement, notes
    // too.
    let refuses = "IF NEW.a = 13 THEN SIGNAL SQLSTATE '45000'; END IF;";
    let triggers = [
        "CREATE TRIGGER numbered BEFORE UPDATE ON watched FOR EACH ROW SET NEW.n = OLD.n + 1".to_owned(),
        format!(
            "CREATE TRIGGER come AFTER INSERT ON watched FOR EACH ROW \
             BEGIN INSERT INTO notes VALUES ('i', NEW.id, NEW.a); {refuses} END"
        ),
        format!(
            "CREATE TRIGGER changed AFTER UPDATE ON watched FOR EACH ROW \
             BEGIN INSERT INTO notes VALUES ('u', NEW.id, OLD.a); {refuses} END"
        ),
        "CREATE TRIGGER gone AFTER DELETE ON watched FOR EACH ROW INSERT INTO notes VALUES ('d', OLD.id, OLD.a)"
            .to_owned(),
    ];
    statements.extend(triggers);
    statements
}

/// Returns the statements that fill the tables, the same for each engine.
pub fn filling(dice: &mut Dice) -> Vec<String> {
    let mut statements = Vec::new();
    for table in TABLES {
        for _ in 0..ROWS / 50 {
            let rows: Vec<String> = (0..50).map(|_| row(dice)).collect();
            statements.push(format!(
                "INSERT IGNORE INTO {} ({WRITTEN}) VALUES {}",
                table.name,
                rows.join(", ")
            ));
        }
    }
    statements
}

/// Returns a random value for a column, as SQL text.
pub fn value(dice: &mut Dice, column: &str) -> String {
    if dice.below(9) == 0 && column != "id" {
        return "NULL".to_owned();
    }
    let one_of =
        |dice: &mut Dice, all: &[&str]| all[dice.below(all.len() as u32) as usize].to_owned();
    match column {
        "id" => dice.between(0, MOST).to_string(),
        "a" => dice.between(0, 99).to_string(),
        "b" => {
            let word = one_of(
                dice,
                &["", "a", "A", "ab", "aB", "b", "ba", "Straße", "É", "e"],
            );
            let behind = one_of(dice, &["", "", " ", "1", "77"]);
            format!("'{word}{behind}'")
        }
        "t" => {
            let word = one_of(dice, &["a", "Bc ", "ß", "x%", "𝄞"]);
            let times = [3, 3, 40, 2_000][dice.below(4) as usize];
            format!("REPEAT('{word}', {})", dice.below(times))
        }
        "h" => {
            let bytes = one_of(dice, &["00", "61", "FF00", "C39F"]);
            let times = [4, 4, 300, 20_000][dice.below(4) as usize];
            format!("REPEAT(X'{bytes}', {})", dice.below(times))
        }
        "e" => one_of(dice, &["'x'", "'y'", "'z'"]),
        "s" => one_of(dice, &["''", "'p'", "'p,r'", "'q'", "'p,q,r'"]),
        "i" => dice.below(8_192).to_string(),
        "d" => format!("{}.{:03}", dice.between(-999, 9_999), dice.below(1_000)),
        // All notations show quarters alike.
        "f" => format!("{}", dice.between(-400, 400) as f64 / 4.0),
        _ => dice.between(0, 9_999).to_string(),
    }
}

/// Returns a random row, as SQL text.
pub fn row(dice: &mut Dice) -> String {
    let values: Vec<String> = WRITTEN
        .split(", ")
        .map(|column| value(dice, column))
        .collect();
    format!("({})", values.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_a_value_for_each_column() {
        let mut dice = Dice::new(1, 1);
        for column in WRITTEN.split(", ") {
            assert!(!value(&mut dice, column).is_empty());
        }
        for column in FREE {
            assert!(
                WRITTEN.split(", ").any(|written| written == column),
                "{column}"
            );
        }
    }

    #[test]
    fn only_the_engine_that_is_judged_has_the_index_of_a_virtual_column() {
        let with = |engine| {
            let definitions = definitions(engine);
            definitions
                .iter()
                .filter(|sql| sql.contains("KEY g (g)"))
                .count()
        };
        assert_eq!(with(Engine::InnoDb), 0);
        assert_eq!(with(Engine::Peregrine), TABLES.len() - 1);
    }
}
