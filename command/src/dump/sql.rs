//! Rows as SQL that MariaDB loads.
//!
//! A table has the types that the server's plug-in has kept with it. Without those (a program's table, or one that is
//! older), it has the types that the engine knows. Text of the character sets that it can tell by the
//! collation's number then keeps its character set, with a collation that takes for different what is
//! different in bytes, so that no row collides on loading; and what the server stores in a form of its
//! own (DECIMAL, BIT, and times with fractions) comes out as these bytes.

use std::collections::BTreeMap;
use std::io::{Result, Write};

use peregrine::{Column, ColumnType, KeyPart, OwnedValue, TableSchema};

use super::characters::{character_set, width};
use super::literals::{not_a_number, push_said};
use super::names::Names;
use super::types::{types, Said, SqlType};

/// Bytes of a statement after which the next one is begun.
const STATEMENT: usize = 256 << 10;
/// Bytes that all columns of a row may take, where they are not BLOBs, in MariaDB.
const ROW: u64 = 60_000;
/// Bytes that a key may have there.
const KEY: u64 = 3000;

/// The top of the file.
pub fn begin(out: &mut dyn Write, state: &str) -> Result<()> {
    comment(out, &format!("Dump by peregrine: {state}"))?;
    out.write_all(
        b"SET NAMES utf8mb4;\n\
          SET @peregrine_sql_mode = @@sql_mode, sql_mode = 'NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES';\n\
          SET @peregrine_time_zone = @@time_zone, time_zone = '+00:00';\n\
          SET @peregrine_unique_checks = @@unique_checks, unique_checks = 0;\n",
    )
}

/// The end of the file.
pub fn end(out: &mut dyn Write) -> Result<()> {
    out.write_all(
        b"SET sql_mode = @peregrine_sql_mode, unique_checks = @peregrine_unique_checks;\n\
          SET time_zone = @peregrine_time_zone;\n",
    )
}

/// A comment of one line.
pub fn comment(out: &mut dyn Write, text: &str) -> Result<()> {
    writeln!(out, "-- {}", text.replace(['\n', '\r'], " "))
}

fn name(text: &str) -> String {
    format!("`{}`", text.replace('`', "``"))
}

/// A table on its way into the file.
pub struct Table<'a> {
    schema: &'a TableSchema,
    /// Those of its columns.
    types: Vec<SqlType>,
    /// As the engine has it.
    table: &'a str,
    /// It is the server's, which has counted characters.
    is_servers: bool,
    database: Option<String>,
    name: String,
    /// The name is not the table's own.
    is_renamed: bool,
    /// Bytes of the statement that is being written; 0: none is.
    written: usize,
    /// How many values of a column MariaDB can't have.
    lost: BTreeMap<usize, u64>,
}

impl<'a> Table<'a> {
    /// A table; of the server's tables the name has the database in front.
    pub fn new(table: &'a str, schema: &'a TableSchema, names: &mut Names) -> Self {
        let named = names.in_server(table);
        let (database, own) = (named.database.as_deref().map(name), name(&named.own));
        Table {
            schema,
            types: types(schema),
            table,
            is_servers: database.is_some(),
            name: match &database {
                Some(database) => format!("{database}.{own}"),
                None => own,
            },
            database,
            is_renamed: named.is_new,
            written: 0,
            lost: BTreeMap::new(),
        }
    }

    /// Characters that are surely enough for a text of so many bytes.
    fn characters(&self, max: u32, collation: u32) -> u64 {
        match self.is_servers {
            true => u64::from(max).div_ceil(width(collation)),
            false => max.into(),
        }
    }

    /// Bytes that MariaDB counts for a column.
    fn longest(&self, column: &Column) -> u64 {
        match column.ty {
            ColumnType::Int { bytes, .. } => bytes.into(),
            ColumnType::Float => 4,
            ColumnType::Double => 8,
            ColumnType::Bytes { len } => len.into(),
            ColumnType::VarBytes { max } => {
                self.characters(max, column.collation) * width(column.collation) + 2
            }
            ColumnType::Large { .. } => 12,
        }
    }

