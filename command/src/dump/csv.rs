//! Rows as CSV (RFC 4180): a line of names first; NULL is an empty field, a string is always in
//! quotes; bytes that are no text are `0x` and hexadecimal digits, without quotes.

use std::io::{Result, Write};

use peregrine::{OwnedValue, TableSchema};

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
pub fn row(out: &mut dyn Write, row: &[OwnedValue]) -> Result<()> {
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
            OwnedValue::Bytes(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) if !text.contains('\0') => quoted(out, text)?,
                _ => {
                    out.write_all(b"0x")?;
                    for byte in bytes {
                        write!(out, "{byte:02X}")?;
                    }
                }
            },
        }
    }
    out.write_all(b"\r\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_keeps_null_empty_and_bytes_apart() {
        let mut out = Vec::new();
        let values = [
            OwnedValue::Null,
            OwnedValue::Bytes(vec![]),
            OwnedValue::Bytes(b"say \"a\", b\r\n".to_vec()),
            OwnedValue::Bytes(vec![0xff, 0]),
            OwnedValue::Int(-3),
            OwnedValue::Double(0.1),
        ];
        row(&mut out, &values).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            ",\"\",\"say \"\"a\"\", b\r\n\",0xFF00,-3,0.1\r\n"
        );
    }
}
