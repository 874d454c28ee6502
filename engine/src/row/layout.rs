//! A checked and compiled schema: all that the codecs need of it, computed once per open table.

use super::schema::{Column, ColumnType, Key, KeyPart, TableSchema};
use crate::error::{Error, Result};

/// The most columns of a table.
pub(crate) const MAX_COLUMNS: usize = 4096;
/// The most indexes of a table, the clustered one included.
pub(crate) const MAX_INDEXES: usize = 129;
/// The most parts of a key.
pub(crate) const MAX_PARTS: usize = 64;

/// The part of a column's value that the indexes need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PrefixNeed {
    Nothing,
    Bytes(u64),
    All,
}

impl PrefixNeed {
    /// The most bytes that they need.
    pub fn bytes(self) -> u64 {
        match self {
            PrefixNeed::Nothing => 0,
            PrefixNeed::Bytes(n) => n,
            PrefixNeed::All => u64::MAX,
        }
    }
}

/// A compiled schema.
#[derive(Debug)]
pub(crate) struct Layout {
    pub columns: Vec<ColumnLayout>,
    pub clustered: KeyLayout,
    /// `indexes[n - 1]` is index n.
    pub indexes: Vec<KeyLayout>,
    /// Whether the table has no primary key; the clustered key is then a row id.
    pub hidden: bool,
}

/// A column and the place of its value.
#[derive(Debug)]
pub(crate) struct ColumnLayout {
    pub column: Column,
    /// The part of the clustered key that gives the value back if the row does not store it.
    pub from_key: Option<usize>,
    /// Whether an index (clustered included) has it as a part.
    pub indexed: bool,
}

/// A compiled key.
#[derive(Debug)]
pub(crate) struct KeyLayout {
    pub parts: Vec<PartLayout>,
    pub unique: bool,
    /// The number of leading parts that are never NULL and at the same place in every key.
    pub in_place: usize,
}

/// A compiled key part.
#[derive(Debug)]
pub(crate) struct PartLayout {
    pub column: usize,
    pub nullable: bool,
    pub form: PartForm,
    /// Byte or character limit of the value, if it has one.
    pub prefix: Option<u32>,
    /// Whether all its bytes are inverted, the null marker included, so that greater values come first.
    pub descending: bool,
    /// Where it begins in the key, if everything before it has a fixed size.
    pub fixed_at: Option<usize>,
}

impl PartLayout {
    /// Whether the part's bytes give its column's value back.
    pub fn gives_back(&self) -> bool {
        self.prefix.is_none() && !self.descending
    }
}

/// How a part's value is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PartForm {
    Int { bytes: u8, signed: bool },
    Float,
    Double,
    Fixed { len: u32 },
    Var,
    Collated { collation: u32 },
}

impl PartForm {
    /// Bytes of the encoded value, without a null marker, if they are the same for all values.
    pub fn fixed_len(self) -> Option<usize> {
        match self {
            PartForm::Int { bytes, .. } => Some(bytes.into()),
            PartForm::Float => Some(4),
            PartForm::Double => Some(8),
            PartForm::Fixed { len } => Some(len as usize),
            PartForm::Var | PartForm::Collated { .. } => None,
        }
    }
}

fn invalid<T>(text: String) -> Result<T> {
    Err(Error::Invalid(text))
}

