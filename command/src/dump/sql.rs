//! Rows as SQL that MariaDB loads.
//!
//! A table has the types that the engine knows. Text of the character sets that it can tell by the
//! collation's number keeps its character set, with a collation that takes for different what is
//! different in bytes, so that no row collides on loading. What the server stores in a form of its
//! own (DECIMAL, BIT, and times with fractions) comes out as these bytes.

use std::io::{Result, Write};

use peregrine::{ColumnType, KeyPart, OwnedValue, TableSchema};

/// Bytes of a statement after which the next one is begun.
const STATEMENT: usize = 256 << 10;
/// Bytes that all columns of a row may take, where they are not BLOBs, in MariaDB.
const ROW: u64 = 60_000;
/// Bytes that a key may have there.
const KEY: u64 = 3000;
/// The bits of a collation's number that are the server's number of it.
const SERVER_NUMBER: u32 = 0xffff;

/// The top of the file.
pub fn begin(out: &mut dyn Write, state: &str) -> Result<()> {
    comment(out, &format!("Dump by peregrine: {state}"))?;
    out.write_all(
        b"SET NAMES utf8mb4;\n\
          SET @peregrine_sql_mode = @@sql_mode, sql_mode = 'NO_AUTO_VALUE_ON_ZERO';\n\
          SET @peregrine_unique_checks = @@unique_checks, unique_checks = 0;\n",
    )
}

/// The end of the file.
pub fn end(out: &mut dyn Write) -> Result<()> {
    out.write_all(
        b"SET sql_mode = @peregrine_sql_mode, unique_checks = @peregrine_unique_checks;\n",
    )
}

/// A comment of one line.
pub fn comment(out: &mut dyn Write, text: &str) -> Result<()> {
    writeln!(out, "-- {}", text.replace(['\n', '\r'], " "))
}

fn name(text: &str) -> String {
    format!("`{}`", text.replace('`', "``"))
}

/// What the server writes for characters that a file's name can't have, undone.
fn unescaped(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('@') {
        out.push_str(&rest[..at]);
        let code = rest.get(at + 1..at + 5);
        let letter = code
            .and_then(|code| u32::from_str_radix(code, 16).ok())
            .and_then(char::from_u32);
        match letter {
            Some(letter) => {
                out.push(letter);
                rest = &rest[at + 5..];
            }
            None => {
                out.push('@');
                rest = &rest[at + 1..];
            }
        }
    }
    out + rest
}

/// The character set of a collation of the server's; `None` where it is not known, or is bytes.
fn character_set(collation: u32) -> Option<&'static str> {
    Some(match collation & SERVER_NUMBER {
        5 | 8 | 15 | 31 | 47 | 48 | 49 | 94 => "latin1",
        11 | 65 => "ascii",
        33 | 83 | 192..=215 | 223 => "utf8mb3",
        45 | 46 | 224..=247 => "utf8mb4",
        _ => return None,
    })
}

fn longest(ty: ColumnType) -> u64 {
    match ty {
        ColumnType::Int { bytes, .. } => bytes.into(),
        ColumnType::Float => 4,
        ColumnType::Double => 8,
        ColumnType::Bytes { len } => len.into(),
        ColumnType::VarBytes { max } => u64::from(max) + 2,
        ColumnType::Large { .. } => 12,
    }
}

/// A table on its way into the file.
pub struct Table<'a> {
    schema: &'a TableSchema,
    database: Option<String>,
    name: String,
    /// Bytes of the statement that is being written; 0: none is.
    written: usize,
}

impl<'a> Table<'a> {
    /// A table; of the server's tables the name has the database in front.
    pub fn new(table: &str, schema: &'a TableSchema) -> Self {
        let (database, own) = match table.split_once('/') {
            Some((database, own)) => (Some(name(&unescaped(database))), unescaped(own)),
            None => (None, table.to_owned()),
        };
        Table {
            schema,
            name: match &database {
                Some(database) => format!("{database}.{}", name(&own)),
                None => name(&own),
            },
            database,
            written: 0,
        }
    }

    /// Whether the rows would be too long for MariaDB with their strings inside.
    fn is_wide(&self) -> bool {
        let columns = self.schema.columns.iter();
        columns.map(|column| longest(column.ty)).sum::<u64>() > ROW
    }

