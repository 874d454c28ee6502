//! The statement that creates a table.

use std::io::{Result, Write};

use peregrine::{Column, ColumnType, KeyPart, Locking};

use super::characters::{character_set, width};
use super::sql::{comment, name, Table};
use super::types::Role;

/// The most bytes of all columns of a row together, without BLOBs, in MariaDB.
const ROW: u64 = 60_000;
/// The most bytes of a key in MariaDB.
const KEY: u64 = 3000;

impl Table<'_> {
    /// Returns a number of characters that is enough for every text of so many bytes.
    pub(super) fn characters(&self, max: u32, collation: u32) -> u64 {
        match self.is_servers {
            true => u64::from(max).div_ceil(width(collation)),
            false => max.into(),
        }
    }

    /// Returns the bytes that MariaDB counts for a column.
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

    /// Returns whether the rows would be too long for MariaDB with their strings in the row.
    pub(super) fn is_wide(&self) -> bool {
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
            // The server's row limits the characters of a string in it, so the column becomes a TEXT, which has no such
            // limit.
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

    /// Returns a key's columns, if MariaDB can have the key unchanged.
    fn key(&self, key: &str, parts: &[KeyPart]) -> Option<String> {
        let mut bytes = 0;
        let mut columns = Vec::new();
        for part in parts {
            let column = &self.schema.columns[part.column];
            let ty = &self.types[part.column];
            if ty.is_hidden {
                return None;
            }
            if ty.role == Role::UnnamedRowTime {
                // The server adds this column itself to each key that must not confuse rows with their history.
                continue;
            }
            let mut prefix = String::new();
            if ty.is_known() {
                // The server has had this key already.
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
            let column = name(&self.columns[part.column]);
            columns.push(format!("{column}{prefix}{descending}"));
        }
        let mut rest = "";
        if let Some(known) = &self.rest {
            rest = known.key(key);
            if let Some(period) = known.overlaps(key) {
                columns.truncate(columns.len().saturating_sub(2));
                columns.push(period.to_owned());
            }
        }
        let fits = bytes <= KEY && !columns.is_empty();
        fits.then(|| format!("({}){rest}", columns.join(", ")))
    }

    /// Returns the lines of the columns, in the server's order.
    ///
    /// `counts`: whether a key begins with the column.
    fn column_lines(&self, counts: &dyn Fn(usize) -> bool) -> Vec<String> {
        let mut lines = Vec::new();
        // Columns that the engine does not store come between those that it stores.
        let others = self.rest.as_ref().map(|rest| &rest.columns);
        let mut next = 0;
        for (n, (column, ty)) in self.schema.columns.iter().zip(&self.types).enumerate() {
            while let Some(other) = others.and_then(|others| others.get(&next)) {
                lines.push(format!("  {other}"));
                next += 1;
            }
            next += 1;
            if !ty.is_named() {
                continue;
            }
            let null = match column.nullable {
                _ if ty.role != Role::Given => "",
                // Without this, a server may make a TIMESTAMP column NOT NULL, depending on its settings.
                true if ty.is_known() => " NULL",
                true => "",
                false => " NOT NULL",
            };
            let counts = ty.counts && counts(n);
            lines.push(format!(
                "  {} {}{null}{}{}",
                name(&self.columns[n]),
                self.column_type(n),
                if counts { " AUTO_INCREMENT" } else { "" },
                if ty.is_known() { &ty.rest } else { "" },
            ));
        }
        if let Some(others) = others {
            lines.extend(others.range(next..).map(|(_, other)| format!("  {other}")));
        }
        lines
    }

    /// Writes the statement that creates the table.
    pub fn create(&self, out: &mut dyn Write) -> Result<()> {
        if let Some(database) = &self.database {
            writeln!(out, "\nCREATE DATABASE IF NOT EXISTS {database};")?;
        }
        if self.is_renamed {
            let why = "has another name here: its own is too long, another table's, or none in SQL";
            comment(out, &format!("{} {why}", self.table))?;
        }
        let mut keys: Vec<String> = Vec::new();
        let mut left_out = Vec::new();
        // The first columns of the keys.
        let mut first: Vec<&KeyPart> = Vec::new();
        let why = "with prefixes, too long, or of the server's own columns";
        if let Some(primary) = &self.schema.primary {
            match self.key("PRIMARY", &primary.parts) {
                Some(columns) => {
                    keys.push(format!("  PRIMARY KEY {columns}"));
                    first.extend(primary.parts.first());
                }
                None => left_out.push(format!("the primary key, {why}")),
            }
        }
        for (index, its_name) in self.schema.indexes.iter().zip(&self.indexes) {
            match self.key(&index.name, &index.parts) {
                Some(columns) => {
                    let unique = if index.unique { "UNIQUE " } else { "" };
                    keys.push(format!("  {unique}KEY {} {columns}", name(its_name)));
                    first.extend(index.parts.first());
                }
                None => left_out.push(format!("index {}, {why}", index.name)),
            }
        }
        // MariaDB requires that a key begins with an AUTO_INCREMENT column.
        let counts = |n: usize| first.iter().any(|part| part.column == n);
        let mut lines = self.column_lines(&counts);
        lines.extend(keys);
        let mut options = String::new();
        if let Some(rest) = &self.rest {
            lines.extend(rest.lines.iter().map(|line| format!("  {line}")));
            for option in rest.options.iter().filter(|option| !option.is_empty()) {
                options += &format!(" {option}");
            }
        }
        let next = self.options.auto_increment;
        let mut types = self.types.iter().enumerate();
        if next > 1 {
            match types.any(|(n, ty)| ty.counts && counts(n)) {
                true => options += &format!(" AUTO_INCREMENT={next}"),
                false => left_out.push(format!("the auto-increment counter, which is at {next}")),
            }
        }
        if self.options.locking == Locking::Optimistic {
            options += " LOCKING=OPTIMISTIC";
        }
        writeln!(
            out,
            "CREATE TABLE {} (\n{}\n){options};",
            self.name,
            lines.join(",\n")
        )?;
        for (column, ty) in self.schema.columns.iter().zip(&self.types) {
            if !ty.is_known() && !ty.is_hidden && !ty.rest.is_empty() {
                left_out.push(format!("of column {}:{}", column.name, ty.rest));
            }
        }
        for what in left_out {
            comment(out, &format!("left out: {what}"))?;
        }
        match &self.rest {
            Some(rest) => {
                for told in &rest.comments {
                    comment(out, told)?;
                }
            }
            None if self.is_servers => comment(
                out,
                "not known: defaults, checks, comments, what is generated. A later dump has them, where a server opens \
                 the table before",
            )?,
            None => {}
        }
        if self.is_versioned() {
            out.write_all(
                b"SET @peregrine_history = @@system_versioning_insert_history, \
                  system_versioning_insert_history = 1;\n",
            )?;
        }
        Ok(())
    }

    /// Returns the differences between the created table and the original, in words.
    pub(super) fn not_created(&self) -> Vec<String> {
        let columns = self.schema.columns.iter().map(|column| &column.name);
        let indexes = self.schema.indexes.iter().map(|index| &index.name);
        let columns = columns.zip(&self.columns).map(|names| ("column", names));
        let indexes = indexes.zip(&self.indexes).map(|names| ("index", names));
        let renamed = columns.chain(indexes).filter(|(_, (own, its))| own != its);
        let mut told: Vec<String> = renamed
            .map(|(what, (own, its))| {
                let table = self.table;
                format!("table {table}: the name of {what} {own:?}, which is {its:?} here: MariaDB has no such name")
            })
            .collect();
        if self.may_be_versioned() {
            told.push(format!(
                "table {}: whether it has system versioning: rows of its past may be among the others. Where a server \
                 of this version opens it, a later dump has its history as such",
                self.table
            ));
        }
        told
    }

    /// Returns whether the table may have system versioning, which older versions did not record.
    fn may_be_versioned(&self) -> bool {
        if self.rest.is_some() {
            return false;
        }
        let primary = self.schema.primary.as_ref();
        let is_time = |n: usize| {
            let ty = self.types.get(n).map(|ty| ty.text.as_str());
            let column = self.schema.columns.get(n);
            ty == Some("timestamp(6)") && column.is_some_and(|column| !column.nullable)
        };
        let mut at = 1..self.schema.columns.len();
        at.any(|n| {
            let is_named_so = self.schema.columns[n].name == "row_end";
            let is_key = primary.is_some_and(|key| key.parts.iter().any(|part| part.column == n));
            is_time(n) && is_time(n - 1) && (is_named_so || is_key)
        })
    }
}
