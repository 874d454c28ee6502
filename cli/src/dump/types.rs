//! The SQL types of columns, as the server's plug-in stores them, and the decoding of values in the server's own
//! storage forms.

use std::net::{Ipv4Addr, Ipv6Addr};

use peregrine::{OwnedValue, TableSchema};

use super::rest::Rest;
use super::{compressed, decimal, times};

/// The first text of the data that the plug-in stores with a table.
///
/// The columns' types follow, each after a NUL, then the rest of each column's definition in CREATE TABLE, and the rest
/// of the table's.
const TYPES_FOLLOW: &str = "MariaDB";
/// The end of the type of an AUTO_INCREMENT column.
const AUTO_INCREMENT: &str = " AUTO_INCREMENT";

/// A column's type in SQL.
#[derive(Debug, Default)]
pub struct SqlType {
    /// As in CREATE TABLE, without AUTO_INCREMENT; empty when not known.
    pub text: String,
    /// Whether it has AUTO_INCREMENT.
    pub counts: bool,
    /// Whether the column is the server's own, which no statement sees.
    pub is_hidden: bool,
    /// The text after the type and NULL in a CREATE TABLE, with a space in front.
    pub rest: String,
    /// The origin of its values.
    pub role: Role,
    form: Form,
}

/// The origin of a column's values.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Role {
    /// The INSERT gives them.
    #[default]
    Given,
    /// The server computes them from other values.
    Generated,
    /// The start or end time of a row's validity, set by the server, or by a load.
    RowTime,
    /// The same, in a column that a CREATE TABLE does not name.
    UnnamedRowTime,
}

/// The storage form of values.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Form {
    /// Numbers or bytes that are the value itself.
    #[default]
    Plain,
    /// Bytes in a character set that does not, or may not, contain ASCII.
    Letters,
    Bit,
    Compressed,
    Date,
    DateTime(u32),
    Decimal(u32, u32),
    Inet4,
    Inet6,
    Time(u32),
    Timestamp(u32),
    Uuid,
    Year,
}

/// The decoded form of a value.
#[derive(Debug, PartialEq)]
pub enum Said {
    /// The stored value is the value itself.
    Itself,
    /// The stored value is invalid for the type.
    Nothing,
    /// A number.
    Number(String),
    /// An ASCII text without quotes and backslashes.
    Text(String),
    /// Bytes, of text or not.
    Bytes(Vec<u8>),
    /// Bytes in the character set of the column.
    Letters(Vec<u8>),
}

/// Returns the types of a table's columns.
pub fn types(schema: &TableSchema) -> Vec<SqlType> {
    described(schema).0
}

/// Returns the types of a table's columns, and the rest of its definition, if known.
pub fn described(schema: &TableSchema) -> (Vec<SqlType>, Option<Rest>) {
    let count = schema.columns.len();
    let known = std::str::from_utf8(&schema.user).ok();
    let parts: Vec<&str> = known.unwrap_or_default().split('\0').collect();
    let (Some((&TYPES_FOLLOW, parts)), true) = (parts.split_first(), count > 0) else {
        return (types_unknown(count), None);
    };
    // Older versions store no more than the types.
    if parts.len() == count {
        return (parts.iter().map(|text| SqlType::new(text)).collect(), None);
    }
    let Some((columns, rest)) = parts.split_at_checked(2 * count) else {
        return (types_unknown(count), None);
    };
    let (types, rests) = columns.split_at(count);
    let types = types.iter().zip(rests);
    let types = types.map(|(text, rest)| SqlType::new(text).with(rest));
    (types.collect(), Some(Rest::new(rest)))
}

fn types_unknown(count: usize) -> Vec<SqlType> {
    std::iter::repeat_with(SqlType::default)
        .take(count)
        .collect()
}

impl SqlType {
    fn new(text: &str) -> Self {
        if text == "hidden" {
            return SqlType {
                is_hidden: true,
                ..SqlType::default()
            };
        }
        let counts = text.ends_with(AUTO_INCREMENT);
        let text = text.strip_suffix(AUTO_INCREMENT).unwrap_or(text).to_owned();
        SqlType {
            form: form(&text),
            text,
            counts,
            ..SqlType::default()
        }
    }

    /// Adds the text after the type in a CREATE TABLE.
    fn with(mut self, rest: &str) -> Self {
        let generated = rest.strip_prefix(" GENERATED ALWAYS AS ");
        self.role = match generated {
            None if matches!(rest, "ROW START" | "ROW END") => Role::UnnamedRowTime,
            None => Role::Given,
            // The expression's type may be unknown, so the column can't be generated.
            Some(_) if !self.is_known() => Role::Given,
            Some(row) if row.starts_with("ROW ") => Role::RowTime,
            Some(_) => Role::Generated,
        };
        self.rest = rest.to_owned();
        self
    }

    /// Returns whether an INSERT has a value for the column.
    pub fn is_inserted(&self) -> bool {
        !self.is_hidden && self.role != Role::Generated
    }