    fn column_type(&self, column: usize) -> String {
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
                Some(set) => {
                    // Bytes were counted, characters are asked for: as many are surely enough.
                    format!("VARCHAR({max}) CHARACTER SET {set} COLLATE {set}_nopad_bin")
                }
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
            let ty = self.column_type(part.column);
            if part.prefix.is_some() || ty.contains("TEXT") || ty.contains("BLOB") {
                return None;
            }
            let width = match character_set(column.collation) {
                Some("utf8mb4") => 4,
                Some("utf8mb3") => 3,
                _ => 1,
            };
            bytes += longest(column.ty) * width + 1;
            let descending = if part.descending { " DESC" } else { "" };
            columns.push(format!("{}{descending}", name(&column.name)));
        }
        (bytes <= KEY).then(|| columns.join(", "))
    }

    /// The statement that creates the table.
    pub fn create(&self, out: &mut dyn Write) -> Result<()> {
        if let Some(database) = &self.database {
            writeln!(out, "\nCREATE DATABASE IF NOT EXISTS {database};")?;
        }
        let mut lines: Vec<String> = Vec::new();
        for (n, column) in self.schema.columns.iter().enumerate() {
            let null = if column.nullable { "" } else { " NOT NULL" };
            lines.push(format!(
                "  {} {}{null}",
                name(&column.name),
                self.column_type(n)
            ));
        }
        let mut left_out = Vec::new();
        if let Some(primary) = &self.schema.primary {
            match self.key(&primary.parts) {
                Some(columns) => lines.push(format!("  PRIMARY KEY ({columns})")),
                None => left_out.push("the primary key".to_owned()),
            }
        }
        for index in &self.schema.indexes {
            match self.key(&index.parts) {
                Some(columns) => lines.push(format!(
                    "  {}KEY {} ({columns})",
                    if index.unique { "UNIQUE " } else { "" },
                    name(&index.name)
                )),
                None => left_out.push(format!("index {}", index.name)),
            }
        }
        writeln!(
            out,
            "CREATE TABLE {} (\n{}\n);",
            self.name,
            lines.join(",\n")
        )?;
        for key in left_out {
            comment(out, &format!("left out: {key}, with prefixes or too long"))?;
        }
        Ok(())
    }

    /// A row.
    pub fn row(&mut self, out: &mut dyn Write, row: &[OwnedValue]) -> Result<()> {
        let mut text = match self.written {
            0 => format!("INSERT INTO {} VALUES\n(", self.name),
            _ => ",\n(".to_owned(),
        };
        for (n, value) in row.iter().enumerate() {
            if n > 0 {
                text.push(',');
            }
            push_value(&mut text, value);
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
}

fn push_value(text: &mut String, value: &OwnedValue) {
    use std::fmt::Write;
    // Writing into a string can't fail.
    let _ = match value {
        OwnedValue::Null => write!(text, "NULL"),
        OwnedValue::Int(v) => write!(text, "{v}"),
        OwnedValue::UInt(v) => write!(text, "{v}"),
        // As a number with an exponent, so that the server takes it for one of that type; it has
        // no infinities.
        OwnedValue::Float(v) if v.is_finite() => write!(text, "{v:e}"),
        OwnedValue::Double(v) if v.is_finite() => write!(text, "{v:e}"),
        OwnedValue::Float(_) | OwnedValue::Double(_) => write!(text, "NULL"),
        OwnedValue::Bytes(bytes) if bytes.iter().all(|b| (b' '..=b'~').contains(b)) => {
            text.push('\'');
            for &byte in bytes {
                if matches!(byte, b'\'' | b'\\') {
                    text.push('\\');
                }
                text.push(byte.into());
            }
            text.push('\'');
            Ok(())
        }
        OwnedValue::Bytes(bytes) => {
            text.push_str("X'");
            for byte in bytes {
                let _ = write!(text, "{byte:02X}");
            }
            text.push('\'');
            Ok(())
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use peregrine::{Column, Index, Key};

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
        let mut table = Table::new("my@0020shop/t@00241", &schema);
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
  `na``me` VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin,
  `body` BLOB NOT NULL,
  PRIMARY KEY (`id`),
  UNIQUE KEY `by_name` (`na``me`)
);
-- left out: index by_body, with prefixes or too long
INSERT INTO `my shop`.`t$1` VALUES
(7,'it\\'s \\\\',X'C3A4'),
(8,NULL,'');
"
        );
    }
}
