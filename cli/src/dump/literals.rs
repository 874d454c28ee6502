//! Values as literals of MariaDB's SQL.

use peregrine::OwnedValue;

use super::types::Said;

/// The replacement for a number that MariaDB can't have.
pub fn not_a_number(is_nullable: bool) -> &'static str {
    if is_nullable {
        "NULL"
    } else {
        "0"
    }
}

/// Writes a decoded value; returns false when MariaDB can't have it.
pub fn push_said(text: &mut String, said: &Said, value: &OwnedValue) -> bool {
    match said {
        Said::Itself | Said::Nothing => return push_value(text, value),
        Said::Number(number) => text.push_str(number),
        Said::Text(said) => {
            text.push('\'');
            text.push_str(said);
            text.push('\'');
        }
        Said::Bytes(bytes) => push_bytes(text, bytes),
        Said::Letters(bytes) => push_hexadecimal(text, bytes),
    }
    true
}

fn push_bytes(text: &mut String, bytes: &[u8]) {
    if !bytes.iter().all(|b| (b' '..=b'~').contains(b)) {
        return push_hexadecimal(text, bytes);
    }
    text.push('\'');
    for &byte in bytes {
        if matches!(byte, b'\'' | b'\\') {
            text.push('\\');
        }
        text.push(byte.into());
    }
    text.push('\'');
}

fn push_hexadecimal(text: &mut String, bytes: &[u8]) {
    use std::fmt::Write;
    text.push_str("X'");
    for byte in bytes {
        // Writing into a string can't fail.
        let _ = write!(text, "{byte:02X}");
    }
    text.push('\'');
}

/// Writes a value; returns false when MariaDB can't have it.
fn push_value(text: &mut String, value: &OwnedValue) -> bool {
    use std::fmt::Write;
    // Writing into a string can't fail.
    let _ = match value {
        OwnedValue::Null => write!(text, "NULL"),
        OwnedValue::Int(v) => write!(text, "{v}"),
        OwnedValue::UInt(v) => write!(text, "{v}"),
        OwnedValue::Float(v) if !v.is_finite() => return false,
        OwnedValue::Double(v) if !v.is_finite() => return false,
        // With an exponent, so that the server takes the literal for a floating-point number.
        OwnedValue::Float(v) => write!(text, "{v:e}"),
        OwnedValue::Double(v) => write!(text, "{v:e}"),
        OwnedValue::Bytes(bytes) => {
            push_bytes(text, bytes);
            Ok(())
        }
    };
    true
}