    /// Whether the rows would be too long for MariaDB with their strings inside.
    fn is_wide(&self) -> bool {
        let columns = self.schema.columns.iter();
        columns.map(|column| self.longest(column)).sum::<u64>() > ROW
    }

    fn column_type(&self, column: usize) -> String {
        if self.types[column].is_known() {
            return self.types[column].text.clone();
        }
        let column = &self.schema.columns[column];
        let blob = |max: u64| match max {
            0..=255 => "TINY",
            256..=65_535 => "",
            65_536..=16_777_215 => "MEDIUM",
            _ => "LONG",
        };
        let bytes = |max: u64, whole: &str, large: bool| {
            if large {
                format!("{}{whole}", blob(max))
            } else {
                format!("VARBINARY({max})")
            }
        };
        let set = character_set(column.collation);
        let text = |max: u64| match set {
            // How many characters a text in a row may have depends on the server's row: a TEXT
            // takes any.
            Some(set) => format!(
                "{}TEXT CHARACTER SET {set} COLLATE {set}_nopad_bin",
                blob(max)
            ),
            None => bytes(max, "BLOB", true),
        };
        match column.ty {
            ColumnType::Int { bytes, signed } => {
                let ty = match bytes {
                    1 => "TINYINT",
                    2 => "SMALLINT",
                    3 => "MEDIUMINT",
                    4 => "INT",
                    _ => "BIGINT",
                };
                format!("{ty}{}", if signed { "" } else { " UNSIGNED" })
            }
            ColumnType::Float => "FLOAT".into(),
            ColumnType::Double => "DOUBLE".into(),
            ColumnType::Bytes { len } if len <= 255 => format!("BINARY({len})"),
            ColumnType::Bytes { len } => bytes(len.into(), "BLOB", self.is_wide()),
            ColumnType::VarBytes { max } if self.is_wide() => text(max.into()),
            ColumnType::VarBytes { max } => match set {
                Some(set) => format!(
                    "VARCHAR({}) CHARACTER SET {set} COLLATE {set}_nopad_bin",
                    self.characters(max, column.collation)
                ),
                None => bytes(max.into(), "BLOB", false),
            },
            ColumnType::Large { max } => text(max),
        }
    }

    /// A key, where MariaDB can have it as it is.
    fn key(&self, parts: &[KeyPart]) -> Option<String> {
        let mut bytes = 0;
        let mut columns = Vec::new();
        for part in parts {
            let column = &self.schema.columns[part.column];
            if self.types[part.column].is_hidden {
                return None;
            }
            let mut prefix = String::new();
            if self.types[part.column].is_known() {
                // The server has had this key.
                if let Some(length) = part.prefix {
                    prefix = format!("({length})");
                }
            } else {
                let ty = self.column_type(part.column);
                if part.prefix.is_some() || ty.contains("TEXT") || ty.contains("BLOB") {
                    return None;
                }
                bytes += self.longest(column) + 1;
            }
            let descending = if part.descending { " DESC" } else { "" };
            columns.push(format!("{}{prefix}{descending}", name(&column.name)));
        }
        (bytes <= KEY).then(|| columns.join(", "))
    }

