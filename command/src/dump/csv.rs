//! Rows as CSV (RFC 4180): a line of names first; NULL is an empty field, a string is always in
//! quotes, in UTF-8; bytes that are no text, or of an unknown character set, are `0x` and
//! hexadecimal digits, without quotes.

use std::io::{Result, Write};

use peregrine::{OwnedValue, TableSchema};

use super::characters::text;

fn quoted(out: &mut dyn Write, text: &str) -> Result<()> {
    write!(out, "\"{}\"", text.replace('"', "\"\""))
}

/// The line of names.
pub fn head(out: &mut dyn Write, schema: &TableSchema) -> Result<()> {
    for (n, column) in schema.columns.iter().enumerate() {
        if n > 0 {
            out.write_all(b",")?;
        }
        quoted(out, &column.name)?;
    }
    out.write_all(b"\r\n")
}

/// The line of a row.
pub fn row(out: &mut dyn Write, schema: &TableSchema, row: &[OwnedValue]) -> Result<()> {
    for (n, value) in row.iter().enumerate() {
        if n > 0 {
            out.write_all(b",")?;
        }
        match value {
            OwnedValue::Null => {}
            OwnedValue::Int(v) => write!(out, "{v}")?,
            OwnedValue::UInt(v) => write!(out, "{v}")?,
            OwnedValue::Float(v) => write!(out, "{v}")?,
            OwnedValue::Double(v) => write!(out, "{v}")?,
            OwnedValue::Bytes(bytes) => {
                let column = schema.columns.get(n);
                let collation = column.map_or(0, |column| column.collation);
                if let Some(text) = text(collation, bytes) {
                    quoted(out, &text)?;
                } else {
                    out.write_all(b"0x")?;
                    for byte in bytes {
                        write!(out, "{byte:02X}")?;
                    }
                }
            }
        }
    }
    out.write_all(b"\r\n")
}

#[cfg(test)]
mod tests {
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
        row(&mut out, &schema, values).unwrap();
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