impl Layout {
    /// Checks and compiles a schema.
    pub fn new(schema: &TableSchema) -> Result<Layout> {
        if schema.columns.is_empty() || schema.columns.len() > MAX_COLUMNS {
            return invalid(format!(
                "a table has 1 to {MAX_COLUMNS} columns, not {}",
                schema.columns.len()
            ));
        }
        if schema.indexes.len() >= MAX_INDEXES {
            return invalid(format!(
                "a table has at most {} secondary indexes, not {}",
                MAX_INDEXES - 1,
                schema.indexes.len()
            ));
        }
        schema.columns.iter().try_for_each(check_column)?;
        let clustered = match &schema.primary {
            Some(Key { parts }) => KeyLayout::new(schema, "the primary key", parts, true)?,
            None => KeyLayout {
                parts: Vec::new(),
                unique: true,
                in_place: 0,
            },
        };
        if let Some(part) = clustered.parts.iter().find(|p| p.nullable) {
            return invalid(format!(
                "column {} of the primary key must not be nullable",
                schema.columns[part.column].name
            ));
        }
        let indexes: Vec<KeyLayout> = schema
            .indexes
            .iter()
            .map(|i| KeyLayout::new(schema, &format!("index {}", i.name), &i.parts, i.unique))
            .collect::<Result<_>>()?;
        let columns = schema
            .columns
            .iter()
            .enumerate()
            .map(|(n, column)| ColumnLayout {
                column: column.clone(),
                from_key: clustered.restorable(n),
                indexed: std::iter::once(&clustered)
                    .chain(&indexes)
                    .any(|k| k.parts.iter().any(|p| p.column == n)),
            })
            .collect();
        Ok(Layout {
            columns,
            clustered,
            indexes,
            hidden: schema.primary.is_none(),
        })
    }

    /// The key of an index by its number.
    #[inline]
    pub fn key(&self, index: usize) -> Option<&KeyLayout> {
        match index {
            0 => Some(&self.clustered),
            n => self.indexes.get(n - 1),
        }
    }

    /// The part of a column's value that its key parts need.
    pub fn prefix_need(&self, column: usize) -> PrefixNeed {
        std::iter::once(&self.clustered)
            .chain(&self.indexes)
            .flat_map(|key| &key.parts)
            .filter(|part| part.column == column)
            .map(|part| match (part.prefix, part.form) {
                (None, _) => PrefixNeed::All,
                // No character of a character set takes more than 4 bytes.
                (Some(n), PartForm::Collated { .. }) => PrefixNeed::Bytes(u64::from(n) * 4),
                (Some(n), _) => PrefixNeed::Bytes(n.into()),
            })
            .max()
            .unwrap_or(PrefixNeed::Nothing)
    }

    /// Whether an entry of `index` gives a column's value back.
    pub fn covers(&self, index: usize, column: usize) -> bool {
        if index == 0 {
            return column < self.columns.len();
        }
        let Some(key) = self.key(index) else {
            return false;
        };
        key.entry_part(column).is_some() || self.clustered.restorable_exactly(column).is_some()
    }
}

fn check_column(column: &Column) -> Result<()> {
    let name = &column.name;
    match column.ty {
        ColumnType::Int { bytes, .. } if !matches!(bytes, 1..=4 | 8) => {
            return invalid(format!(
                "column {name}: integers have 1, 2, 3, 4 or 8 bytes, not {bytes}"
            ))
        }
        ColumnType::Bytes { len } if len > 65_535 => {
            return invalid(format!(
                "column {name}: fixed bytes have at most 65535 bytes, not {len}"
            ))
        }
        _ => {}
    }
    let bytes = matches!(
        column.ty,
        ColumnType::Bytes { .. } | ColumnType::VarBytes { .. } | ColumnType::Large { .. }
    );
    if column.collation != 0 && !bytes {
        return invalid(format!("column {name}: only bytes have a collation"));
    }
    Ok(())
}

impl PartLayout {
    /// The part's place in every key, if that is always the same and the part has a fixed size.
    ///
    /// Such a part can be read without decoding the parts before it.
    #[inline]
    pub fn stands_at(&self) -> Option<usize> {
        self.fixed_at.filter(|_| self.form.fixed_len().is_some())
    }
}

