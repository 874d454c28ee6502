//! Generates random tables: columns and keys of every kind, partitions, versions, periods, triggers.

use std::fmt::Write;

use super::values::{chance, one_of, Kind};
use super::ENGINE;
use peregrine_harness::dice::Dice;

/// The name of the column with AUTO_INCREMENT.
///
/// The manual leaves open which values an engine skips. Statements therefore show only the order of the values, and no
/// other column is derived from them.
pub const AUTOMATIC: &str = "a";

/// The distance between explicit values for a column with AUTO_INCREMENT.
///
/// Automatic values fit in between. All values thus have the same order on both engines, whichever values an engine
/// skips.
pub const ROOM: u32 = 10_000;

/// A column that statements may name.
#[derive(Debug, Clone)]
pub struct Column {
    pub name: String,
    pub kind: Kind,
    pub is_nullable: bool,
    /// Whether the server computes its values from other columns.
    pub is_generated: bool,
    /// Whether a unique key contains it, or the partition depends on it.
    pub is_in_unique: bool,
}

/// A table that statements may name.
#[derive(Debug, Clone)]
pub struct Table {
    pub name: String,
    pub columns: Vec<Column>,
    /// The columns of the primary key; empty if the table has none.
    pub primary: Vec<String>,
    /// Names of the other keys.
    pub keys: Vec<String>,
    pub is_versioned: bool,
    /// Whether it has the period `p`, with the columns `ps` and `pe`.
    pub has_period: bool,
    /// Whether a trigger changes updated rows.
    pub has_trigger: bool,
    /// Whether it has the column [`AUTOMATIC`].
    pub is_automatic: bool,
    /// The statements that create the table and its trigger.
    pub definitions: Vec<String>,
}

impl Table {
    /// Draws a random table.
    pub fn any(dice: &mut Dice, name: &str) -> Table {
        let mut table = Table {
            name: name.to_owned(),
            columns: Vec::new(),
            primary: Vec::new(),
            keys: Vec::new(),
            is_versioned: chance(dice, 12),
            has_period: chance(dice, 10),
            has_trigger: false,
            is_automatic: chance(dice, 25),
            definitions: Vec::new(),
        };
        // A row that splits off from a period gets an automatic value, in the order in which the engine reads the rows.
        table.is_automatic &= !table.has_period;
        // InnoDB accepts overlapping periods despite WITHOUT OVERLAPS if the table has a history partition.
        let has_history = table.is_versioned && !table.has_period;
        let partitions = partitions(dice, has_history);
        let mut lines = table.draw_columns(dice, !partitions.is_empty());
        // If `id` determines the partition, each unique key must contain it.
        let needs_id = partitions.contains("(id)");
        lines.extend(table.draw_keys(dice, needs_id));
        if chance(dice, 15) {
            if let Some(column) = table.columns.iter().find(|column| column.kind == Kind::Int) {
                lines.push(format!("CHECK ({} <> 7)", column.name));
            }
        }
        let mut text = format!(
            "CREATE TABLE {name} (\n  {}\n) ENGINE={ENGINE}",
            lines.join(",\n  ")
        );
        if table.is_versioned {
            text.push_str(" WITH SYSTEM VERSIONING");
        }
        text.push_str(&partitions);
        table.definitions.push(text);
        if chance(dice, 15) {
            table.draw_trigger(dice);
        }
        table
    }