    /// The statement that creates the table.
    pub fn create(&self, out: &mut dyn Write) -> Result<()> {
        if let Some(database) = &self.database {
            writeln!(out, "\nCREATE DATABASE IF NOT EXISTS {database};")?;
        }
        if self.is_renamed {
            let why = "has another name here: its own is too long, or another table's";
            comment(out, &format!("{} {why}", self.table))?;
        }
        let mut keys: Vec<String> = Vec::new();
        let mut left_out = Vec::new();
        // Columns with a key that begins with them.
        let mut first: Vec<&KeyPart> = Vec::new();
        if let Some(primary) = &self.schema.primary {
            match self.key(&primary.parts) {
                Some(columns) => {
                    keys.push(format!("  PRIMARY KEY ({columns})"));
                    first.extend(primary.parts.first());
                }
                None => left_out.push("the primary key".to_owned()),
            }
        }
        for index in &self.schema.indexes {
            match self.key(&index.parts) {
                Some(columns) => {
                    keys.push(format!(
                        "  {}KEY {} ({columns})",
                        if index.unique { "UNIQUE " } else { "" },
                        name(&index.name)
                    ));
                    first.extend(index.parts.first());
                }
                None => left_out.push(format!("index {}", index.name)),
            }
        }
        let mut lines: Vec<String> = Vec::new();
        for (n, (column, ty)) in self.schema.columns.iter().zip(&self.types).enumerate() {
            if ty.is_hidden {
                continue;
            }
            let null = match column.nullable {
                // A TIMESTAMP takes no NULL by itself, where the server is told so.
                true if ty.is_known() => " NULL",
                true => "",
                false => " NOT NULL",
            };
            // MariaDB demands a key that begins with it.
            let counts = ty.counts && first.iter().any(|part| part.column == n);
            lines.push(format!(
                "  {} {}{null}{}",
                name(&column.name),
                self.column_type(n),
                if counts { " AUTO_INCREMENT" } else { "" }
            ));
        }
        lines.extend(keys);
        writeln!(
            out,
            "CREATE TABLE {} (\n{}\n);",
            self.name,
            lines.join(",\n")
        )?;
        for key in left_out {
            let why = "with prefixes, too long, or of the server's own columns";
            comment(out, &format!("left out: {key}, {why}"))?;
        }
        Ok(())
    }

    /// A row.
    pub fn row(&mut self, out: &mut dyn Write, row: &[OwnedValue]) -> Result<()> {
        let mut text = match self.written {
            0 => format!("INSERT INTO {} VALUES\n(", self.name),
            _ => ",\n(".to_owned(),
        };
        let mut comma = "";
        for (n, (value, ty)) in row.iter().zip(&self.types).enumerate() {
            if ty.is_hidden {
                continue;
            }
            text.push_str(comma);
            comma = ",";
            let said = ty.said(value);
            let has_it = push_said(&mut text, &said, value);
            if !has_it {
                text.push_str(not_a_number(self.is_nullable(n)));
            }
            let is_kept = match said {
                Said::Itself => self.keeps(n, value),
                said => said != Said::Nothing,
            };
            let is_lost = !has_it || !is_kept;
            if is_lost {
                *self.lost.entry(n).or_default() += 1;
            }
        }
        text.push(')');
        out.write_all(text.as_bytes())?;
        self.written += text.len();
        if self.written >= STATEMENT {
            self.end(out)?;
        }
        Ok(())
    }

    /// Ends the statement that is being written.
    pub fn end(&mut self, out: &mut dyn Write) -> Result<()> {
        if std::mem::take(&mut self.written) > 0 {
            out.write_all(b";\n")?;
        }
        Ok(())
    }

    /// What MariaDB can't have of the rows so far, in words.
    pub fn lost(&self) -> Vec<String> {
        let told = self.lost.iter().map(|(&n, values)| {
            let column = self.schema.columns.get(n);
            let name = column.map_or("", |column| column.name.as_str());
            let why = match column.map(|column| column.ty) {
                Some(ColumnType::Float | ColumnType::Double) => format!(
                    "infinite or no numbers: {} stands there",
                    not_a_number(self.is_nullable(n))
                ),
                _ => "not of its type: MariaDB changes them".to_owned(),
            };
            format!(
                "table {}: {values} values of column {name}, {why}",
                self.table
            )
        });
        told.collect()
    }