    /// Returns whether a CREATE TABLE names the column.
    pub fn is_named(&self) -> bool {
        !self.is_hidden && self.role != Role::UnnamedRowTime
    }

    /// Whether the type is known.
    pub fn is_known(&self) -> bool {
        !self.text.is_empty()
    }

    /// Decodes a value.
    pub fn said(&self, value: &OwnedValue) -> Said {
        if self.form == Form::Plain || *value == OwnedValue::Null {
            return Said::Itself;
        }
        self.decoded(value).unwrap_or(Said::Nothing)
    }

    /// Returns a collation of the type's character set.
    ///
    /// For unknown sets this is UCS-2's, whose values are not decoded.
    pub fn collation(&self) -> u32 {
        match character_set(&self.text) {
            None => 63,
            Some("latin1") => 8,
            Some("ascii" | "utf8mb3" | "utf8mb4") => 45,
            Some(_) => 35,
        }
    }

    fn decoded(&self, value: &OwnedValue) -> Option<Said> {
        let text = |text: Option<String>| text.map(Said::Text);
        match (self.form, value) {
            (Form::Date, OwnedValue::UInt(date)) => text(times::date(*date)),
            (Form::Year, OwnedValue::UInt(year)) => {
                let year = if *year == 0 { 0 } else { 1900 + year };
                Some(Said::Number(year.to_string()))
            }
            // The forms before mysql56_temporal_format.
            (Form::Time(_), OwnedValue::Int(time)) => text(times::time_of_digits(*time)),
            (Form::DateTime(_), OwnedValue::UInt(time)) => text(times::date_time_of_digits(*time)),
            (Form::Timestamp(_), OwnedValue::UInt(time)) => {
                text(times::timestamp_of_seconds(*time))
            }
            (form, OwnedValue::Bytes(bytes)) => match form {
                Form::Letters => Some(Said::Letters(bytes.clone())),
                Form::Bit => number(bytes).map(|bits| Said::Number(bits.to_string())),
                Form::Compressed => {
                    let value = compressed::uncompressed(bytes);
                    value.map(if has_ascii(&self.text) {
                        Said::Bytes
                    } else {
                        Said::Letters
                    })
                }
                Form::DateTime(digits) => text(times::date_time(bytes, digits)),
                Form::Decimal(precision, scale) => {
                    decimal::decimal(bytes, precision, scale).map(Said::Number)
                }
                Form::Inet4 => {
                    let bytes: [u8; 4] = bytes.as_slice().try_into().ok()?;
                    Some(Said::Text(Ipv4Addr::from(bytes).to_string()))
                }
                Form::Inet6 => {
                    let bytes: [u8; 16] = bytes.as_slice().try_into().ok()?;
                    Some(Said::Text(Ipv6Addr::from(bytes).to_string()))
                }
                Form::Time(digits) => text(times::time(bytes, digits)),
                Form::Timestamp(digits) => text(times::timestamp(bytes, digits)),
                Form::Uuid => text(uuid(bytes)),
                Form::Plain | Form::Date | Form::Year => None,
            },
            _ => None,
        }
    }
}

/// Returns the storage form of a type's values.
fn form(text: &str) -> Form {
    let end = text.find(|letter: char| !letter.is_ascii_alphanumeric());
    let (word, rest) = text.split_at(end.unwrap_or(text.len()));
    let inside = rest.strip_prefix('(').and_then(|rest| rest.split_once(')'));
    let mut numbers = inside.map_or("", |(inside, _)| inside).split(',');
    let mut number = || numbers.next().and_then(|number| number.parse().ok());
    match word {
        _ if rest.contains("/*M!100301 COMPRESSED") => Form::Compressed,
        "bit" => Form::Bit,
        "date" => Form::Date,
        "datetime" => Form::DateTime(number().unwrap_or(0)),
        "decimal" => Form::Decimal(number().unwrap_or(10), number().unwrap_or(0)),
        "inet4" => Form::Inet4,
        "inet6" => Form::Inet6,
        "time" => Form::Time(number().unwrap_or(0)),
        "timestamp" => Form::Timestamp(number().unwrap_or(0)),
        "uuid" => Form::Uuid,
        "year" => Form::Year,
        "enum" | "set" => Form::Plain,
        _ if has_ascii(text) => Form::Plain,
        _ => Form::Letters,
    }
}

/// Returns the character set of a type other than ENUM or SET; `None` for bytes and numbers.
fn character_set(text: &str) -> Option<&str> {
    let (_, set) = text.split_once(" CHARACTER SET ")?;
    set.split(' ').next()
}

/// Returns whether ASCII letters surely are single bytes of their own code in values of a type.
fn has_ascii(text: &str) -> bool {
    let set = character_set(text);
    set.is_none_or(|set| matches!(set, "ascii" | "latin1" | "utf8mb3" | "utf8mb4"))
}

/// A big-endian number.
fn number(bytes: &[u8]) -> Option<u64> {
    let mut number = [0; 8];
    number[8_usize.checked_sub(bytes.len())?..].copy_from_slice(bytes);
    Some(u64::from_be_bytes(number))
}

