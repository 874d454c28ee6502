//! The tables of the generated queries, with every kind of column and key and random rows.

use peregrine_harness::dice::Dice;

/// The number of rows that are inserted into each table at the beginning.
pub const ROWS: u32 = 2_000;
/// The lowest key.
pub const LEAST: i64 = -100;
/// The highest key.
pub const MOST: i64 = 5_000;

/// How the values of a column are made and written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A whole number between these bounds, both included.
    Integer(i64, i64),
    /// A number near the largest of `u64` or `i64`, or a small one.
    Huge,
    /// A short word in mixed case; some end with a space.
    Word,
    /// A date.
    Date,
    /// A date with a time.
    Time,
    /// A number with two digits behind the point.
    Decimal,
    /// A floating-point number.
    Double,
}

/// A column.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// Its definition, behind the name.
    pub definition: &'static str,
    /// The kind of its values.
    pub kind: Kind,
    /// Whether it may be NULL.
    pub nullable: bool,
}

const fn column(
    name: &'static str,
    definition: &'static str,
    kind: Kind,
    nullable: bool,
) -> Column {
    Column {
        name,
        definition,
        kind,
        nullable,
    }
}

/// The columns of all tables; the tables differ in their keys.
pub const COLUMNS: [Column; 12] = [
    column("id", "INT NOT NULL", Kind::Integer(LEAST, MOST), false),
    column(
        "a",
        "SMALLINT UNSIGNED NOT NULL",
        Kind::Integer(0, 20),
        false,
    ),
    column("b", "TINYINT NULL", Kind::Integer(-5, 5), true),
    column("c", "BIGINT UNSIGNED NULL", Kind::Huge, true),
    column("w", "VARCHAR(12) NOT NULL", Kind::Word, false),
    column(
        "v",
        "VARCHAR(12) COLLATE utf8mb4_bin NULL",
        Kind::Word,
        true,
    ),
    column("f", "CHAR(8) CHARACTER SET latin1 NULL", Kind::Word, true),
    column("d", "DATE NULL", Kind::Date, true),
    column("t", "DATETIME(3) NOT NULL", Kind::Time, false),
    column("m", "DECIMAL(9,2) NULL", Kind::Decimal, true),
    column("x", "DOUBLE NULL", Kind::Double, true),
    // The id of a row of another table.
    column("r", "INT NULL", Kind::Integer(LEAST, MOST), true),
];

/// The tables: their names and their keys.
pub const TABLES: [(&str, &str); 4] = [
    (
        "numbered",
        "PRIMARY KEY (id), KEY ab (a, b), KEY w (w), UNIQUE KEY idb (b, id), KEY d (d, m)",
    ),
    (
        "worded",
        "PRIMARY KEY (w, id), UNIQUE KEY id (id), KEY cv (c, v), KEY f (f)",
    ),
    (
        "paired",
        "PRIMARY KEY (a, id), KEY baw (b, a, w), KEY v (v, x), KEY t (t)",
    ),
    (
        "keyless",
        "KEY ida (id, a), KEY wide (w(3)), KEY back (b DESC, a)",
    ),
];

/// Returns the statements that create an engine's tables in the connection's schema.
#[must_use]
pub fn definitions(engine: &str) -> Vec<String> {
    let columns: Vec<String> = COLUMNS
        .iter()
        .map(|column| format!("{} {}", column.name, column.definition))
        .collect();
    let columns = columns.join(", ");
    TABLES
        .iter()
        .map(|(name, keys)| {
            format!(
                "CREATE TABLE {name} ({columns}, {keys}) ENGINE = {engine} CHARACTER SET utf8mb4"
            )
        })
        .collect()
}

/// Returns a random value for a column, as SQL text.
#[must_use]
pub fn value(dice: &mut Dice, kind: Kind) -> String {
    match kind {
        Kind::Integer(from, to) => dice.between(from, to).to_string(),
        Kind::Huge => match dice.below(3) {
            0 => (u64::MAX - u64::from(dice.below(50))).to_string(),
            1 => (i64::MAX - i64::from(dice.below(50))).to_string(),
            _ => dice.below(50).to_string(),
        },
        Kind::Word => {
            const WORDS: [&str; 12] = [
                "", "a", "A", "ab", "aB", "abc", "b", "ba", "Straße", "strasse", "É", "e",
            ];
            let word = WORDS[dice.below(WORDS.len() as u32) as usize];
            let behind = ["", "", "", " ", "1", "7"][dice.below(6) as usize];
            format!("'{word}{behind}'")
        }
        Kind::Date => format!(
            "'2001-{:02}-{:02}'",
            dice.between(1, 12),
            dice.between(1, 28)
        ),
        Kind::Time => format!(
            "'2001-{:02}-{:02} {:02}:30:00.125'",
            dice.between(1, 12),
            dice.between(1, 28),
            dice.below(24)
        ),
        Kind::Decimal => format!("{}.{:02}", dice.between(-999, 9_999), dice.below(100)),
        // Quarters add up exactly, so a sum is the same in every order.
        Kind::Double => format!("{}", dice.between(-400, 400) as f64 / 4.0),
    }
}

/// Returns a random row, as SQL text.
#[must_use]
pub fn row(dice: &mut Dice) -> String {
    let values: Vec<String> = COLUMNS
        .iter()
        .map(|column| {
            if column.nullable && dice.below(8) == 0 {
                "NULL".to_owned()
            } else {
                value(dice, column.kind)
            }
        })
        .collect();
    format!("({})", values.join(", "))
}

/// Returns the statements that fill the tables.
#[must_use]
pub fn filling(dice: &mut Dice) -> Vec<String> {
    let mut statements = Vec::new();
    for (name, _) in TABLES {
        for _ in 0..ROWS / 500 {
            let rows: Vec<String> = (0..500).map(|_| row(dice)).collect();
            statements.push(format!(
                "INSERT IGNORE INTO {name} VALUES {}",
                rows.join(", ")
            ));
        }
        statements.push(format!("ANALYZE TABLE {name}"));
    }
    statements
}

/// Returns a statement that changes rows of one table, the same rows on every engine.
#[must_use]
pub fn change(dice: &mut Dice) -> String {
    let (table, _) = TABLES[dice.below(TABLES.len() as u32) as usize];
    let from = dice.between(LEAST, MOST);
    let to = from + dice.between(0, 60);
    match dice.below(4) {
        0 => format!("DELETE FROM {table} WHERE id BETWEEN {from} AND {to}"),
        1 => {
            let rows: Vec<String> = (0..20).map(|_| row(dice)).collect();
            format!("INSERT IGNORE INTO {table} VALUES {}", rows.join(", "))
        }
        _ => {
            // Not a column of a unique key: the rows that conflict would depend on the order of the updates.
            let column = COLUMNS[6 + dice.below(6) as usize];
            let value = value(dice, column.kind);
            format!(
                "UPDATE {table} SET {} = {value} WHERE id BETWEEN {from} AND {to}",
                column.name
            )
        }
    }
}