    /// Whether MariaDB keeps a value as it is. It does not refuse others, but loads what it can of them.
    fn keeps(&self, column: usize, value: &OwnedValue) -> bool {
        let column = self.schema.columns.get(column);
        let (Some(column), OwnedValue::Bytes(bytes)) = (column, value) else {
            return true;
        };
        let is_text = || std::str::from_utf8(bytes).is_ok();
        let is_right = match character_set(column.collation) {
            None | Some("latin1") => true,
            // They are no text there.
            Some(_) if matches!(column.ty, ColumnType::Bytes { .. }) => true,
            Some("ascii") => bytes.is_ascii(),
            // Letters of four bytes are in utf8mb4 alone.
            Some("utf8mb3") => is_text() && bytes.iter().all(|byte| *byte < 0xf0),
            Some(_) => is_text(),
        };
        is_right && self.has_room(column, bytes)
    }

    /// Whether a text is not longer than its column: a program may name its tables as the server does.
    fn has_room(&self, column: &Column, bytes: &[u8]) -> bool {
        let ColumnType::VarBytes { max } = column.ty else {
            return true;
        };
        let room = self.characters(max, column.collation);
        let letters = || String::from_utf8_lossy(bytes).chars().count() as u64;
        bytes.len() as u64 <= room || letters() <= room || self.is_wide()
    }