    fn draw_columns(&mut self, dice: &mut Dice, is_partitioned: bool) -> Vec<String> {
        let mut lines = vec!["id INT NOT NULL".to_owned()];
        self.columns.push(Column {
            name: "id".into(),
            kind: Kind::Int,
            is_nullable: false,
            is_generated: false,
            is_in_unique: true,
        });
        for n in 0..2 + dice.below(6) {
            let kind = Kind::any(dice);
            let is_nullable = chance(dice, 70);
            let mut line = format!("c{n} {}", kind.sql(dice));
            line.push_str(if is_nullable { " NULL" } else { " NOT NULL" });
            let takes_default = !kind.needs_prefix() && kind != Kind::Bit;
            if takes_default && (!is_nullable || chance(dice, 30)) {
                let _ = write!(line, " DEFAULT {}", kind.constant(dice));
            }
            if chance(dice, 5) && line.contains("DEFAULT") {
                line.push_str(" INVISIBLE");
            }
            lines.push(line);
            self.columns.push(Column {
                name: format!("c{n}"),
                kind,
                is_nullable,
                is_generated: false,
                is_in_unique: false,
            });
        }
        if self.has_period {
            for name in ["ps", "pe"] {
                lines.push(format!("{name} DATE NOT NULL"));
            }
            lines.push("PERIOD FOR p(ps, pe)".into());
        }
        if self.is_automatic {
            let ty = *one_of(dice, &["INT", "BIGINT UNSIGNED", "MEDIUMINT UNSIGNED"]);
            lines.push(format!("{AUTOMATIC} {ty} NOT NULL AUTO_INCREMENT"));
        }
        if chance(dice, 30) {
            let of = self.columns.iter().skip(1).find_map(|column| {
                let (expression, kind) = match column.kind {
                    kind if kind.is_small_integer() => (format!("{} + 1", column.name), Kind::Int),
                    Kind::Char | Kind::VarChar => {
                        (format!("LEFT({}, 3)", column.name), Kind::VarChar)
                    }
                    _ => return None,
                };
                Some((expression, kind))
            });
            if let Some((expression, kind)) = of {
                let ty = if kind == Kind::Int {
                    "BIGINT"
                } else {
                    "VARCHAR(20) CHARACTER SET utf8mb4"
                };
                // InnoDB merges partitions in the order of a virtual column that it has not computed.
                let is_stored = is_partitioned || chance(dice, 50);
                let stored = if is_stored { "PERSISTENT" } else { "VIRTUAL" };
                lines.push(format!("g {ty} AS ({expression}) {stored}"));
                self.columns.push(Column {
                    name: "g".into(),
                    kind,
                    is_nullable: true,
                    is_generated: true,
                    is_in_unique: false,
                });
            }
        }
        lines
    }

    fn part(&self, dice: &mut Dice, column: usize) -> String {
        let Column { name, kind, .. } = &self.columns[column];
        let mut part = name.clone();
        if kind.needs_prefix() || (kind.is_text() && chance(dice, 25)) {
            part.push_str("(3)");
        }
        if chance(dice, 25) {
            part.push_str(" DESC");
        }
        part
    }

    /// Draws the parts of a key, each of a different column.
    fn parts(&self, dice: &mut Dice, needs_id: bool) -> (Vec<usize>, Vec<String>) {
        let mut columns: Vec<usize> = Vec::new();
        if needs_id {
            columns.push(0);
        }
        for _ in 0..1 + dice.below(3) {
            let column = dice.below(self.columns.len() as u32) as usize;
            if !columns.contains(&column) {
                columns.push(column);
            }
        }
        let parts = columns.iter().map(|&column| self.part(dice, column));
        let parts = parts.collect();
        (columns, parts)
    }

    fn draw_keys(&mut self, dice: &mut Dice, needs_id: bool) -> Vec<String> {
        let mut lines = Vec::new();
        if self.is_automatic {
            match dice.below(3) {
                0 if !needs_id => {
                    lines.push(format!("PRIMARY KEY ({AUTOMATIC})"));
                    self.primary = vec![AUTOMATIC.into()];
                }
                1 if !needs_id => lines.push(format!("UNIQUE KEY ka ({AUTOMATIC})")),
                _ => lines.push(format!("KEY ka ({AUTOMATIC}, id)")),
            }
        }
        match dice.below(10) {
            _ if !self.primary.is_empty() => {}
            0..=4 if self.has_period && !needs_id && chance(dice, 60) => {
                lines.push("PRIMARY KEY (id, p WITHOUT OVERLAPS)".to_owned());
                self.primary = vec!["id".into(), "ps".into()];
            }
            0..=4 => {
                lines.push("PRIMARY KEY (id)".to_owned());
                self.primary = vec!["id".into()];
            }
            5..=7 => {
                let column = &self.columns[1];
                if !column.kind.needs_prefix() && !column.is_nullable && !column.is_generated {
                    let descending = if chance(dice, 30) { " DESC" } else { "" };
                    lines.push(format!("PRIMARY KEY ({}{descending}, id)", column.name));
                    self.primary = vec![column.name.clone(), "id".into()];
                    self.columns[1].is_in_unique = true;
                }
            }
            _ => {}
        }
        for n in 0..dice.below(5) {
            let is_unique = chance(dice, 25);
            let (columns, parts) = self.parts(dice, is_unique && needs_id);
            if is_unique
                && columns
                    .iter()
                    .any(|&column| self.columns[column].is_generated)
            {
                continue;
            }
            let unique = if is_unique { "UNIQUE " } else { "" };
            lines.push(format!("{unique}KEY k{n} ({})", parts.join(", ")));
            self.keys.push(format!("k{n}"));
            for column in columns {
                self.columns[column].is_in_unique |= is_unique;
            }
        }
        lines
    }