/// Formats a UUID.
///
/// The server stores the parts of a UUID in the opposite order, so that consecutive ones are neighbours; UUIDs of
/// versions 6 and up have that order already and are stored unchanged.
fn uuid(bytes: &[u8]) -> Option<String> {
    use std::fmt::Write;
    let stored: [u8; 16] = bytes.try_into().ok()?;
    let is_swapped = stored[6] & 0x80 != 0 && (1..=0x80).contains(&stored[8]);
    let mut text = String::new();
    for part in if is_swapped {
        [12..16, 10..12, 8..10, 6..8, 0..6]
    } else {
        [0..4, 4..6, 6..8, 8..10, 10..16]
    } {
        if !text.is_empty() {
            text.push('-');
        }
        for byte in &stored[part] {
            // Writing into a string can't fail.
            let _ = write!(text, "{byte:02x}");
        }
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use peregrine::{Column, ColumnType};

    #[test]
    fn a_table_has_a_type_for_each_column_or_none() {
        let column = |name| Column::new(name, ColumnType::Double);
        let schema = |user: &[u8]| TableSchema {
            columns: vec![column("a"), column("b")],
            primary: None,
            indexes: vec![],
            user: user.to_vec(),
        };
        let texts = |user: &[u8]| -> Vec<String> {
            let types = types(&schema(user));
            types.into_iter().map(|of_column| of_column.text).collect()
        };
        assert_eq!(texts(b"MariaDB\0int(11)\0double"), ["int(11)", "double"]);
        let more = b"MariaDB\0int(11)\0double\0 DEFAULT 1\0\0option\0\0COMMENT 'x'";
        assert_eq!(texts(more), ["int(11)", "double"]);
        let (more, rest) = described(&schema(more));
        assert_eq!(more[0].rest, " DEFAULT 1");
        assert_eq!(rest.unwrap().options, ["COMMENT 'x'"]);
        for other in [
            &b"MariaDB\0int(11)"[..],
            b"MariaDB\0int(11)\0double\0 DEFAULT 1",
            b"mine\0int\0int",
            b"",
            b"\xff\0a\0b",
        ] {
            assert_eq!(texts(other), ["", ""]);
        }
        let of_table = types(&schema(b"MariaDB\0bigint(20) AUTO_INCREMENT\0hidden"));
        assert!(of_table[0].counts && of_table[0].text == "bigint(20)");
        assert!(of_table[1].is_hidden && !of_table[1].is_known());
    }

    #[test]
    fn values_say_what_the_server_would() {
        let said = |ty: &str, value: OwnedValue| SqlType::new(ty).said(&value);
        let bytes = |bytes: &[u8]| OwnedValue::Bytes(bytes.to_vec());
        let text = |text: &str| Said::Text(text.into());
        let number = |text: &str| Said::Number(text.into());
        let swapped = b"\x42\x66\x55\x44\0\0\xa4\x56\x12\xd3\xe8\x9b\x12\x3e\x45\x67";
        assert_eq!(
            said("uuid", bytes(swapped)),
            text("123e4567-e89b-12d3-a456-426655440000")
        );
        let straight = b"\x01\x8f\x2d\x9f\x9a\x2a\x7d\xef\x8c\x3f\x7b\x1a\x2c\x4d\x5e\x6f";
        assert_eq!(
            said("uuid", bytes(straight)),
            text("018f2d9f-9a2a-7def-8c3f-7b1a2c4d5e6f")
        );
        let mut local = [0; 16];
        local[15] = 1;
        assert_eq!(said("inet6", bytes(&local)), text("::1"));
        assert_eq!(said("inet4", bytes(&[10, 0, 0, 1])), text("10.0.0.1"));
        assert_eq!(said("bit(9)", bytes(&[1, 0x55])), number("341"));
        assert_eq!(
            said("bit(64)", bytes(&[0xff; 8])),
            number("18446744073709551615")
        );
        assert_eq!(said("year(4)", OwnedValue::UInt(126)), number("2026"));
        assert_eq!(said("year(4)", OwnedValue::UInt(0)), number("0"));
        assert_eq!(
            said(
                "char(3) CHARACTER SET utf16 COLLATE utf16_bin",
                bytes(b"N-")
            ),
            Said::Letters(b"N-".to_vec())
        );
        assert_eq!(
            said(
                "varchar(3) CHARACTER SET latin1 COLLATE latin1_bin",
                bytes(b"a")
            ),
            Said::Itself
        );
        assert_eq!(
            said(
                "enum('a','bit(1)') CHARACTER SET utf16",
                OwnedValue::UInt(1)
            ),
            Said::Itself
        );
        assert_eq!(said("int(11)", OwnedValue::Int(-1)), Said::Itself);
        assert_eq!(said("uuid", OwnedValue::Null), Said::Itself);
        for (ty, wrong) in [("uuid", 15), ("inet4", 5), ("inet6", 4), ("bit(64)", 9)] {
            assert_eq!(said(ty, bytes(&vec![1; wrong])), Said::Nothing, "{ty}");
        }
    }
}
