//! One column's value.

/// A column's value, borrowed from the row or from the caller.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// No value.
    Null,
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    UInt(u64),
    /// A single-precision float.
    Float(f32),
    /// A double-precision float.
    Double(f64),
    /// Bytes: fixed, variable or large.
    Bytes(&'a [u8]),
    /// Only when reading: the value is stored outside the row and has this many bytes.
    ///
    /// [`crate::RowView::get_large`] reads it.
    OutOfRow(u64),
}

impl Value<'_> {
    /// A copy that borrows nothing. [`Value::OutOfRow`] becomes NULL.
    pub fn to_owned(&self) -> OwnedValue {
        match *self {
            Value::Null | Value::OutOfRow(_) => OwnedValue::Null,
            Value::Int(v) => OwnedValue::Int(v),
            Value::UInt(v) => OwnedValue::UInt(v),
            Value::Float(v) => OwnedValue::Float(v),
            Value::Double(v) => OwnedValue::Double(v),
            Value::Bytes(v) => OwnedValue::Bytes(v.to_vec()),
        }
    }

    /// Whether this is NULL.
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(v: &'a str) -> Self {
        Value::Bytes(v.as_bytes())
    }
}

impl<'a> From<&'a [u8]> for Value<'a> {
    fn from(v: &'a [u8]) -> Self {
        Value::Bytes(v)
    }
}

macro_rules! from_integer {
    ($variant:ident: $($ty:ty)*) => {
        $(impl From<$ty> for Value<'_> {
            fn from(v: $ty) -> Self {
                Value::$variant(v.into())
            }
        })*
    };
}
from_integer!(Int: i8 i16 i32 i64);
from_integer!(UInt: u8 u16 u32 u64);
from_integer!(Float: f32);
from_integer!(Double: f64);

/// A value that owns its bytes.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum OwnedValue {
    /// No value.
    #[default]
    Null,
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    UInt(u64),
    /// A single-precision float.
    Float(f32),
    /// A double-precision float.
    Double(f64),
    /// Bytes.
    Bytes(Vec<u8>),
}

impl OwnedValue {
    /// The value, borrowed.
    pub fn as_value(&self) -> Value<'_> {
        match self {
            OwnedValue::Null => Value::Null,
            OwnedValue::Int(v) => Value::Int(*v),
            OwnedValue::UInt(v) => Value::UInt(*v),
            OwnedValue::Float(v) => Value::Float(*v),
            OwnedValue::Double(v) => Value::Double(*v),
            OwnedValue::Bytes(v) => Value::Bytes(v),
        }
    }
}
