//! Values for a target: parameters of statements, and columns of rows to load.

use std::fmt::Write as _;

/// A value.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Datum {
    /// SQL NULL.
    #[default]
    Null,
    /// A whole number.
    Integer(i64),
    /// A number with a fixed number of decimals: 1250 with scale 2 is 12.50.
    Decimal {
        /// The number times ten to the power of the scale.
        units: i64,
        /// The number of decimals.
        scale: u8,
    },
    /// A string, or a date or time in the server's form.
    Text(String),
}

impl Datum {
    /// Converts a column of an answer.
    ///
    /// Digits that are the usual form of a whole number become an integer, so calculations don't depend on the
    /// protocol.
    #[must_use]
    pub fn of_answer(value: super::Value<'_>) -> Self {
        match value {
            super::Value::Null | super::Value::Other => Self::Null,
            super::Value::Integer(number) => {
                i64::try_from(number).map_or_else(|_| Self::Text(number.to_string()), Self::Integer)
            }
            super::Value::Negative(number) => Self::Integer(number),
            super::Value::Date(year, month, day) => {
                Self::Text(format!("{year:04}-{month:02}-{day:02}"))
            }
            super::Value::Bytes(bytes) => Self::of_text(&String::from_utf8_lossy(bytes)),
        }
    }

    /// Returns a whole number if the text is the usual form of one, or else the text.
    #[must_use]
    pub fn of_text(text: &str) -> Self {
        match text.parse::<i64>() {
            Ok(number) if is_usual_form(text) => Self::Integer(number),
            _ => Self::Text(text.to_owned()),
        }
    }

    /// Returns the whole number, if the value is one.
    #[must_use]
    pub fn integer(&self) -> Option<i64> {
        match self {
            Self::Integer(number) => Some(*number),
            _ => None,
        }
    }

    /// Appends the value as an SQL literal: strings are quoted, and their special characters escaped.
    pub fn write_sql(&self, out: &mut String) {
        match self {
            Self::Null => out.push_str("NULL"),
            Self::Text(text) => {
                out.push('\'');
                for character in text.chars() {
                    match character {
                        '\'' => out.push_str("''"),
                        '\\' => out.push_str("\\\\"),
                        '\0' => out.push_str("\\0"),
                        other => out.push(other),
                    }
                }
                out.push('\'');
            }
            number => number.write_plain(out),
        }
    }

    /// Appends the value as a field of a `LOAD DATA` file: `\N` for NULL; tabs, line ends and backslashes are escaped.
    pub fn write_field(&self, out: &mut String) {
        match self {
            Self::Null => out.push_str("\\N"),
            Self::Text(text) if text.contains(['\t', '\n', '\\', '\0']) => {
                for character in text.chars() {
                    match character {
                        '\t' => out.push_str("\\t"),
                        '\n' => out.push_str("\\n"),
                        '\\' => out.push_str("\\\\"),
                        '\0' => out.push_str("\\0"),
                        other => out.push(other),
                    }
                }
            }
            other => other.write_plain(out),
        }
    }

    /// Appends the value in readable form; nothing for NULL.
    pub fn write_plain(&self, out: &mut String) {
        // Writing to memory never fails.
        let _ = match self {
            Self::Null => Ok(()),
            Self::Integer(number) => write!(out, "{number}"),
            Self::Text(text) => {
                out.push_str(text);
                Ok(())
            }
            Self::Decimal { units, scale: 0 } => write!(out, "{units}"),
            Self::Decimal { units, scale } => {
                let width = usize::from(*scale);
                let parts = 10_u64.saturating_pow(u32::from(*scale));
                let sign = if *units < 0 { "-" } else { "" };
                let size = units.unsigned_abs();
                write!(out, "{sign}{}.{:0width$}", size / parts, size % parts)
            }
        };
    }
}

/// Returns whether the text is the usual form of a number: no plus sign, no leading zeros.
fn is_usual_form(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    match digits.as_bytes() {
        [b'0'] => !text.starts_with('-'),
        [first, ..] => (b'1'..=b'9').contains(first),
        [] => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::Value;

    fn sql(datum: &Datum) -> String {
        let mut out = String::new();
        datum.write_sql(&mut out);
        out
    }

    #[test]
    fn values_in_statements_cannot_end_their_quotes() {
        let text = |text: &str| Datum::Text(text.to_owned());
        assert_eq!(sql(&text("it's")), "'it''s'");
        assert_eq!(sql(&text("\\' OR 1")), "'\\\\'' OR 1'");
        assert_eq!(sql(&text("")), "''");
        assert_eq!(sql(&Datum::Null), "NULL");
        assert_eq!(sql(&Datum::Integer(-7)), "-7");
    }

    #[test]
    fn decimals_keep_their_places() {
        for (units, scale, shown) in [
            (1_250, 2, "12.50"),
            (5, 2, "0.05"),
            (-5, 2, "-0.05"),
            (-1_250, 4, "-0.1250"),
            (7, 0, "7"),
            (0, 3, "0.000"),
        ] {
            assert_eq!(sql(&Datum::Decimal { units, scale }), shown);
        }
    }

    #[test]
    fn fields_of_files_are_escaped() {
        let field = |datum: &Datum| {
            let mut out = String::new();
            datum.write_field(&mut out);
            out
        };
        assert_eq!(field(&Datum::Null), "\\N");
        assert_eq!(
            field(&Datum::Text("a\tb\nc\\N".to_owned())),
            "a\\tb\\nc\\\\N"
        );
        assert_eq!(field(&Datum::Text("it's".to_owned())), "it's");
    }

    #[test]
    fn only_the_usual_form_of_a_number_becomes_one() {
        for (text, number) in [
            ("0", Some(0)),
            ("12", Some(12)),
            ("-12", Some(-12)),
            ("012", None),
            ("+12", None),
            ("-0", None),
            ("12.0", None),
            ("", None),
            ("9223372036854775808", None),
        ] {
            let datum = Datum::of_answer(Value::Bytes(text.as_bytes()));
            assert_eq!(datum.integer(), number, "{text}");
            let mut shown = String::new();
            datum.write_plain(&mut shown);
            assert_eq!(shown, text, "nothing is lost");
        }
        assert_eq!(Datum::of_answer(Value::Null), Datum::Null);
        assert_eq!(
            Datum::of_answer(Value::Date(2001, 2, 3)),
            Datum::Text("2001-02-03".to_owned())
        );
    }
}
