//! Rows as CSV (RFC 4180).
//!
//! The first line has the names. NULL is an empty field. Strings are always in quotes, in UTF-8, and so are dates and
//! times. Bytes that are no text, or of an unknown character set, are `0x` and hexadecimal digits, without quotes. ENUM
//! and SET are written as numbers.

use std::io::{Result, Write};

use peregrine::{OwnedValue, TableSchema};

use super::characters::text;
use super::types::{Said, SqlType};

fn quoted(out: &mut dyn Write, text: &str) -> Result<()> {
    write!(out, "\"{}\"", text.replace('"', "\"\""))
}

/// Writes the line of names.
pub fn head(out: &mut dyn Write, schema: &TableSchema, types: &[SqlType]) -> Result<()> {
    let mut comma = "";
    for (column, ty) in schema.columns.iter().zip(types) {
        if ty.is_hidden {
            continue;
        }
        out.write_all(comma.as_bytes())?;
        quoted(out, &column.name)?;
        comma = ",";
    }
    out.write_all(b"\r\n")
}

/// Writes the line of a row.
pub fn row(
    out: &mut dyn Write,
    schema: &TableSchema,
    types: &[SqlType],
    row: &[OwnedValue],
) -> Result<()> {
    let mut comma = "";
    for ((value, ty), column) in row.iter().zip(types).zip(&schema.columns) {
        if ty.is_hidden {
            continue;
        }
        out.write_all(comma.as_bytes())?;
        comma = ",";
        match ty.said(value) {
            Said::Number(number) => out.write_all(number.as_bytes())?,
            Said::Text(text) => quoted(out, &text)?,
            Said::Bytes(value) | Said::Letters(value) => match column.collation {
                0 => bytes(out, ty.collation(), &value)?,
                collation => bytes(out, collation, &value)?,
            },
            Said::Itself | Said::Nothing => plain(out, column.collation, value)?,
        }
    }
    out.write_all(b"\r\n")
}

/// Writes a value in the form of the engine's type.
fn plain(out: &mut dyn Write, collation: u32, value: &OwnedValue) -> Result<()> {
    match value {
        OwnedValue::Null => Ok(()),
        OwnedValue::Int(v) => write!(out, "{v}"),
        OwnedValue::UInt(v) => write!(out, "{v}"),
        OwnedValue::Float(v) => write!(out, "{v}"),
        OwnedValue::Double(v) => write!(out, "{v}"),
        OwnedValue::Bytes(value) => bytes(out, collation, value),
    }
}

fn bytes(out: &mut dyn Write, collation: u32, bytes: &[u8]) -> Result<()> {
    if let Some(text) = text(collation, bytes) {
        return quoted(out, &text);
    }
    out.write_all(b"0x")?;
    for byte in bytes {
        write!(out, "{byte:02X}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::types::types;
    use super::*;
    use peregrine::{Column, ColumnType};

    fn line(collation: u32, values: &[OwnedValue]) -> String {
        let column = |n| {
            let ty = ColumnType::VarBytes { max: 40 };
            Column::new(format!("c{n}"), ty).collation(collation)
        };
        let schema = TableSchema {
            columns: (0..values.len()).map(column).collect(),
            primary: None,
            indexes: vec![],
            user: vec![],
        };
        let mut out = Vec::new();
        row(&mut out, &schema, &types(&schema), values).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_line_keeps_null_empty_and_bytes_apart() {
        let values = [
            OwnedValue::Null,
            OwnedValue::Bytes(vec![]),
            OwnedValue::Bytes(b"say \"a\", b\r\n".to_vec()),
            OwnedValue::Bytes(vec![0xff, 0]),
            OwnedValue::Int(-3),
            OwnedValue::Double(0.1),
        ];
        assert_eq!(
            line(0, &values),
            ",\"\",\"say \"\"a\"\", b\r\n\",0xFF00,-3,0.1\r\n"
        );
    }

    #[test]
    fn a_text_is_written_by_its_character_set() {
        let values = [OwnedValue::Bytes(b"\xc3\xa9".to_vec())];
        for (collation, said) in [
            (8, "\"Ã©\"\r\n"),
            (45, "\"é\"\r\n"),
            (0, "\"é\"\r\n"),
            (35, "0xC3A9\r\n"),
        ] {
            assert_eq!(line(collation, &values), said);
        }
    }
}