impl KeyLayout {
    fn new(schema: &TableSchema, what: &str, parts: &[KeyPart], unique: bool) -> Result<Self> {
        if parts.is_empty() || parts.len() > MAX_PARTS {
            return invalid(format!(
                "{what} has 1 to {MAX_PARTS} parts, not {}",
                parts.len()
            ));
        }
        let mut at = Some(0);
        let mut compiled = Vec::with_capacity(parts.len());
        for part in parts {
            let Some(column) = schema.columns.get(part.column) else {
                return invalid(format!(
                    "{what}: there is no column {}; columns are 0 to {}",
                    part.column,
                    schema.columns.len() - 1
                ));
            };
            let (form, prefix) = part_form(column, part.prefix)
                .ok_or_else(|| Error::Invalid(bad_prefix(what, column)))?;
            compiled.push(PartLayout {
                column: part.column,
                nullable: column.nullable,
                form,
                prefix,
                descending: part.descending,
                fixed_at: at,
            });
            at = match (at, form.fixed_len(), column.nullable) {
                (Some(at), Some(len), false) => Some(at + len),
                _ => None,
            };
        }
        let in_place = |part: &&PartLayout| part.stands_at().is_some() && !part.nullable;
        Ok(KeyLayout {
            in_place: compiled.iter().take_while(in_place).count(),
            parts: compiled,
            unique,
        })
    }

    /// The part of a clustered key from which a row takes a column that it does not store.
    ///
    /// Parts behind a collated one can't be found: only the collation knows where it ends.
    fn restorable(&self, column: usize) -> Option<usize> {
        self.parts
            .iter()
            .take_while(|p| !matches!(p.form, PartForm::Collated { .. }))
            .position(|p| p.column == column && p.gives_back())
    }

    /// As `restorable`, only for forms that hold every value unchanged.
    ///
    /// Floats lose the sign of zero, and variable bytes may be escaped.
    pub fn restorable_exactly(&self, column: usize) -> Option<usize> {
        self.restorable(column).filter(|&n| {
            matches!(
                self.parts[n].form,
                PartForm::Int { .. } | PartForm::Fixed { .. }
            )
        })
    }

    /// The part of a secondary entry that gives a column's value back.
    pub fn entry_part(&self, column: usize) -> Option<usize> {
        self.parts.iter().position(|p| {
            p.column == column
                && p.gives_back()
                && !matches!(p.form, PartForm::Float | PartForm::Double)
        })
    }
}

fn bad_prefix(what: &str, column: &Column) -> String {
    format!(
        "{what}: column {} takes {}",
        column.name,
        match column.ty {
            ColumnType::Large { .. } => "part in a key only with a prefix length of at least 1",
            ColumnType::Bytes { .. } | ColumnType::VarBytes { .. } => {
                "a prefix length of at least 1"
            }
            _ => "no prefix length, for it is a number",
        }
    )
}

/// The encoding of a column in a key; `None` for an invalid prefix.
fn part_form(column: &Column, prefix: Option<u32>) -> Option<(PartForm, Option<u32>)> {
    if prefix == Some(0) {
        return None;
    }
    let collated = PartForm::Collated {
        collation: column.collation,
    };
    match column.ty {
        ColumnType::Int { .. } | ColumnType::Float | ColumnType::Double if prefix.is_some() => None,
        ColumnType::Int { bytes, signed } => Some((PartForm::Int { bytes, signed }, None)),
        ColumnType::Float => Some((PartForm::Float, None)),
        ColumnType::Double => Some((PartForm::Double, None)),
        ColumnType::Large { .. } if prefix.is_none() => None,
        _ if column.collation != 0 => Some((collated, prefix)),
        ColumnType::Bytes { len } => match prefix {
            Some(cut) if cut < len => Some((PartForm::Fixed { len: cut }, Some(cut))),
            _ => Some((PartForm::Fixed { len }, None)),
        },
        ColumnType::VarBytes { max } => Some((PartForm::Var, prefix.filter(|&cut| cut < max))),
        ColumnType::Large { .. } => Some((PartForm::Var, prefix)),
    }
}