    fn is_nullable(&self, column: usize) -> bool {
        let column = self.schema.columns.get(column);
        column.is_none_or(|column| column.nullable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use peregrine::{Index, Key};

    #[test]
    fn a_table_of_the_servers_becomes_statements() {
        let schema = TableSchema {
            columns: vec![
                Column::new(
                    "id",
                    ColumnType::Int {
                        bytes: 4,
                        signed: false,
                    },
                ),
                Column::new("na`me", ColumnType::VarBytes { max: 40 })
                    .collation(45)
                    .nullable(),
                Column::new("body", ColumnType::Large { max: 65_535 }),
            ],
            primary: Some(Key::new(&[0])),
            indexes: vec![
                Index::new("by_name", &[1]).unique(),
                Index {
                    name: "by_body".into(),
                    parts: vec![KeyPart {
                        column: 2,
                        prefix: Some(10),
                        descending: false,
                    }],
                    unique: false,
                },
            ],
            user: vec![],
        };
        let mut out = Vec::new();
        let mut table = Table::new("my@0020shop/t@00241", &schema, &mut Names::default());
        table.create(&mut out).unwrap();
        let row = [
            OwnedValue::UInt(7),
            OwnedValue::Bytes(b"it's \\".to_vec()),
            OwnedValue::Bytes(vec![0xC3, 0xA4]),
        ];
        table.row(&mut out, &row).unwrap();
        let row = [
            OwnedValue::UInt(8),
            OwnedValue::Null,
            OwnedValue::Bytes(vec![]),
        ];
        table.row(&mut out, &row).unwrap();
        table.end(&mut out).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "
CREATE DATABASE IF NOT EXISTS `my shop`;
CREATE TABLE `my shop`.`t$1` (
  `id` INT UNSIGNED NOT NULL,
  `na``me` VARCHAR(10) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin,
  `body` BLOB NOT NULL,
  PRIMARY KEY (`id`),
  UNIQUE KEY `by_name` (`na``me`)
);
-- left out: index by_body, with prefixes, too long, or of the server's own columns
INSERT INTO `my shop`.`t$1` VALUES
(7,'it\\'s \\\\',X'C3A4'),
(8,NULL,'');
"
        );
    }

    fn created(name: &str, columns: Vec<Column>, primary: Option<Key>) -> String {
        let schema = TableSchema {
            columns,
            primary,
            indexes: vec![],
            user: vec![],
        };
        let mut out = Vec::new();
        let table = Table::new(name, &schema, &mut Names::default());
        table.create(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn texts_have_the_room_that_mariadb_counts_for_them() {
        let texts = |max: u32, collation| {
            let text = |n| {
                let ty = ColumnType::VarBytes { max };
                Column::new(format!("c{n}"), ty).collation(collation)
            };
            (0..17).map(text).collect::<Vec<_>>()
        };
        let key = || Some(Key::new(&[0, 1]));
        // The server has counted four bytes a character.
        let text = created("d/t", texts(1020, 45), key());
        assert_eq!(text.matches("VARCHAR(255)").count(), 17, "{text}");
        assert!(text.contains("PRIMARY KEY"), "{text}");
        // Who else made the table may have values of as many characters as bytes.
        let text = created("t", texts(1020, 45), key());
        assert!(!text.contains("VARCHAR"), "{text}");
        assert_eq!(text.matches(" TEXT CHARACTER SET utf8mb4").count(), 17);
        let text = created("t", texts(1020, 8), key());
        assert_eq!(text.matches("VARCHAR(1020)").count(), 17, "{text}");
    }

    #[test]
    fn a_table_whose_name_is_too_long_says_so() {
        let (own, short) = ("x".repeat(70), "x".repeat(62));
        let text = created(&format!("d/{own}"), vec![], None);
        assert!(text.contains(&format!("-- d/{own} has")), "{text}");
        assert!(text.contains(&format!(".`{short}~1`")), "{text}");
    }

    #[test]
    fn texts_that_mariadb_would_change_are_told() {
        let text = |name: &str, collation| {
            Column::new(name, ColumnType::VarBytes { max: 8 }).collation(collation)
        };
        let schema = TableSchema {
            columns: vec![text("a", 45), text("b", 33), text("c", 11), text("d", 8)],
            primary: None,
            indexes: vec![],
            user: vec![],
        };
        let rows: [[&[u8]; 4]; 3] = [
            ["жж".as_bytes(), "ж".as_bytes(), b"c", b"\xe9"],
            [b"abc", "😀".as_bytes(), "é".as_bytes(), &[0xff; 8]],
            [b"\xe9", b"abc", b"", b""],
        ];
        let told = |name: &str| {
            let mut table = Table::new(name, &schema, &mut Names::default());
            for row in rows {
                let row = row.map(|bytes| OwnedValue::Bytes(bytes.to_vec()));
                table.row(&mut std::io::sink(), &row).unwrap();
            }
            table.lost()
        };
        let lost = |name: &str, values: u32, column: &str| {
            let why = "not of its type: MariaDB changes them";
            format!("table {name}: {values} values of column {column}, {why}")
        };
        let of_server = |(values, column)| lost("d/t", values, column);
        let expected = [(2, "a"), (1, "b"), (1, "c")].map(of_server);
        assert_eq!(told("d/t"), expected);
        // Columns of a program's tables are wider.
        assert_eq!(told("t")[0], lost("t", 1, "a"));
    }

    #[test]
    fn values_that_mariadb_can_not_have_are_told() {
        let schema = TableSchema {
            columns: vec![
                Column::new("a", ColumnType::Double),
                Column::new("b", ColumnType::Float).nullable(),
            ],
            primary: None,
            indexes: vec![],
            user: vec![],
        };
        let mut out = Vec::new();
        let mut table = Table::new("t", &schema, &mut Names::default());
        for (a, b) in [(1.5, f32::NAN), (f64::INFINITY, -2.0), (-0.0, f32::NAN)] {
            let row = [OwnedValue::Double(a), OwnedValue::Float(b)];
            table.row(&mut out, &row).unwrap();
        }
        table.end(&mut out).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "INSERT INTO `t` VALUES\n(1.5e0,NULL),\n(0,-2e0),\n(-0e0,NULL);\n"
        );
        let told = [
            "table t: 1 values of column a, infinite or no numbers: 0 stands there",
            "table t: 2 values of column b, infinite or no numbers: NULL stands there",
        ];
        assert_eq!(table.lost(), told);
    }
}
