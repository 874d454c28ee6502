//! Kinds of columns, and constants for them: few of each, so that values coincide, with the limits of the type.

use peregrine_harness::dice::Dice;

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Tiny,
    SmallUnsigned,
    Medium,
    Int,
    BigUnsigned,
    Decimal,
    Double,
    Bit,
    Date,
    Time,
    TimeMillis,
    DateTime,
    DateTimeMicros,
    Timestamp,
    Year,
    Char,
    VarChar,
    Text,
    Binary,
    VarBinary,
    Blob,
    Enum,
    Set,
    Uuid,
    Inet6,
    Json,
}

/// All kinds; those that more statements can use are listed more often.
const KINDS: [Kind; 32] = [
    Kind::Tiny,
    Kind::SmallUnsigned,
    Kind::Medium,
    Kind::Int,
    Kind::Int,
    Kind::Int,
    Kind::BigUnsigned,
    Kind::Decimal,
    Kind::Decimal,
    Kind::Double,
    Kind::Bit,
    Kind::Date,
    Kind::Date,
    Kind::Time,
    Kind::TimeMillis,
    Kind::DateTime,
    Kind::DateTimeMicros,
    Kind::Timestamp,
    Kind::Year,
    Kind::Char,
    Kind::VarChar,
    Kind::VarChar,
    Kind::VarChar,
    Kind::Text,
    Kind::Binary,
    Kind::VarBinary,
    Kind::Blob,
    Kind::Enum,
    Kind::Set,
    Kind::Uuid,
    Kind::Inet6,
    Kind::Json,
];

/// Collations, each of its character set: some ignore case or accents, some do not pad.
const COLLATIONS: [&str; 10] = [
    "latin1_swedish_ci",
    "latin1_german1_ci",
    "latin1_bin",
    "utf8mb3_general_ci",
    "utf8mb4_general_ci",
    "utf8mb4_unicode_ci",
    "utf8mb4_bin",
    "utf8mb4_nopad_bin",
    "utf8mb4_general_nopad_ci",
    "utf8mb4_uca1400_ai_ci",
];

/// Returns true with a probability of `percent` in a hundred.
pub fn chance(dice: &mut Dice, percent: u32) -> bool {
    dice.below(100) < percent
}

/// Draws an element.
pub fn one_of<'a, T>(dice: &mut Dice, some: &'a [T]) -> &'a T {
    &some[dice.below(some.len() as u32) as usize]
}

impl Kind {
    /// Draws a kind.
    pub fn any(dice: &mut Dice) -> Kind {
        *one_of(dice, &KINDS)
    }

    /// Returns the type in SQL.
    pub fn sql(self, dice: &mut Dice) -> String {
        let text = |dice: &mut Dice, ty: &str| {
            let collation = one_of(dice, &COLLATIONS);
            let set = collation.split('_').next().unwrap_or_default();
            format!("{ty} CHARACTER SET {set} COLLATE {collation}")
        };
        match self {
            Kind::Tiny => "TINYINT".into(),
            Kind::SmallUnsigned => "SMALLINT UNSIGNED".into(),
            Kind::Medium => "MEDIUMINT".into(),
            Kind::Int => "INT".into(),
            Kind::BigUnsigned => "BIGINT UNSIGNED".into(),
            Kind::Decimal => "DECIMAL(10,3)".into(),
            Kind::Double => "DOUBLE".into(),
            Kind::Bit => "BIT(9)".into(),
            Kind::Date => "DATE".into(),
            Kind::Time => "TIME".into(),
            Kind::TimeMillis => "TIME(3)".into(),
            Kind::DateTime => "DATETIME".into(),
            Kind::DateTimeMicros => "DATETIME(6)".into(),
            Kind::Timestamp => "TIMESTAMP".into(),
            Kind::Year => "YEAR".into(),
            Kind::Char => text(dice, "CHAR(8)"),
            Kind::VarChar => {
                let most = *one_of(dice, &[8, 60, 300]);
                text(dice, &format!("VARCHAR({most})"))
            }
            Kind::Text => text(dice, "TEXT"),
            Kind::Binary => "BINARY(4)".into(),
            Kind::VarBinary => "VARBINARY(12)".into(),
            Kind::Blob => "BLOB".into(),
            Kind::Enum => "ENUM('x', 'y', 'Z')".into(),
            Kind::Set => "SET('p', 'q', 'r')".into(),
            Kind::Uuid => "UUID".into(),
            Kind::Inet6 => "INET6".into(),
            Kind::Json => "JSON".into(),
        }
    }