    fn draw_trigger(&mut self, dice: &mut Dice) {
        let name = &self.name;
        let integer = self.columns.iter().skip(1).find(|column| {
            column.kind == Kind::Int && !column.is_generated && !column.is_in_unique
        });
        let journal = |when: &str, row: &str| {
            format!("CREATE TRIGGER {name}_{when} AFTER {when} ON {name} FOR EACH ROW INSERT INTO journal VALUES ('{name} {when}', {row}.id)")
        };
        let text = match (dice.below(4), integer) {
            (0, Some(column)) => {
                self.has_trigger = true;
                let column = &column.name;
                format!(
                    "CREATE TRIGGER {name}_before BEFORE UPDATE ON {name} FOR EACH ROW \
                     SET NEW.{column} = COALESCE(OLD.{column}, 0) % 100 + 1"
                )
            }
            (1, _) => journal("INSERT", "NEW"),
            (2, _) => journal("UPDATE", "OLD"),
            _ => journal("DELETE", "OLD"),
        };
        self.definitions.push(text);
    }

    /// Returns the columns that a statement may set.
    pub fn settable(&self) -> Vec<&Column> {
        let columns = self.columns.iter();
        columns.filter(|column| !column.is_generated).collect()
    }

    /// Returns the list of all columns; `*` omits invisible ones.
    pub fn shown(&self) -> String {
        let mut shown: Vec<&str> = self.columns.iter().map(|c| c.name.as_str()).collect();
        if self.has_period {
            shown.extend(["ps", "pe"]);
        }
        shown.join(", ")
    }

    /// Like [`Table::shown`], with the rank of each row in the order of [`AUTOMATIC`].
    pub fn shown_in_order(&self) -> String {
        let shown = self.shown();
        match self.is_automatic {
            true => format!("{shown}, DENSE_RANK() OVER (ORDER BY {AUTOMATIC})"),
            false => shown,
        }
    }

    /// Returns whether the table has partitions.
    pub fn is_partitioned(&self) -> bool {
        self.definitions[0].contains(" PARTITION BY ")
    }

    /// Returns a total order of the rows, if the table has a primary key.
    pub fn whole_order(&self) -> Option<String> {
        (!self.primary.is_empty()).then(|| format!(" ORDER BY {}", self.primary.join(", ")))
    }
}

/// Draws the partitions of a table, or an empty text.
fn partitions(dice: &mut Dice, has_history: bool) -> String {
    if has_history && chance(dice, 40) {
        return " PARTITION BY SYSTEM_TIME (PARTITION p0 HISTORY, PARTITION pn CURRENT)".into();
    }
    let text = match dice.below(16) {
        0 => " PARTITION BY HASH (id) PARTITIONS 3",
        1 => " PARTITION BY KEY (id) PARTITIONS 2",
        2 => " PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (2), PARTITION p1 VALUES LESS THAN (5), PARTITION p2 VALUES LESS THAN MAXVALUE)",
        3 => " PARTITION BY LIST (id) (PARTITION p0 VALUES IN (0, 1, 2, 3), PARTITION p1 VALUES IN (4, 5, 6, 7, 8, 9, 10, 11, 12))",
        4 => " PARTITION BY RANGE (id) SUBPARTITION BY HASH (id) SUBPARTITIONS 2 (PARTITION p0 VALUES LESS THAN (4), PARTITION p1 VALUES LESS THAN MAXVALUE)",
        _ => "",
    };
    text.into()
}

/// Draws some tables; returns them and the statements that create them.
pub fn tables(dice: &mut Dice) -> (Vec<Table>, Vec<String>) {
    let tables: Vec<Table> = ["t", "u"]
        .iter()
        .map(|name| Table::any(dice, name))
        .collect();
    let journal = format!("CREATE TABLE journal (what VARCHAR(20), n INT) ENGINE={ENGINE}");
    let definitions = tables.iter().flat_map(|table| table.definitions.clone());
    let all = std::iter::once(journal).chain(definitions).collect();
    (tables, all)
}
