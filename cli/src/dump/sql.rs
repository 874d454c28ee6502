//! Rows as SQL that MariaDB loads.
//!
//! A table has the types that the server's plug-in has stored with it. Without those (a program's table, or an older
//! one), it has the engine's types. A text then keeps its character set if the collation's number tells it. It gets a
//! collation in which different bytes are different, so that no rows collide on loading. Values that the server stores
//! in a form of its own (DECIMAL, BIT, and times with fractions) are written as these bytes.

use std::collections::BTreeMap;
use std::io::{Result, Write};

use peregrine::{Column, ColumnType, OwnedValue, TableOptions, TableSchema};

use super::characters::character_set;
use super::literals::{not_a_number, push_said};
use super::names::Names;
use super::rest::Rest;
use super::types::{described, Role, Said, SqlType};

/// Bytes of a statement after which the next one begins.
const STATEMENT: usize = 256 << 10;

/// Writes the top of the file.
pub fn begin(out: &mut dyn Write, state: &str) -> Result<()> {
    comment(out, &format!("Dump by peregrine: {state}"))?;
    out.write_all(
        b"SET NAMES utf8mb4;\n\
          SET @peregrine_sql_mode = @@sql_mode, sql_mode = \
          'NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES,IGNORE_BAD_TABLE_OPTIONS';\n\
          SET @peregrine_time_zone = @@time_zone, time_zone = '+00:00';\n\
          SET @peregrine_unique_checks = @@unique_checks, unique_checks = 0;\n\
          SET @peregrine_checks = @@check_constraint_checks, check_constraint_checks = 0;\n",
    )
}

/// Writes the end of the file.
pub fn end(out: &mut dyn Write) -> Result<()> {
    out.write_all(
        b"SET sql_mode = @peregrine_sql_mode, unique_checks = @peregrine_unique_checks;\n\
          SET time_zone = @peregrine_time_zone, check_constraint_checks = @peregrine_checks;\n",
    )
}

/// Writes a comment of one line.
pub fn comment(out: &mut dyn Write, text: &str) -> Result<()> {
    writeln!(out, "-- {}", text.replace(['\n', '\r'], " "))
}

/// Quotes a name for SQL.
pub(super) fn name(text: &str) -> String {
    format!("`{}`", text.replace('`', "``"))
}

/// A table that is being written.
pub struct Table<'a> {
    pub(super) schema: &'a TableSchema,
    pub(super) options: TableOptions,
    /// The types of its columns.
    pub(super) types: Vec<SqlType>,
    /// The rest of its definition, if known.
    pub(super) rest: Option<Rest>,
    /// The engine's name of it.
    pub(super) table: &'a str,
    /// Whether it is a table of the server, which limits strings by characters.
    pub(super) is_servers: bool,
    pub(super) database: Option<String>,
    pub(super) name: String,
    /// Whether the name differs from the table's own.
    pub(super) is_renamed: bool,
    /// The names of its columns, and of its indexes, made valid for MariaDB.
    pub(super) columns: Vec<String>,
    pub(super) indexes: Vec<String>,
    /// Bytes of the statement that is being written; 0: none.
    written: usize,
    /// Number of values that MariaDB can't have, by column.
    lost: BTreeMap<usize, u64>,
}

impl<'a> Table<'a> {
    /// Begins a table; the name of a server's table begins with the database.
    pub fn new(
        table: &'a str,
        schema: &'a TableSchema,
        options: TableOptions,
        names: &mut Names,
    ) -> Self {
        let named = names.in_server(table);
        let (database, own) = (named.database.as_deref().map(name), name(&named.own));
        let (types, rest) = described(schema);
        let columns = schema.columns.iter().map(|column| column.name.as_str());
        let indexes = schema.indexes.iter().map(|index| index.name.as_str());
        // The server has accepted these names before.
        let is_known = types.iter().any(|ty| ty.is_known() || ty.is_hidden);
        let (columns, indexes) = match is_known {
            true => (
                columns.map(str::to_owned).collect(),
                indexes.map(str::to_owned).collect(),
            ),
            false => (
                Names::in_table(columns, ""),
                Names::in_table(indexes, "PRIMARY"),
            ),
        };
        Table {
            schema,
            options,
            types,
            rest,
            columns,
            indexes,
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

    /// Writes a row.
    pub fn row(&mut self, out: &mut dyn Write, row: &[OwnedValue]) -> Result<()> {
        let mut text = match self.written {
            0 => format!("INSERT INTO {}{} VALUES\n(", self.name, self.inserted()),
            _ => ",\n(".to_owned(),
        };
        let mut comma = "";
        for (n, (value, ty)) in row.iter().zip(&self.types).enumerate() {
            if !ty.is_inserted() {
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
            self.end_statement(out)?;
        }
        Ok(())
    }

    /// Returns the list of columns in a row, for tables with columns that INSERT leaves out or does not see by default.
    fn inserted(&self) -> String {
        if self.rest.is_none() {
            return String::new();
        }
        let columns = self.columns.iter().zip(&self.types);
        let inserted = columns.filter(|(_, ty)| ty.is_inserted());
        let names: Vec<String> = inserted.map(|(column, _)| name(column)).collect();
        format!(" ({})", names.join(","))
    }

    /// Ends the statement that is being written.
    fn end_statement(&mut self, out: &mut dyn Write) -> Result<()> {
        if std::mem::take(&mut self.written) > 0 {
            out.write_all(b";\n")?;
        }
        Ok(())
    }

    /// Ends the table's rows.
    pub fn end(&mut self, out: &mut dyn Write) -> Result<()> {
        self.end_statement(out)?;
        if self.is_versioned() {
            out.write_all(b"SET system_versioning_insert_history = @peregrine_history;\n")?;
        }
        Ok(())
    }

    /// Returns whether deleted rows stay as history (system versioning).
    pub(super) fn is_versioned(&self) -> bool {
        let mut roles = self.types.iter().map(|ty| ty.role);
        roles.any(|role| matches!(role, Role::RowTime | Role::UnnamedRowTime))
    }

    /// Returns the parts of the table, and of its rows so far, that MariaDB can't have, in words.
    pub fn lost(&self) -> Vec<String> {
        let mut lost = self.not_created();
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
        lost.extend(told);
        lost
    }

    /// Returns whether MariaDB keeps a value unchanged.
    ///
    /// MariaDB does not refuse other values, but loads what it can of them.
    fn keeps(&self, column: usize, value: &OwnedValue) -> bool {
        let column = self.schema.columns.get(column);
        let (Some(column), OwnedValue::Bytes(bytes)) = (column, value) else {
            return true;
        };
        let is_text = || std::str::from_utf8(bytes).is_ok();
        let is_right = match character_set(column.collation) {
            None | Some("latin1") => true,
            // In such columns the value is not a text.
            Some(_) if matches!(column.ty, ColumnType::Bytes { .. }) => true,
            Some("ascii") => bytes.is_ascii(),
            // Only utf8mb4 has letters of four bytes.
            Some("utf8mb3") => is_text() && bytes.iter().all(|byte| *byte < 0xf0),
            Some(_) => is_text(),
        };
        is_right && self.has_room(column, bytes)
    }

    /// Returns whether a text fits its column: a program's table may have the name of a server's table, but longer
    /// texts.
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
mod tests;