    /// Returns whether values are whole numbers that fit into an INT.
    pub fn is_small_integer(self) -> bool {
        matches!(
            self,
            Kind::Tiny | Kind::SmallUnsigned | Kind::Medium | Kind::Int
        )
    }

    /// Returns whether values are text in a character set.
    pub fn is_text(self) -> bool {
        matches!(self, Kind::Char | Kind::VarChar | Kind::Text)
    }

    /// Returns whether a key can contain only a prefix of the column.
    pub fn needs_prefix(self) -> bool {
        matches!(self, Kind::Text | Kind::Blob | Kind::Json)
    }

    /// Returns whether equal values are identical, and sums are exact.
    pub fn is_exact(self) -> bool {
        self.is_small_integer() || matches!(self, Kind::BigUnsigned | Kind::Decimal | Kind::Year)
    }

    /// Draws a constant that a column of the kind accepts.
    pub fn constant(self, dice: &mut Dice) -> String {
        let some: &[&str] = match self {
            Kind::Tiny => &["0", "1", "2", "3", "4", "-1", "-128", "127"],
            Kind::SmallUnsigned => &["0", "1", "2", "3", "4", "65535"],
            Kind::Medium => &["0", "1", "2", "3", "-8388608", "8388607"],
            Kind::Int => &["0", "1", "2", "3", "4", "5", "6", "7", "-1", "2147483647"],
            Kind::BigUnsigned => &[
                "0",
                "1",
                "2",
                "3",
                "9223372036854775808",
                "18446744073709551615",
            ],
            Kind::Decimal => &[
                "0",
                "1.5",
                "-1.5",
                "2",
                "0.001",
                "-9999999.999",
                "9999999.999",
            ],
            Kind::Double => &["0", "1.5e0", "-2e0", "1e100", "-1e-100", "3e0"],
            Kind::Bit => &["0", "1", "2", "b'101010101'", "511"],
            Kind::Date => &[
                "'2020-01-01'",
                "'2020-02-29'",
                "'2020-03-01'",
                "'2020-03-02'",
                "'1000-01-01'",
                "'9999-12-31'",
            ],
            Kind::Time => &["'00:00:00'", "'-01:02:03'", "'12:00:00'", "'838:59:59'"],
            Kind::TimeMillis => &[
                "'00:00:00'",
                "'-01:02:03.5'",
                "'12:00:00.001'",
                "'12:00:00'",
            ],
            Kind::DateTime => &[
                "'2020-01-01 00:00:00'",
                "'2020-02-29 23:59:59'",
                "'1000-01-01 00:00:00'",
            ],
            Kind::DateTimeMicros => &[
                "'2020-01-01 00:00:00.000001'",
                "'2020-01-01'",
                "'9999-12-31 23:59:59.999999'",
            ],
            Kind::Timestamp => &[
                "'2020-01-01 12:00:00'",
                "'2020-03-01 12:00:00'",
                "'2038-01-01 00:00:00'",
            ],
            Kind::Year => &["2020", "2021", "1901", "2155", "0"],
            Kind::Char | Kind::VarChar => &[
                "''",
                "'a'",
                "'A'",
                "'a '",
                "'b'",
                "'ab'",
                "'ä'",
                "'Abcdefgh'",
                "'zz'",
                "'ss'",
                "'ß'",
            ],
            Kind::Text => &[
                "''",
                "'a'",
                "'A '",
                "'ß'",
                "REPEAT('long ', 30)",
                "REPEAT('p', 5000)",
                "REPEAT('Q', 9000)",
            ],
            Kind::Binary => &["''", "'a'", "X'00'", "X'FF00FF00'", "'a\\0'"],
            Kind::VarBinary => &["''", "'a'", "'A'", "X'00'", "'a\\0'", "'a '"],
            Kind::Blob => &[
                "''",
                "'a'",
                "X'00'",
                "REPEAT('b', 300)",
                "REPEAT(X'FF', 7000)",
            ],
            Kind::Enum => &["'x'", "'y'", "'Z'"],
            Kind::Set => &["''", "'p'", "'p,q'", "'p,q,r'"],
            Kind::Uuid => &[
                "'123e4567-e89b-12d3-a456-426655440000'",
                "'00000000-0000-0000-0000-000000000000'",
                "'018f2d9f-9a2a-7def-8c3f-7b1a2c4d5e6f'",
                "'ffffffff-ffff-1fff-bfff-ffffffffffff'",
            ],
            Kind::Inet6 => &["'::'", "'::1'", "'2001:db8::1'", "'ffff::'"],
            Kind::Json => &["'{}'", "'[1, 2]'", "'{\"a\": 1}'", "'null'"],
        };
        (*one_of(dice, some)).to_owned()
    }
}
